//! Answers that do not arrive, or not whole.

use std::time::{Duration, Instant};

use mle_star_wire::{Answer, Script, Server};
use tokio::net::TcpStream;

use crate::client::{End, ask, question};

async fn told(answer: Answer, stream: bool) -> Option<crate::client::Reply> {
    let server = Server::start(Script::new([answer])).await.unwrap();
    ask(&server, &question(stream)).await
}

#[tokio::test]
async fn a_stream_is_dropped_after_the_event_that_was_named() {
    let reply = told(Answer::text("A fish.").in_pieces_of(1).dropped_after(5), true).await.unwrap();
    let kinds = ["message_start", "ping", "content_block_start", "content_block_delta"];
    assert_eq!(reply.kinds()[..4], kinds);
    assert_eq!((reply.kinds().len(), reply.end), (5, End::Broken));
}

#[tokio::test]
async fn a_plain_answer_is_dropped_in_the_middle() {
    let reply = told(Answer::text("A fish.").dropped_after(1), false).await.unwrap();
    assert_eq!((reply.status, reply.end), (200, End::Broken));
    assert!(reply.body.starts_with('{') && !reply.body.ends_with('}'), "{}", reply.body);
}

#[tokio::test]
async fn a_connection_is_closed_without_a_byte() {
    assert_eq!(told(Answer::refusal_to_answer(), true).await, None);
    assert_eq!(told(Answer::text("a").dropped_after(0), true).await, None);
}

#[tokio::test]
async fn a_stalled_stream_stays_open() {
    let reply = told(Answer::text("A fish.").hanging_after(3), true).await.unwrap();
    assert_eq!((reply.kinds().len(), reply.end), (3, End::TimedOut));
    assert_eq!(told(Answer::silence(), true).await, None);
}

#[tokio::test]
async fn an_error_may_come_in_the_middle_of_a_stream() {
    let answer = Answer::text("A fish.").failing_after(2, "overloaded_error", "Overloaded");
    let reply = told(answer.clone(), true).await.unwrap();
    assert_eq!(
        (reply.kinds(), reply.end),
        (vec!["message_start".to_owned(), "ping".to_owned(), "error".to_owned()], End::Whole)
    );
    assert_eq!(told(answer, false).await.unwrap().end, End::Broken);
}

#[tokio::test]
async fn answers_take_the_time_they_were_given() {
    let begun = Instant::now();
    let answer = Answer::empty()
        .delayed_by(Duration::from_millis(100))
        .pausing_for(Duration::from_millis(50));
    let reply = told(answer, true).await.unwrap();
    assert_eq!(reply.kinds(), ["message_start", "ping", "message_delta", "message_stop"]);
    assert!(begun.elapsed() >= Duration::from_millis(100 + 3 * 50), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn garbage_is_passed_on_as_it_is() {
    let reply = told(Answer::raw(200, "text/html", "<html>"), true).await.unwrap();
    assert_eq!((reply.status, &*reply.content_type, &*reply.body), (200, "text/html", "<html>"));
}

#[tokio::test]
async fn a_dropped_server_closes_its_port_and_its_connections() {
    let server = Server::start(Script::new([Answer::silence()])).await.unwrap();
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let connected = TcpStream::connect(&address).await.unwrap();
    connected.writable().await.unwrap();
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(TcpStream::connect(&address).await.is_err());
    connected.readable().await.unwrap();
    assert!(!matches!(connected.try_read(&mut [0; 8]), Ok(1..)));
}
