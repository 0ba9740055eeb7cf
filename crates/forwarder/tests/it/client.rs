//! A client that sees pieces as they arrive.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mle_star_forwarder::{Credential, Forwarder, Upstream, UpstreamError};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub(crate) const KEY: &str = "sk-ant-real-key-0123456789";

/// The endpoint that these variables describe.
pub(crate) fn described(variables: &[(&str, impl AsRef<str>)]) -> Result<Upstream, UpstreamError> {
    Upstream::from_variables(|name| {
        let found = variables.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.as_ref().to_owned())
    })
}

/// A connection to a forwarder that stays open.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    _driver: JoinSet<()>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// When each piece came, counted from the request.
    pub(crate) pieces: Vec<Duration>,
    pub(crate) is_whole: bool,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(crate) async fn forwarder_to(url: &str) -> Forwarder {
    let upstream = Upstream::new(url, Credential::api_key(KEY).unwrap()).unwrap();
    Forwarder::start(upstream).await.unwrap()
}

pub(crate) fn question(stream: bool) -> Value {
    json!({"model": "m", "max_tokens": 9, "stream": stream,
        "messages": [{"role": "user", "content": "What is it?"}]})
}

impl Client {
    pub(crate) async fn connect(url: &str) -> Self {
        let host = url.strip_prefix("http://").unwrap().to_owned();
        let stream = TcpStream::connect(&host).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(async {
            connection.await.ok();
        });
        Self { sender, host, _driver: driver }
    }

    /// Sends a request with these headers; the body is still to come.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response<Incoming> {
        self.sender.ready().await.unwrap();
        let mut request = Request::builder().method(method).uri(path).header("host", &self.host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.send_request(request.body(Full::new(body.into())).unwrap()).await.unwrap()
    }

    /// Asks for a message with a token.
    pub(crate) async fn ask(&mut self, token: &str, stream: bool) -> Reply {
        let begun = Instant::now();
        let body = question(stream).to_string();
        let headers = [("x-api-key", token), ("content-type", "application/json")];
        let response = self.send("POST", "/v1/messages?beta=true", &headers, body).await;
        read(response, begun).await
    }
}

/// Asks over a connection of its own.
pub(crate) async fn ask(forwarder: &Forwarder, stream: bool) -> Reply {
    Client::connect(&forwarder.url()).await.ask(forwarder.token(), stream).await
}

pub(crate) async fn read(response: Response<Incoming>, begun: Instant) -> Reply {
    let status = response.status().as_u16();
    let mut reply = Reply { status, body: String::new(), pieces: Vec::new(), is_whole: true };
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                let data = frame.into_data().unwrap();
                reply.body.push_str(std::str::from_utf8(&data).unwrap());
                reply.pieces.push(begun.elapsed());
            }
            Err(_) => {
                reply.is_whole = false;
                break;
            }
        }
    }
    reply
}
