//! Connections to the endpoint: directly or through a proxy, with or without TLS.

use std::time::Duration;

use hyper::Uri;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HeaderValue;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::Upstream;
use crate::forward::RequestBody;

/// How long a connection may take to come about.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The longest answer of a proxy that is read.
const MAX_PROXY_HEAD: usize = 16 << 10;

/// A connection that requests can be sent over.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<RequestBody>,
    /// Set if requests must name the whole address, because a proxy reads them.
    pub(crate) proxied: Option<Proxied>,
    /// Drives the connection, and ends with it.
    _driver: JoinSet<()>,
}

/// A proxy that reads requests instead of passing bytes on.
#[derive(Clone)]
pub(crate) struct Proxied {
    pub(crate) authorization: Option<HeaderValue>,
}

/// Bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Why there is no connection. No text here has a key or a password in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{what} took longer than {} s", CONNECT_TIME.as_secs())]
    TimedOut { what: String },
    #[error("cannot connect to {address}")]
    Tcp { address: String, source: std::io::Error },
    #[error("the proxy {address} refused with status {status}")]
    Refused { address: String, status: String },
    #[error("{host} is no name that TLS can check")]
    Name { host: String },
    #[error("TLS with {host} failed")]
    Tls { host: String, source: std::io::Error },
    #[error("HTTP with {host} failed")]
    Http { host: String, source: hyper::Error },
}

pub(crate) async fn connect(upstream: &Upstream) -> Result<Connection, ConnectError> {
    let host = upstream.uri.host().unwrap_or_default().to_owned();
    let timed_out = || ConnectError::TimedOut { what: format!("connecting to {host}") };
    tokio::time::timeout(CONNECT_TIME, connect_slowly(upstream, &host))
        .await
        .map_err(|_| timed_out())?
}

async fn connect_slowly(upstream: &Upstream, host: &str) -> Result<Connection, ConnectError> {
    let is_https = upstream.uri.scheme_str() == Some("https");
    let port = upstream.uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let Some(proxy) = upstream.proxies.intercept(&upstream.uri) else {
        let stream = dial(host, port).await?;
        return finish(upstream, host, stream, is_https, None).await;
    };
    let proxy_host = proxy.uri().host().unwrap_or_default();
    let is_secure = proxy.uri().scheme_str() == Some("https");
    let default_port = if is_secure { 443 } else { 80 };
    let stream = dial(proxy_host, proxy.uri().port_u16().unwrap_or(default_port)).await?;
    let mut stream: Box<dyn Stream> = if is_secure {
        Box::new(secure(upstream, proxy_host, stream).await?)
    } else {
        Box::new(stream)
    };
    let authorization = proxy.basic_auth().cloned();
    if is_https {
        tunnel(&mut stream, proxy.uri(), host, port, authorization.as_ref()).await?;
        finish(upstream, host, stream, is_https, None).await
    } else {
        finish(upstream, host, stream, is_https, Some(Proxied { authorization })).await
    }
}

async fn dial(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    // An IPv6 address has brackets in a URL, and none elsewhere.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((name, port))
        .await
        .map_err(|source| ConnectError::Tcp { address: format!("{host}:{port}"), source })?;
    // Small pieces are passed on at once; it works without, only later.
    stream.set_nodelay(true).ok();
    Ok(stream)
}

/// Asks a proxy to pass on bytes.
async fn tunnel(
    stream: &mut impl Stream,
    proxy: &Uri,
    host: &str,
    port: u16,
    authorization: Option<&HeaderValue>,
) -> Result<(), ConnectError> {
    let address = proxy.authority().map_or("", |it| it.as_str().rsplit('@').next().unwrap_or(""));
    let failed = |source| ConnectError::Tcp { address: address.to_owned(), source };
    let mut head =
        format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(value) = authorization {
        head.extend_from_slice(b"Proxy-Authorization: ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    stream.write_all(&head).await.map_err(failed)?;

    // Byte by byte, so that nothing of what comes after is swallowed.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.map_err(failed)?;
        answer.push(byte);
        if answer.len() > MAX_PROXY_HEAD {
            break;
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).unwrap_or_default();
    if !answer.starts_with("HTTP/1.") || !status.starts_with('2') || status.len() != 3 {
        let status: String = status.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        return Err(ConnectError::Refused { address: address.to_owned(), status });
    }
    Ok(())
}

async fn finish(
    upstream: &Upstream,
    host: &str,
    stream: impl Stream + 'static,
    is_https: bool,
    proxied: Option<Proxied>,
) -> Result<Connection, ConnectError> {
    if is_https {
        handshake(host, secure(upstream, host, stream).await?, proxied).await
    } else {
        handshake(host, stream, proxied).await
    }
}

async fn secure<S: Stream>(
    upstream: &Upstream,
    host: &str,
    stream: S,
) -> Result<TlsStream<S>, ConnectError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name =
        ServerName::try_from(bare).map_err(|_| ConnectError::Name { host: host.to_owned() })?;
    TlsConnector::from(upstream.tls.clone())
        .connect(name, stream)
        .await
        .map_err(|source| ConnectError::Tls { host: host.to_owned(), source })
}

async fn handshake(
    host: &str,
    stream: impl Stream + 'static,
    proxied: Option<Proxied>,
) -> Result<Connection, ConnectError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|source| ConnectError::Http { host: host.to_owned(), source })?;
    let mut driver = JoinSet::new();
    driver.spawn(async {
        // Whoever reads the answer sees the same error.
        connection.await.ok();
    });
    Ok(Connection { sender, proxied, _driver: driver })
}
