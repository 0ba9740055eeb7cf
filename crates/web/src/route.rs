//! What can be asked for.

use std::convert::Infallible;
use std::rc::Rc;

use bytes::Bytes;
use futures::stream::LocalBoxStream;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Request, Response, StatusCode, Uri};
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;

use crate::gate::{Gate, Refusal, query};
use crate::runs::Runs;
use crate::server::Patience;
use crate::{assets, detail, live};

/// A whole text, or one that goes on for as long as it is read.
pub(crate) type Body = Either<Full<Bytes>, StreamBody<LocalBoxStream<'static, Piece>>>;

/// A piece of a text that goes on.
pub(crate) type Piece = Result<Frame<Bytes>, Infallible>;

const JSON: &str = "application/json";

/// Nothing from elsewhere, nothing inline, and no text is ever read as markup: with the last two,
/// the browser refuses to the page's own code what could turn data into code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// All that requests are answered from.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) gate: Gate,
    pub(crate) runs: Runs,
    pub(crate) patience: Patience,
    pub(crate) ending: watch::Receiver<bool>,
}

impl Site {
    /// Answers a request.
    pub(crate) async fn answer<B>(self: Rc<Self>, request: Request<B>) -> Response<Body> {
        let uri = request.uri();
        let mut answer = match self.gate.judge(request.method(), uri, request.headers()) {
            Ok(()) if uri.path() == "/api/prompt" => self.prompt(uri).await,
            Ok(()) => self.routed(uri),
            Err(Refusal(status, why)) => text(status, "text/plain; charset=utf-8", why),
        };
        let headers = answer.headers_mut();
        let mut set = |name: HeaderName, value| {
            headers.insert(name, HeaderValue::from_static(value));
        };
        set(CONTENT_SECURITY_POLICY, POLICY);
        set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(REFERRER_POLICY, "no-referrer");
        set(CACHE_CONTROL, "no-store");
        set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
        set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
        answer
    }

    fn routed(self: &Rc<Self>, uri: &Uri) -> Response<Body> {
        let run = || query(uri, "run").and_then(|name| self.runs.get(&name));
        let found = match uri.path() {
            "/" => Some(self.page()),
            "/api/runs" => Some(as_json(&self.runs.list())),
            "/api/live" => query(uri, "run").map(|name| live::stream(self, name)),
            "/api/steps" => run().map(|run| as_json(&detail::steps(&run.borrow()))),
            "/api/step" => run().zip(query(uri, "key")).and_then(|(run, key)| {
                detail::step(&run.borrow(), &key).map(|step| as_json(&step))
            }),
            "/api/solution" => run().zip(query(uri, "id")).and_then(|(run, id)| {
                let parent = query(uri, "parent");
                detail::solution(&run.borrow(), &id, parent.as_deref()).map(|it| as_json(&it))
            }),
            path => path
                .strip_prefix("/assets/")
                .and_then(assets::file)
                .map(|(kind, content)| text(StatusCode::OK, kind, content)),
        };
        found.unwrap_or_else(nothing)
    }

    /// What an agent was asked. Others are served meanwhile.
    async fn prompt(&self, uri: &Uri) -> Response<Body> {
        let run = query(uri, "run").and_then(|name| self.runs.get(&name));
        let Some((run, key)) = run.zip(query(uri, "key")) else { return nothing() };
        let dir = run.borrow().dir.clone();
        let asked = tokio::task::spawn_blocking(move || detail::prompt(dir, &key)).await;
        as_json(&asked.ok().flatten())
    }

    fn page(&self) -> Response<Body> {
        let mut page = text(StatusCode::OK, "text/html; charset=utf-8", assets::INDEX);
        if let Ok(cookie) = HeaderValue::from_str(&self.gate.cookie()) {
            page.headers_mut().insert(SET_COOKIE, cookie);
        }
        page
    }
}

fn nothing() -> Response<Body> {
    let nothing = json!({ "error": "there is nothing here" }).to_string();
    whole(StatusCode::NOT_FOUND, JSON, nothing.into())
}

fn as_json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(json) => whole(StatusCode::OK, JSON, json.into()),
        Err(error) => {
            let error = json!({ "error": error.to_string() }).to_string();
            whole(StatusCode::INTERNAL_SERVER_ERROR, JSON, error.into())
        }
    }
}

fn text(status: StatusCode, kind: &'static str, content: &'static str) -> Response<Body> {
    whole(status, kind, Bytes::from_static(content.as_bytes()))
}

fn whole(status: StatusCode, kind: &'static str, content: Bytes) -> Response<Body> {
    answer(status, kind, Either::Left(Full::new(content)))
}

pub(crate) fn answer(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
