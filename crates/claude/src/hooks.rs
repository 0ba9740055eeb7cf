//! What the program asks us about the use of tools.
//!
//! A [`Hook`] is called before a tool runs, after it has run, or when the model wants to stop. One
//! that is called before decides: if it says no, fails, panics or takes too long, the tool does not
//! run. The program is also told to refuse by itself whenever it gets no sensible answer, and a
//! program that cannot do that is not used.
//!
//! [`Permission`] is the other way round: the program asks it where its own rules would have a
//! person decide. Commands that only read are not among them, so a policy belongs in a hook.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// Something that is called at certain moments of a conversation.
#[derive(Clone)]
pub struct Hook {
    pub(crate) event: Event,
    pub(crate) matcher: Option<String>,
    pub(crate) call: Arc<Callback>,
}

pub(crate) type Callback = dyn Fn(Value) -> BoxFuture<'static, Value> + Send + Sync;

/// The moment of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    Stop,
    SubagentStop,
}

/// A tool is about to run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Which tool.
    pub tool: String,
    /// What for.
    pub input: Value,
    /// The folder that it would run in.
    pub folder: String,
    /// The agent that wants it, if it is one that another agent called.
    pub agent_id: Option<String>,
}

/// What becomes of the use of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolDecision {
    /// This hook has nothing against it; other rules may have.
    Pass,
    /// It does not run, and the model is told why.
    Deny {
        /// What the model is told.
        reason: String,
    },
}

/// A tool has run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDone {
    /// Which tool.
    pub tool: String,
    /// What for.
    pub input: Value,
    /// What it gave.
    pub response: Value,
    /// How it failed, if it did.
    pub error: Option<String>,
    /// How long it took.
    pub duration: Option<Duration>,
    /// The agent that wanted it, if it is one that another agent called.
    pub agent_id: Option<String>,
}

/// Whether the model may stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopDecision {
    /// It may.
    Stop,
    /// It goes on, and is told why.
    GoOn {
        /// What the model is told.
        reason: String,
    },
}

/// Who decides where the program would ask a person.
#[derive(Clone)]
pub struct Permission {
    pub(crate) decide: Arc<Decide>,
}

type Decide = dyn Fn(ToolCall) -> BoxFuture<'static, Granted> + Send + Sync;

/// What was decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Granted {
    /// The tool runs.
    Allow,
    /// The tool runs, but for something else than the model asked for.
    AllowInstead(Value),
    /// It does not, and the model is told why.
    Deny {
        /// What the model is told.
        reason: String,
    },
}

impl Hook {
    /// Called before a tool runs whose name `matcher` fits, such as `Bash` or `Edit|Write`; before
    /// every tool if there is none. An error denies.
    pub fn before_tool<F, E>(
        matcher: Option<&str>,
        decide: impl Fn(ToolCall) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolDecision, E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let call = move |input: Value| {
            let decision = decide(ToolCall::of(&input, "cwd"));
            async move {
                match decision.await {
                    Ok(ToolDecision::Pass) => json!({}),
                    Ok(ToolDecision::Deny { reason }) => denied(&reason),
                    Err(error) => denied(&format!("the check of this tool failed: {error}")),
                }
            }
            .boxed()
        };
        Self::new(Event::PreToolUse, matcher, call)
    }

    /// Called after a tool has run whose name `matcher` fits. It cannot change anything.
    pub fn after_tool<F>(
        matcher: Option<&str>,
        watch: impl Fn(ToolDone) -> F + Send + Sync + 'static,
    ) -> [Self; 2]
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let call: Arc<Callback> = Arc::new(move |input: Value| {
            let done = watch(ToolDone::of(input));
            async move {
                done.await;
                json!({})
            }
            .boxed()
        });
        // The program tells of success and of failure at different places.
        let matcher = matcher.map(str::to_owned);
        [Event::PostToolUse, Event::PostToolUseFailure].map(|event| Self {
            event,
            matcher: matcher.clone(),
            call: Arc::clone(&call),
        })
    }

    /// Called when the model has said all it wants to say.
    pub fn at_stop<F>(decide: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = StopDecision> + Send + 'static,
    {
        Self::new(Event::Stop, None, stopping(decide))
    }

    /// Called when an agent that another agent called has said all it wants to say.
    pub fn at_subagent_stop<F>(decide: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = StopDecision> + Send + 'static,
    {
        Self::new(Event::SubagentStop, None, stopping(decide))
    }

    fn new(
        event: Event,
        matcher: Option<&str>,
        call: impl Fn(Value) -> BoxFuture<'static, Value> + Send + Sync + 'static,
    ) -> Self {
        Self { event, matcher: matcher.map(str::to_owned), call: Arc::new(call) }
    }

    /// What is answered when the hook itself has failed.
    pub(crate) fn failed(&self, how: &str) -> Value {
        match self.event {
            Event::PreToolUse => denied(&format!("the check of this tool failed: {how}")),
            // The tool has run, or the model has stopped: there is nothing left to deny.
            Event::PostToolUse | Event::PostToolUseFailure | Event::Stop | Event::SubagentStop => {
                json!({})
            }
        }
    }
}

impl Permission {
    /// `decide` decides. An error denies.
    pub fn new<F, E>(decide: impl Fn(ToolCall) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Granted, E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let decide = move |call| {
            let decision = decide(call);
            async move {
                decision.await.unwrap_or_else(|error| Granted::Deny {
                    reason: format!("the check of this tool failed: {error}"),
                })
            }
            .boxed()
        };
        Self { decide: Arc::new(decide) }
    }
}

impl ToolCall {
    /// Reads what the program tells; where it names the folder depends on the request.
    pub(crate) fn of(request: &Value, folder: &str) -> Self {
        let text = |name: &str| request.get(name).and_then(Value::as_str).map(str::to_owned);
        let input = request.get("tool_input").or_else(|| request.get("input"));
        Self {
            tool: text("tool_name").unwrap_or_default(),
            input: input.cloned().unwrap_or_default(),
            folder: text(folder).unwrap_or_default(),
            agent_id: text("agent_id"),
        }
    }
}

impl ToolDone {
    fn of(mut input: Value) -> Self {
        let ToolCall { tool, input: asked, agent_id, .. } = ToolCall::of(&input, "cwd");
        let duration = input.get("duration_ms").and_then(Value::as_f64);
        Self {
            tool,
            input: asked,
            response: input.get_mut("tool_response").map(Value::take).unwrap_or_default(),
            error: input.get("error").and_then(Value::as_str).map(str::to_owned),
            duration: duration.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()),
            agent_id,
        }
    }
}

impl Granted {
    /// As the program wants to hear it. `asked` is what the model asked for.
    pub(crate) fn to_value(&self, asked: &Value) -> Value {
        match self {
            Self::Allow => json!({ "behavior": "allow", "updatedInput": asked }),
            Self::AllowInstead(input) => json!({ "behavior": "allow", "updatedInput": input }),
            Self::Deny { reason } => json!({ "behavior": "deny", "message": reason }),
        }
    }
}

impl Event {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, matcher, call: _ } = self;
        f.debug_struct("Hook").field("event", event).field("matcher", matcher).finish()
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").finish_non_exhaustive()
    }
}

fn stopping<F>(
    decide: impl Fn() -> F + Send + Sync + 'static,
) -> impl Fn(Value) -> BoxFuture<'static, Value> + Send + Sync + 'static
where
    F: Future<Output = StopDecision> + Send + 'static,
{
    move |_| {
        let decision = decide();
        async move {
            match decision.await {
                StopDecision::Stop => json!({}),
                StopDecision::GoOn { reason } => json!({ "decision": "block", "reason": reason }),
            }
        }
        .boxed()
    }
}

fn denied(reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": Event::PreToolUse.name(),
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    } })
}
