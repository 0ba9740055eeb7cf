//! Answers what the program asks of us.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use crate::hooks::{Granted, Hook, Permission, ToolCall};
use crate::options::Options;
use crate::tools::{ToolServer, no_server};

/// More requests than this at the same time are refused.
const AT_ONCE: usize = 256;

/// The callbacks of a conversation, and those that are at work.
#[derive(Debug)]
pub(crate) struct Control {
    hooks: Vec<Hook>,
    servers: Vec<ToolServer>,
    permission: Option<Permission>,
    limit: Duration,
    at_work: FuturesUnordered<BoxFuture<'static, Option<(String, Reply)>>>,
    handles: HashMap<String, AbortHandle>,
}

/// What the program is told: a value, or why there is none.
type Reply = Result<Value, String>;

impl Control {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            hooks: options.hooks.clone(),
            servers: options.servers.clone(),
            permission: options.permission.clone(),
            limit: options.limits.callback,
            at_work: FuturesUnordered::new(),
            handles: HashMap::new(),
        }
    }

    /// Begins to answer a request. The answer comes from [`finished`](Self::finished).
    pub(crate) fn begin(&mut self, id: String, request: &Value) {
        let answer = match self.handles.len() < AT_ONCE {
            true => self.answer(request),
            false => futures::future::ready(Err("too many requests at once".to_owned())).boxed(),
        };
        let (answer, handle) = abortable(answer);
        self.handles.insert(id.clone(), handle);
        self.at_work.push(answer.map(|reply| Some((id, reply.ok()?))).boxed());
    }

    /// The program does not want to know any more.
    pub(crate) fn cancel(&mut self, id: &str) {
        if let Some(handle) = self.handles.remove(id) {
            handle.abort();
        }
    }

    /// The next answer; never returns if nothing is at work.
    pub(crate) async fn finished(&mut self) -> Value {
        loop {
            match self.at_work.next().await {
                None => std::future::pending().await,
                Some(None) => {} // cancelled
                Some(Some((id, reply))) => {
                    self.handles.remove(&id);
                    let response = match reply {
                        Ok(value) => {
                            json!({ "subtype": "success", "request_id": id, "response": value })
                        }
                        Err(error) => {
                            json!({ "subtype": "error", "request_id": id, "error": error })
                        }
                    };
                    return json!({ "type": "control_response", "response": response });
                }
            }
        }
    }

    fn answer(&self, request: &Value) -> BoxFuture<'static, Reply> {
        let text = |name: &str| request.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("subtype") {
            "hook_callback" => {
                let number = text("callback_id").strip_prefix("hook_");
                let number = number.and_then(|number| number.parse::<usize>().ok());
                let Some(hook) = number.and_then(|number| self.hooks.get(number)).cloned() else {
                    return refuse("there is no such hook");
                };
                let input = request.get("input").cloned().unwrap_or_default();
                let call = hook.call.clone();
                self.guarded(move || call(input))
                    .map(move |answer| Ok(answer.unwrap_or_else(|how| hook.failed(how))))
                    .boxed()
            }
            "can_use_tool" => {
                let Some(permission) = self.permission.clone() else {
                    return refuse("nobody is there to give permission");
                };
                let call = ToolCall::of(request, "cwd");
                let asked = call.input.clone();
                self.guarded(move || (permission.decide)(call))
                    .map(move |decision| {
                        let decision = decision.unwrap_or_else(|how| Granted::Deny {
                            reason: format!("the check of this tool failed: {how}"),
                        });
                        Ok(decision.to_value(&asked))
                    })
                    .boxed()
            }
            "mcp_message" => {
                let name = text("server_name");
                let message = request.get("message").cloned().unwrap_or_default();
                let server = self.servers.iter().find(|server| server.name == name).cloned();
                let Some(server) = server else {
                    let answer = json!({ "mcp_response": no_server(&message, name) });
                    return futures::future::ready(Ok(answer)).boxed();
                };
                self.guarded(move || server.answer(&message))
                    .map(|answer| match answer {
                        Ok(answer) => Ok(json!({ "mcp_response": answer })),
                        Err(how) => Err(format!("the tool failed: {how}")),
                    })
                    .boxed()
            }
            other => refuse(&format!("unknown request `{other}`")),
        }
    }

    /// Runs a callback of the caller, who may panic or never come back.
    fn guarded<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> BoxFuture<'static, T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, &'static str>> {
        let limit = self.limit;
        let work = async move { call().await };
        async move {
            match tokio::time::timeout(limit, AssertUnwindSafe(work).catch_unwind()).await {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(_)) => Err("it panicked"),
                Err(_) => Err("it took too long"),
            }
        }
        .boxed()
    }
}

fn refuse(why: &str) -> BoxFuture<'static, Reply> {
    futures::future::ready(Err(why.to_owned())).boxed()
}
