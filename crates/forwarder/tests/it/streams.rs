//! Answers that come in pieces, or not to their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use mle_star_wire::{Answer, Script, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::client::{Client, ask, forwarder_to, question};

async fn through(answer: Answer) -> crate::client::Reply {
    let server = Server::start(Script::new([answer])).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    ask(&forwarder, true).await
}

#[tokio::test]
async fn a_streamed_answer_arrives_piece_by_piece() {
    let pause = Duration::from_millis(60);
    let reply = through(Answer::text("A fish.").in_pieces_of(1).pausing_for(pause)).await;
    assert!(
        reply.is_whole
            && reply.body.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
    );
    assert_eq!(reply.pieces.len(), 13, "{:?}", reply.pieces);
    // The first is there long before the last has been sent.
    let (first, last) = (reply.pieces[0], reply.pieces[12]);
    assert!(last - first >= pause * 11, "{first:?} {last:?}");
    assert!(first < pause * 6, "{first:?}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    let reply = through(Answer::text("A fish.").in_pieces_of(1).dropped_after(5)).await;
    assert_eq!((reply.status, reply.is_whole), (200, false));
    assert_eq!(reply.body.matches("event: ").count(), 5);
}

#[tokio::test]
async fn the_endpoint_notices_when_the_client_goes() {
    let endpoint = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let forwarder = forwarder_to(&format!("http://{}", endpoint.local_addr().unwrap())).await;
    let mut client = Client::connect(&forwarder.url()).await;
    let headers = [("x-api-key", forwarder.token())];
    let client_goes = async {
        let send = client.send("POST", "/v1/messages", &headers, question(true).to_string());
        let response = send.await;
        drop((response, client));
    };
    let endpoint_waits = async {
        let (mut connection, _) = endpoint.accept().await.unwrap();
        let mut head = vec![0; 65_536];
        assert!(connection.read(&mut head).await.unwrap() > 0);
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc").await.unwrap();
        // Nothing more is sent; the end of the connection is all that can be read.
        while connection.read(&mut head).await.is_ok_and(|count| count > 0) {}
    };
    let both = async { tokio::join!(client_goes, endpoint_waits) };
    tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
}

#[tokio::test]
async fn a_slow_client_slows_the_endpoint_instead_of_filling_the_memory() {
    const ALL: usize = 64 << 20;
    let endpoint = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let forwarder = forwarder_to(&format!("http://{}", endpoint.local_addr().unwrap())).await;
    let sent = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let sent = Arc::clone(&sent);
        async move {
            let (mut connection, _) = endpoint.accept().await.unwrap();
            let mut head = vec![0; 65_536];
            assert!(connection.read(&mut head).await.unwrap() > 0);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {ALL}\r\n\r\n");
            connection.write_all(head.as_bytes()).await.unwrap();
            let piece = vec![b'x'; 64 << 10];
            while sent.load(Ordering::Relaxed) < ALL {
                connection.write_all(&piece).await.unwrap();
                sent.fetch_add(piece.len(), Ordering::Relaxed);
            }
        }
    });

    let mut client = Client::connect(&forwarder.url()).await;
    let headers = [("x-api-key", forwarder.token())];
    let response = client.send("POST", "/v1/messages", &headers, question(true).to_string()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // What the kernel holds for three connections is some megabytes.
    let early = sent.load(Ordering::Relaxed);
    assert!(early < ALL / 2, "{early} bytes were sent before any was read");

    let mut body = response.into_body();
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        received += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(received, ALL);
}

#[tokio::test]
async fn a_large_request_goes_through() {
    let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    let mut body = question(false);
    body["messages"][0]["content"] = "x".repeat(8 << 20).into();
    let mut client = Client::connect(&forwarder.url()).await;
    let headers = [("x-api-key", forwarder.token())];
    let begun = Instant::now();
    let response = client.send("POST", "/v1/messages", &headers, body.to_string()).await;
    assert_eq!(response.status(), 200, "{:?}", begun.elapsed());
    assert_eq!(server.requests().first().unwrap().body, body);
}
