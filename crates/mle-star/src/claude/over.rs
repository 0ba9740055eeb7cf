//! Other agents in the place of the model.
//!
//! A server on loopback speaks the language of the model's service, and answers from an agent that
//! needs no model. The program does not notice: its process, protocol, hooks, tools and sums are
//! the real ones. That is how a whole run can be tried without a key.
//!
//! A request carries the id of its conversation, by which the call is found that it stems from; an
//! agent such as the playbook wants to see that, and not its prompt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_claude::Uuid;
use mle_star_wire::{Answer, Request, Respond, Server, Usage};

/// The tool by which the model gives a structured reply.
const STRUCTURED: &str = "StructuredOutput";

/// A server that answers from an agent.
#[derive(Debug)]
pub(crate) struct Over {
    server: Server,
    behind: Arc<Behind>,
}

/// The agent, and the calls that it may be asked about.
#[derive(Debug)]
struct Behind {
    agent: Box<dyn Agent>,
    calls: Mutex<HashMap<String, Call>>,
}

/// A call whose requests are answered, as long as this lives.
#[derive(Debug)]
pub(super) struct Expected {
    behind: Arc<Behind>,
    id: String,
}

impl Over {
    /// Starts to answer from `agent`.
    pub(crate) async fn start(agent: Box<dyn Agent>) -> std::io::Result<Self> {
        let behind = Arc::new(Behind { agent, calls: Mutex::default() });
        let server = Server::start(Arc::clone(&behind)).await?;
        Ok(Self { server, behind })
    }

    /// Who answers.
    pub(super) fn name(&self) -> &str {
        self.behind.agent.name()
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// Requests of the conversation `id` are about `call`.
    pub(super) fn expect(&self, id: Uuid, call: &Call) -> Expected {
        let id = id.to_string();
        self.behind.calls().insert(id.clone(), call.clone());
        Expected { behind: Arc::clone(&self.behind), id }
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.behind.calls().remove(&self.id);
    }
}

impl Behind {
    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<String, Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: &Request) -> Answer {
        let session = request.session.as_deref().unwrap_or_default();
        let call = self.calls().get(session).cloned();
        let Some(call) = call else {
            return Answer::error(404, "not_found_error", "there is no call of this conversation");
        };
        match self.agent.ask(&call).await {
            Ok(reply) => said(&call, reply),
            // As the service says it when a model declines.
            Err(AgentError::NoAnswer { .. }) => Answer::empty().with_stop_reason("refusal"),
            Err(AgentError::Unauthorized { reason }) => {
                Answer::error(401, "authentication_error", reason)
            }
            Err(
                error @ (AgentError::Unavailable { .. }
                | AgentError::BrokenOff { .. }
                | AgentError::Unusable { .. }
                | AgentError::NotScripted { .. }),
            ) => Answer::error(400, "invalid_request_error", error.to_string()),
        }
    }
}

impl Respond for Behind {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Answer> {
        self.answer(request).boxed()
    }

    /// What the program should come to in its sums.
    fn answered(&self, request: &Request, usage: Usage) {
        let Usage { input, output, cache_creation, cache_read } = usage;
        tracing::debug!(
            target: "mle_star",
            session = request.session.as_deref().unwrap_or_default(), model = request.model,
            input, output, cache_creation, cache_read, "answered in the place of the model"
        );
    }
}

/// What a model would say.
fn said(call: &Call, reply: Reply) -> Answer {
    let Reply { text, structured, .. } = reply;
    let structured = structured.or_else(|| serde_json::from_str(&text).ok());
    match (&call.schema, structured) {
        (Some(_), Some(structured)) => Answer::tool_use(STRUCTURED, structured),
        (Some(_), None) | (None, _) => Answer::text(text),
    }
}
