//! A client that keeps what came before a connection broke.

use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mle_star_wire::Server;
use serde_json::{Value, json};
use tokio::net::TcpStream;

#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: String,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    Whole,
    Broken,
    TimedOut,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of each event, in order; their names must agree with their types.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.body
            .split_terminator("\n\n")
            .map(|event| {
                let (name, data) = event.split_once('\n').unwrap();
                let data: Value =
                    serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
                data
            })
            .collect()
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

/// A question as plain as can be.
pub(crate) fn question(stream: bool) -> Value {
    json!({"model": "m", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "What is it?"}]})
}

/// Asks, and says how far the answer came within two seconds; nothing if not one byte came.
pub(crate) async fn ask(server: &Server, body: &Value) -> Option<Reply> {
    send(server, "POST", "/v1/messages?beta=true", body.to_string().into()).await
}

pub(crate) async fn send(server: &Server, method: &str, path: &str, body: Bytes) -> Option<Reply> {
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let connection = TcpStream::connect(&address).await.unwrap();
    let (mut sender, driver) = http1::handshake(TokioIo::new(connection)).await.unwrap();
    let talk = async move {
        let request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("host", address)
            .header("x-api-key", "x")
            .body(Full::new(body))
            .unwrap();
        let limit = Duration::from_secs(2);
        let response =
            tokio::time::timeout(limit, sender.send_request(request)).await.ok()?.ok()?;
        let text = |name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let mut reply = Reply {
            status: response.status().as_u16(),
            content_type: text("content-type").unwrap(),
            retry_after: text("retry-after"),
            body: String::new(),
            end: End::Whole,
        };
        let mut body = response.into_body();
        loop {
            match tokio::time::timeout(limit, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap();
                    reply.body.push_str(std::str::from_utf8(&data).unwrap());
                }
                Ok(Some(Err(_))) => reply.end = End::Broken,
                Err(_) => reply.end = End::TimedOut,
                Ok(None) => return Some(reply),
            }
            if reply.end != End::Whole {
                return Some(reply);
            }
        }
    };
    // The connection is driven beside the talk, and is done when the talk is.
    match select(Box::pin(talk), Box::pin(driver)).await {
        Either::Left((reply, _)) => reply,
        Either::Right((_, talk)) => talk.await,
    }
}
