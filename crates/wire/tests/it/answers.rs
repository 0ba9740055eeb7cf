//! Answers that arrive whole.

use std::collections::BTreeMap;

use mle_star_wire::{Answer, Request, Script, Server, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::client::{End, ask, question, send};

#[tokio::test]
async fn a_message_is_one_object_when_it_is_not_streamed() {
    let usage = Usage { input: 10, output: 5, cache_creation: 3, cache_read: 2 };
    let server = Server::start(Script::new([Answer::text("A fish.")
        .and_tool_use("Bash", json!({"command": "ls"}))
        .with_usage(usage)]))
    .await
    .unwrap();

    let reply = ask(&server, &question(false)).await.unwrap();

    assert_eq!((reply.status, reply.content_type.as_str()), (200, "application/json"));
    assert_eq!(
        reply.json(),
        json!({
            "id": "msg_wire_000001", "type": "message", "role": "assistant", "model": "m",
            "content": [
                {"type": "text", "text": "A fish."},
                {"type": "tool_use", "id": "toolu_wire_000001_1", "name": "Bash",
                 "input": {"command": "ls"}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 3,
                      "cache_read_input_tokens": 2, "output_tokens": 5},
        })
    );
    assert_eq!(server.usage(), BTreeMap::from([("m".to_owned(), usage)]));
}

#[tokio::test]
async fn a_streamed_message_comes_in_pieces_and_in_the_order_of_the_api() {
    let server = Server::start(Script::new([Answer::thinking("hm")
        .and_text("A fish.")
        .and_tool_use("Bash", json!({"command": "ls"}))
        .in_pieces_of(4)
        .with_stop_reason("max_tokens")]))
    .await
    .unwrap();

    let reply = ask(&server, &question(true)).await.unwrap();

    assert_eq!(reply.end, End::Whole);
    assert_eq!(reply.content_type, "text/event-stream; charset=utf-8");
    let block = |deltas: usize| {
        let deltas = vec!["content_block_delta"; deltas];
        [&["content_block_start"], &deltas[..], &["content_block_stop"]].concat()
    };
    let expected = [
        vec!["message_start", "ping"],
        block(2),
        block(2),
        block(4),
        vec!["message_delta", "message_stop"],
    ];
    assert_eq!(reply.kinds(), expected.concat());
    let events = reply.events();
    assert_eq!(texts(&events, "/delta/text"), "A fish.");
    assert_eq!(texts(&events, "/delta/thinking"), "hm");
    assert_eq!(texts(&events, "/delta/partial_json"), r#"{"command":"ls"}"#);
    assert_eq!(texts(&events, "/delta/stop_reason"), "max_tokens");
}

#[tokio::test]
async fn an_error_has_its_status_its_headers_and_the_form_of_the_api() {
    let server = Server::start(Script::new([Answer::error(429, "rate_limit_error", "Slow down")
        .with_header("retry-after", "7")
        .with_header("not a header", "x")]))
    .await
    .unwrap();

    let reply = ask(&server, &question(true)).await.unwrap();

    assert_eq!((reply.status, reply.retry_after.as_deref()), (429, Some("7")));
    assert_eq!(
        reply.json(),
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}})
    );
    assert_eq!(server.usage()["m"], Usage::default());
}

#[tokio::test]
async fn a_script_that_is_over_says_so_and_one_that_repeats_does_not_end() {
    let once = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    assert_eq!(ask(&once, &question(false)).await.unwrap().status, 200);
    let over = ask(&once, &question(false)).await.unwrap();
    assert_eq!(over.status, 400);
    assert_eq!(over.json()["error"]["message"], "the script has no answer left");

    let script = Script::new([Answer::text("a"), Answer::text("b")]).repeating_last();
    let repeating = Server::start(script).await.unwrap();
    let mut said = Vec::new();
    for _ in 0..4 {
        said.push(ask(&repeating, &question(false)).await.unwrap().json()["content"][0].clone());
    }
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(said, [text("a"), text("b"), text("b"), text("b")]);
}

#[tokio::test]
async fn a_closure_sees_what_is_asked_and_requests_are_kept() {
    let server = Server::start(|request: &Request| {
        Answer::text(format!("{} {:?}", request.last_user_text(), request.session))
    })
    .await
    .unwrap();
    let mut body = question(false);
    body["metadata"] = json!({"user_id": r#"{"session_id":"s-1"}"#});

    let reply = ask(&server, &body).await.unwrap();

    assert_eq!(reply.json()["content"][0]["text"], r#"What is it? Some("s-1")"#);
    let requests = server.requests();
    let [request] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!((&request.body, request.header("X-Api-Key")), (&body, Some("x")));
}

#[tokio::test]
async fn other_places_are_answered_as_the_api_does() {
    let server = Server::start(Script::new([])).await.unwrap();
    let status = async |method, path, body: &'static str| {
        send(&server, method, path, body.into()).await.unwrap().status
    };
    assert_eq!(status("HEAD", "/", "").await, 200);
    assert_eq!(status("GET", "/", "").await, 200);
    assert_eq!(status("GET", "/v1/models", "").await, 404);
    assert_eq!(status("GET", "/v1/messages", "").await, 404);
    assert_eq!(status("POST", "/v1/messages", "{").await, 400);
    assert_eq!(status("POST", "/v1/messages", "[]").await, 400);
    let counted = send(&server, "POST", "/v1/messages/count_tokens", "{\"a\": 1}".into()).await;
    assert_eq!(counted.unwrap().json(), json!({"input_tokens": 2}));
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn many_are_served_at_the_same_time() {
    let wait = std::time::Duration::from_millis(300);
    let server =
        Server::start(move |_: &Request| Answer::text("a").delayed_by(wait)).await.unwrap();
    let begun = std::time::Instant::now();
    let question = question(true);
    let replies = futures::future::join_all((0..20).map(|_| ask(&server, &question))).await;
    assert!(replies.iter().all(|reply| reply.as_ref().unwrap().end == End::Whole));
    assert!(begun.elapsed() < wait * 10, "{:?}", begun.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the text and the size of its pieces: what arrives is what was said.
    #[test]
    fn a_streamed_text_is_put_together_again(text in "\\PC{0,60}", piece in 0_usize..9) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let said = runtime.block_on(async {
            let answer = Answer::text(text.clone()).in_pieces_of(piece);
            let server = Server::start(Script::new([answer])).await.unwrap();
            texts(&ask(&server, &question(true)).await.unwrap().events(), "/delta/text")
        });
        prop_assert_eq!(said, text);
    }
}

fn texts(events: &[Value], at: &str) -> String {
    events.iter().filter_map(|event| event.pointer(at).and_then(Value::as_str)).collect()
}
