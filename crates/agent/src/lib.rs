//! One call to an agent: a prompt goes in, a reply comes out, and it has cost something.
//!
//! [`Agent`] is the port. Whoever calls it knows neither a model nor a process. A reply that is
//! useless to the caller is still a reply: [`AgentError`] means that there was none.
//!
//! [`scripted`] holds the agents that need no model: replies from a file or a function.

pub mod scripted;

use std::fmt::Debug;
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use scripted::Scripted;

/// Someone who answers calls.
pub trait Agent: Debug + Send + Sync {
    /// What this agent is called wherever a person sees it, such as `scripted (no LLM)`.
    fn name(&self) -> &str;

    /// Answers one call in a conversation of its own.
    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>>;
}

/// What is asked, of whom, and with which means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// The place of this call in the run. Stable across resumes, unique within a run.
    pub step: String,
    /// The part to play: `planner`, `coder`, ...
    pub role: String,
    /// Which of the role's prompts this is, if it has several.
    pub variant: Option<String>,
    /// The concurrent lane that the call belongs to, such as `path-1`.
    pub lane: String,
    /// Who the agent is, and what holds for every call of the run.
    pub system_prompt: String,
    /// The rendered prompt.
    pub prompt: String,
    /// What the prompt was rendered from, for agents that do not read prose.
    pub input: Value,
    /// The only tools that the agent may use. Empty means none.
    pub tools: Vec<String>,
    /// The JSON Schema that a structured reply must satisfy.
    pub schema: Option<Value>,
    /// The model to use.
    pub model: String,
    /// How many turns the conversation may take.
    pub max_turns: Option<u32>,
    /// What the conversation may cost, in US dollars.
    pub max_budget_usd: Option<f64>,
    /// The conversations that this one belongs to; none if it is to be forgotten after the reply.
    pub thread: Option<Thread>,
    /// Who wants to know that the agent waits.
    #[serde(skip)]
    pub waits: Waits,
}

/// Conversations that are kept, so that one can go on where another ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// The folder that they are kept in.
    pub folder: Utf8PathBuf,
    /// The [`session`](Reply::session) to go on with; none in the first call of a thread.
    pub after: Option<String>,
}

/// Where an agent says that its answer is late because it waits for something.
#[derive(Debug, Clone, Default)]
pub struct Waits(Option<UnboundedSender<Wait>>);

/// A wait on the way to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// How long it will take.
    pub time: Duration,
    /// What made it necessary.
    pub reason: String,
}

impl Waits {
    /// Something to tell of waits, and where they are heard.
    pub fn new() -> (Self, UnboundedReceiver<Wait>) {
        let (told, heard) = mpsc::unbounded();
        (Self(Some(told)), heard)
    }

    /// Tells of one. Nobody has to listen.
    pub fn tell(&self, wait: Wait) {
        if let Some(told) = &self.0 {
            told.unbounded_send(wait).ok();
        }
    }
}

/// Who listens is no part of what is asked.
impl PartialEq for Waits {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What came back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// All text of the reply.
    pub text: String,
    /// The structured part, where a schema was asked for and honoured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What the call cost in US dollars, if the agent knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The conversation, if it was kept and another can go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What a person should know about how the reply came about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Reply {
    /// A reply of plain text that cost nothing.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// The conversation ended without an answer: refused, out of turns, prompt too long. Asking
    /// the same again is not expected to help.
    #[error("the agent gave no answer: {reason}")]
    NoAnswer {
        /// What the agent said.
        reason: String,
        /// What it cost all the same.
        cost_usd: Option<f64>,
    },
    /// The agent could not be reached. Asking again later may help.
    #[error("the agent is unavailable: {reason}")]
    Unavailable {
        /// What went wrong.
        reason: String,
    },
    /// The conversation broke off before its end. Asking again may help, but this one was not free.
    #[error("the conversation broke off: {reason}")]
    BrokenOff {
        /// What went wrong.
        reason: String,
        /// What it cost; `None` if nobody was told.
        cost_usd: Option<f64>,
    },
    /// The agent does not accept who we are.
    #[error("the agent refused our credentials: {reason}")]
    Unauthorized {
        /// What it said.
        reason: String,
    },
    /// The agent cannot be used as it is set up. Asking again helps only after that was mended.
    #[error("the agent cannot be used: {reason}")]
    Unusable {
        /// What is wrong.
        reason: String,
    },
    /// A scripted agent has no reply for this call.
    #[error("no scripted reply for role `{role}` at step `{step}`")]
    NotScripted {
        /// The role that was asked.
        role: String,
        /// Where in the run.
        step: String,
    },
}
