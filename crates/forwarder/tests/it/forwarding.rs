//! Who is let through, and what arrives at the other end.

use std::time::Instant;

use mle_star_forwarder::{Credential, Forwarder, Upstream};
use mle_star_wire::{Answer, Script, Server};
use serde_json::json;
use tokio::net::TcpListener;

use crate::client::{Client, KEY, ask, forwarder_to, question, read};

#[tokio::test]
async fn a_request_arrives_with_the_real_key_and_nothing_else_changed() {
    let server = Server::start(Script::new([Answer::text("A fish.")])).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;

    let mut client = Client::connect(&forwarder.url()).await;
    let headers = [
        ("x-api-key", forwarder.token()),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "a,b"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
    ];
    let body = question(false).to_string();
    let response = client.send("POST", "/v1/messages?beta=true", &headers, body).await;
    assert_eq!(response.headers()["request-id"], "req_wire_000001");
    let reply = read(response, Instant::now()).await;

    assert_eq!((reply.status, reply.is_whole), (200, true));
    assert_eq!(reply.json()["content"], json!([{"type": "text", "text": "A fish."}]));
    let requests = server.requests();
    let [request] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(request.body, question(false));
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("anthropic-beta"), Some("a,b"));
    assert_eq!(request.header("x-hop"), None);
    assert_eq!(request.header("host"), server.url().strip_prefix("http://"));
}

#[tokio::test]
async fn a_bearer_token_is_replaced_too() {
    let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    let upstream = Upstream::new(&server.url(), Credential::bearer(KEY).unwrap()).unwrap();
    let forwarder = Forwarder::start(upstream).await.unwrap();

    let mut client = Client::connect(&forwarder.url()).await;
    let bearer = format!("Bearer {}", forwarder.token());
    let headers = [("authorization", bearer.as_str())];
    let response = client.send("POST", "/v1/messages", &headers, question(false).to_string()).await;

    assert_eq!(response.status(), 200);
    let requests = server.requests();
    let request = requests.first().unwrap();
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(request.header("x-api-key"), None);
}

#[tokio::test]
async fn other_tokens_get_401_and_nothing_is_forwarded() {
    let server = Server::start(Script::new([])).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    let other = forwarder_to(&server.url()).await;
    assert_ne!(forwarder.token(), other.token());
    assert_eq!(forwarder.token().len(), 64);

    for token in ["", "x", KEY, other.token(), &forwarder.token()[1..]] {
        let reply = Client::connect(&forwarder.url()).await.ask(token, true).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["type"]),
            (401, &json!("authentication_error"))
        );
    }
    let reply = Client::connect(&forwarder.url())
        .await
        .send("POST", "/v1/messages", &[], question(true).to_string())
        .await;
    assert_eq!(reply.status(), 401);
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn only_paths_of_the_api_are_forwarded() {
    let server = Server::start(Script::new([])).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    let headers = [("x-api-key", forwarder.token())];
    for path in
        ["/", "/v1", "/v2/x", "/v1/../admin", "/v1//x", "/v1/%2e%2e/x", "/v1/./x", "/api/v1/x"]
    {
        let mut client = Client::connect(&forwarder.url()).await;
        let reply = read(client.send("GET", path, &headers, "").await, Instant::now()).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(
            reply.json()["error"]["message"],
            "only requests to the Messages API are forwarded"
        );
    }
    let mut client = Client::connect(&forwarder.url()).await;
    let counted = client.send("POST", "/v1/messages/count_tokens", &headers, "{}").await;
    assert_eq!(read(counted, Instant::now()).await.json(), json!({"input_tokens": 1}));
}

#[tokio::test]
async fn errors_of_the_endpoint_are_passed_on_with_their_headers() {
    let error = Answer::error(429, "rate_limit_error", "Slow down").with_header("retry-after", "7");
    let server = Server::start(Script::new([error])).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    let mut client = Client::connect(&forwarder.url()).await;
    let headers = [("x-api-key", forwarder.token())];
    let response = client.send("POST", "/v1/messages", &headers, question(true).to_string()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    let reply = read(response, Instant::now()).await;
    assert_eq!(reply.json()["error"]["message"], "Slow down");
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_a_502_without_the_key() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let forwarder = forwarder_to(&format!("http://{nobody}")).await;
    let reply = ask(&forwarder, true).await;
    assert_eq!((reply.status, &reply.json()["error"]["type"]), (502, &json!("api_error")));
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    let expected = format!(
        "the request could not be forwarded: cannot connect to {nobody}: Connection refused"
    );
    assert!(message.starts_with(&expected), "{message}");
    assert!(!reply.body.contains(KEY));
}

#[tokio::test]
async fn an_endpoint_that_closes_without_an_answer_is_a_502() {
    let script = Script::new([Answer::refusal_to_answer(), Answer::text("a")]);
    let server = Server::start(script).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    let mut client = Client::connect(&forwarder.url()).await;
    assert_eq!(client.ask(forwarder.token(), true).await.status, 502);
    // The connection of the client has not suffered.
    assert_eq!(client.ask(forwarder.token(), false).await.status, 200);
}

#[tokio::test]
async fn a_connection_is_used_again_and_many_go_side_by_side() {
    let server = Server::start(Script::new([Answer::text("a")]).repeating_last()).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    let mut client = Client::connect(&forwarder.url()).await;
    for _ in 0..5 {
        assert_eq!(client.ask(forwarder.token(), true).await.status, 200);
    }
    let (a, b, c) =
        tokio::join!(ask(&forwarder, true), ask(&forwarder, false), ask(&forwarder, true));
    assert!([a, b, c].iter().all(|reply| reply.status == 200 && reply.is_whole));
    assert_eq!(server.requests().len(), 8);
}

#[tokio::test]
async fn an_endpoint_may_have_a_path_of_its_own() {
    let server = Server::start(Script::new([])).await.unwrap();
    let forwarder = forwarder_to(&format!("{}/gateway/", server.url())).await;
    let reply = ask(&forwarder, false).await;
    let message = json!("nothing is served at POST /gateway/v1/messages");
    assert_eq!((reply.status, &reply.json()["error"]["message"]), (404, &message));
}

#[tokio::test]
async fn a_dropped_forwarder_closes_its_port() {
    let server = Server::start(Script::new([Answer::text("a")])).await.unwrap();
    let forwarder = forwarder_to(&server.url()).await;
    let address = forwarder.url().strip_prefix("http://").unwrap().to_owned();
    assert_eq!(ask(&forwarder, false).await.status, 200);
    drop(forwarder);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
