//! Connections of the program.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_rustls::rustls::crypto;

use crate::Upstream;
use crate::forward::Session;

/// Listens on a port of its own on 127.0.0.1. Dropping it closes the port and every connection, and
/// its token is worth nothing any more.
pub struct Forwarder {
    address: SocketAddr,
    token: Arc<str>,
    /// Holds one task, which holds those of the connections: all end with this.
    _accepting: JoinSet<()>,
}

impl Forwarder {
    /// Starts to forward on the current tokio runtime. Nothing is sent before the first request.
    pub async fn start(upstream: Upstream) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let token = new_token()?;
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::new(upstream), Arc::clone(&token)));
        Ok(Self { address, token, _accepting: accepting })
    }

    /// The address for `ANTHROPIC_BASE_URL`, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token for `ANTHROPIC_API_KEY` (or `ANTHROPIC_AUTH_TOKEN`): random, and of this forwarder
    /// only.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder").field("address", &self.address).finish_non_exhaustive()
    }
}

fn new_token() -> io::Result<Arc<str>> {
    let mut bytes = [0_u8; 32];
    crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the machine has no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

async fn accept(listener: TcpListener, upstream: Arc<Upstream>, token: Arc<str>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_ended) = connections.join_next() => continue,
        };
        match accepted {
            Ok((connection, _)) => {
                let session = Session {
                    upstream: Arc::clone(&upstream),
                    token: Arc::clone(&token),
                    idle: Mutex::new(None),
                };
                connections.spawn(serve(connection, session));
            }
            // No descriptors are left: others must be closed before any can be opened.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(connection: TcpStream, session: Session) {
    // Small pieces are passed on at once; it works without, only later.
    connection.set_nodelay(true).ok();
    let service = service_fn(async |request| Ok::<_, Infallible>(session.answer(request).await));
    // An error here is a program that went away, or an answer that broke off; the program sees it.
    http1::Builder::new().serve_connection(TokioIo::new(connection), service).await.ok();
}
