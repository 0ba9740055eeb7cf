//! One request: checked, sent on with another key, and answered as the endpoint answers.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use serde_json::json;
use tokio::sync::Mutex;

use crate::connect::{Connection, connect};
use crate::{Credential, Upstream};

pub(crate) type RequestBody = Incoming;
pub(crate) type ResponseBody = BoxBody<Bytes, hyper::Error>;

/// A connection that was idle for longer may be closed by the other side at any moment.
const REUSE_TIME: Duration = Duration::from_secs(4);

/// What one connection of the program needs; its requests come one after another.
pub(crate) struct Session {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) token: Arc<str>,
    pub(crate) idle: Mutex<Option<(Connection, Instant)>>,
}

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

impl Session {
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        if !self.knows(request.headers()) {
            let message = "the token is not that of this forwarder";
            return failure(StatusCode::UNAUTHORIZED, "authentication_error", message);
        }
        let Some(uri) = self.target(request.method(), request.uri()) else {
            let message = "only requests to the Messages API are forwarded";
            return failure(StatusCode::NOT_FOUND, "not_found_error", message);
        };
        match self.forward(request, uri).await {
            Ok(response) => response,
            Err(error) => failure(StatusCode::BAD_GATEWAY, "api_error", &chain(&*error)),
        }
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let given = headers
            .get(X_API_KEY)
            .or_else(|| headers.get(AUTHORIZATION))
            .map_or(&b""[..], HeaderValue::as_bytes);
        let given = given.strip_prefix(b"Bearer ").unwrap_or(given);
        same(given, self.token.as_bytes())
    }

    /// The address of the same path at the endpoint.
    fn target(&self, method: &Method, uri: &Uri) -> Option<Uri> {
        let path = uri.path();
        if !self.upstream.service.has(method, path) {
            return None;
        }
        let query = uri.query().map(|it| format!("?{it}")).unwrap_or_default();
        let base = self.upstream.uri.path().trim_end_matches('/');
        let mut parts = self.upstream.uri.clone().into_parts();
        parts.path_and_query = Some(format!("{base}{path}{query}").parse().ok()?);
        Uri::from_parts(parts).ok()
    }

    async fn forward(
        &self,
        request: Request<Incoming>,
        uri: Uri,
    ) -> Result<Response<ResponseBody>, Box<dyn Error + Send + Sync>> {
        let mut connection = self.connection().await?;
        let (mut head, body) = request.into_parts();
        strip(&mut head.headers);
        for name in [HOST, X_API_KEY, AUTHORIZATION] {
            head.headers.remove(name);
        }
        for Credential { header, value } in &self.upstream.added {
            head.headers.insert(header.clone(), value.clone());
        }
        let authority = uri.authority().map_or("", |it| it.as_str());
        head.headers.insert(HOST, HeaderValue::from_str(authority)?);
        head.uri = match &connection.proxied {
            Some(proxied) => {
                if let Some(value) = &proxied.authorization {
                    head.headers.insert(PROXY_AUTHORIZATION, value.clone());
                }
                uri
            }
            None => uri.path_and_query().map_or_else(Uri::default, |it| it.clone().into()),
        };
        head.version = hyper::Version::HTTP_11;

        let answer = connection.sender.send_request(Request::from_parts(head, body)).await?;
        let (mut head, body) = answer.into_parts();
        strip(&mut head.headers);
        head.version = hyper::Version::HTTP_11;
        // The connection drives the body that is still to come, so both are kept until the next
        // request, which comes only when this body is through.
        *self.idle.lock().await = Some((connection, Instant::now()));
        Ok(Response::from_parts(head, body.boxed()))
    }

    async fn connection(&self) -> Result<Connection, crate::connect::ConnectError> {
        if let Some((mut connection, used)) = self.idle.lock().await.take() {
            // A long answer makes a connection look idle; then it only costs a new one.
            if used.elapsed() < REUSE_TIME && connection.sender.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        connect(&self.upstream).await
    }
}

/// Takes out what concerns one connection only.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let own = [
        CONNECTION,
        CONTENT_LENGTH,
        EXPECT,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in named.into_iter().chain(own) {
        headers.remove(name);
    }
}

/// An error as the API writes it.
fn failure(status: StatusCode, kind: &str, message: &str) -> Response<ResponseBody> {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = format!("the request could not be forwarded: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Compares in a time that does not tell how much is right.
fn same(given: &[u8], own: &[u8]) -> bool {
    given.len() == own.len()
        && given.iter().zip(own).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}
