//! Connections: requests in, replies out.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::dialect::Path;
use crate::render::{Reply, Step, error_body, estimate_tokens, render};
use crate::{Request, Respond, Usage};

/// A server on a port of its own on 127.0.0.1. Dropping it closes the port and every connection.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Holds one task, which holds those of the connections: all end with this.
    _accepting: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    log: Mutex<Log>,
    answered: AtomicU64,
}

#[derive(Debug, Default)]
struct Log {
    requests: VecDeque<(usize, Arc<Request>)>,
    bytes: usize,
    usage: BTreeMap<String, Usage>,
}

/// Requests above this are refused, as the API does.
const MAX_BODY: usize = 32 << 20;
/// The oldest requests are forgotten when all of them are more than this.
const MAX_LOG: usize = 256 << 20;
/// What has been written must reach the client before the connection is torn down under it.
const BEFORE_A_DROP: Duration = Duration::from_millis(20);

impl Server {
    /// Starts to serve on the current tokio runtime.
    pub async fn start(responder: impl Respond) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::new(responder), Arc::clone(&shared)));
        Ok(Self { address, shared, _accepting: accepting })
    }

    /// The address for `ANTHROPIC_BASE_URL`, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests for messages so far, oldest first, whatever they were answered. Beyond 256 MiB
    /// the oldest are forgotten.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.log().requests.iter().map(|(_, request)| Arc::clone(request)).collect()
    }

    /// The tokens that all messages sent so far were said to have taken, by model. A message counts
    /// when it is begun, even if its connection is dropped.
    pub fn usage(&self) -> BTreeMap<String, Usage> {
        self.shared.log().usage.clone()
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn push(&mut self, size: usize, request: Arc<Request>) {
        self.bytes += size;
        self.requests.push_back((size, request));
        while self.bytes > MAX_LOG {
            let Some((size, _)) = self.requests.pop_front() else { break };
            self.bytes -= size;
        }
    }
}

async fn accept<R: Respond>(listener: TcpListener, responder: Arc<R>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_ended) = connections.join_next() => continue,
        };
        match accepted {
            Ok((connection, _)) => {
                connections.spawn(serve(connection, Arc::clone(&responder), Arc::clone(&shared)));
            }
            // No descriptors are left: others must be closed before any can be opened.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve<R: Respond>(connection: TcpStream, responder: Arc<R>, shared: Arc<Shared>) {
    // Events are small and each counts; a connection that cannot be set up so works as well.
    connection.set_nodelay(true).ok();
    let service = service_fn(|incoming| answer(incoming, &*responder, &shared));
    // An error here is a client that went away or a drop that was asked for.
    http1::Builder::new().serve_connection(TokioIo::new(connection), service).await.ok();
}

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Dropped>>>;

/// The connection is to be closed now. As an error it makes the HTTP server do so.
#[derive(Debug)]
struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("connection dropped on purpose")
    }
}

impl std::error::Error for Dropped {}

async fn answer<R: Respond>(
    incoming: hyper::Request<Incoming>,
    responder: &R,
    shared: &Shared,
) -> Result<Response<Body>, Dropped> {
    let (head, body) = incoming.into_parts();
    let (method, path) = (&head.method, head.uri.path());
    if (method == Method::GET || method == Method::HEAD) && path == "/" {
        return Ok(plain(StatusCode::OK, "{}".into()));
    }
    let Some(said) = Path::read(path).filter(|_| method == Method::POST) else {
        let message = format!("nothing is served at {method} {path}");
        return Ok(failure(StatusCode::NOT_FOUND, "not_found_error", &message));
    };
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        let message = "the body is too large or broke off";
        return Ok(failure(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message));
    };
    let bytes = body.to_bytes();
    let mut parsed = match serde_json::from_slice(&bytes) {
        Ok(Value::Object(parsed)) => parsed,
        Ok(_) => return Ok(invalid("the body is not an object")),
        Err(error) => return Ok(invalid(&format!("the body is not JSON: {error}"))),
    };
    if said.counts {
        let tokens = json!({"input_tokens": estimate_tokens(bytes.len())});
        return Ok(plain(StatusCode::OK, tokens.to_string().into()));
    }

    said.complete(&mut parsed);
    let request = Arc::new(Request::new(parsed.into(), head.headers, said.framing));
    shared.log().push(bytes.len(), Arc::clone(&request));
    drop(bytes);
    let answer = responder.respond(&request).await;
    let number = shared.answered.fetch_add(1, Ordering::Relaxed) + 1;
    let reply = render(answer, &request, number);
    *shared.log().usage.entry(request.model.clone()).or_default() += reply.usage;
    responder.answered(&request, reply.usage);
    drop(request);
    send(reply).await
}

async fn send(reply: Reply) -> Result<Response<Body>, Dropped> {
    let Reply { status, headers, delay, steps, usage: _ } = reply;
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    // Nothing at all was to be sent, so the status is not either.
    match steps.first() {
        Some(Step::Drop) => return Err(Dropped),
        Some(Step::Hang) => std::future::pending().await,
        Some(Step::Send(_) | Step::Wait(_)) | None => {}
    }
    let mut response = Response::new(StreamBody::new(body_of(steps)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value))
        {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

fn body_of(steps: Vec<Step>) -> BoxStream<'static, Result<Frame<Bytes>, Dropped>> {
    stream::iter(steps)
        .filter_map(async |step| match step {
            Step::Send(bytes) => Some(Ok(Frame::data(bytes))),
            Step::Wait(pause) => {
                tokio::time::sleep(pause).await;
                None
            }
            Step::Drop => {
                tokio::time::sleep(BEFORE_A_DROP).await;
                Some(Err(Dropped))
            }
            Step::Hang => std::future::pending().await,
        })
        .boxed()
}

fn plain(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(StreamBody::new(body_of(vec![Step::Send(body)])));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn failure(status: StatusCode, kind: &str, message: &str) -> Response<Body> {
    plain(status, error_body(kind, message))
}

fn invalid(message: &str) -> Response<Body> {
    failure(StatusCode::BAD_REQUEST, "invalid_request_error", message)
}
