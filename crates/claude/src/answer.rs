//! One answer, put together from the messages of a turn.

use serde_json::Value;

use crate::error::{Error, Reason, Unanswered};
use crate::message::{Assistant, Block, Message, ResultMessage};

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// All text that the model wrote for us, from all its turns. A blank line stands between two
    /// messages; the parts of one message follow each other directly.
    pub text: String,
    /// The structured part; always there if a schema was given.
    pub structured: Option<Value>,
    /// What this prompt cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// The tokens that it took.
    pub usage: Usage,
    /// How many turns it took.
    pub turns: u32,
    /// The session, which can be resumed.
    pub session_id: Option<String>,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by it.
    pub output_tokens: u64,
    /// Written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Read from the cache.
    pub cache_read_input_tokens: u64,
}

/// What is wanted of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Structured,
}

/// The messages of a turn so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    text: String,
    message_id: Option<String>,
    /// What the program calls the error that it made into a message.
    error: Option<String>,
    text_limit: usize,
}

impl Draft {
    pub(crate) fn new(text_limit: usize) -> Self {
        Self { text_limit, ..Self::default() }
    }

    /// Takes a message into account.
    pub(crate) fn add(&mut self, message: &Message) -> Result<(), Error> {
        let Message::Assistant(assistant) = message else { return Ok(()) };
        if assistant.parent_tool_use_id.is_some() {
            return Ok(()); // said to another agent, not to us
        }
        if assistant.is_made_up() {
            self.error.clone_from(&assistant.error);
            return Ok(());
        }
        for block in &assistant.blocks {
            if let Block::Text(text) = block {
                self.append(assistant, text)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, assistant: &Assistant, text: &str) -> Result<(), Error> {
        let is_another = assistant.id.is_none() || assistant.id != self.message_id;
        if is_another && !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.message_id.clone_from(&assistant.id);
        self.text.push_str(text);
        if self.text.len() > self.text_limit {
            return Err(Error::Flooded { what: "in one answer", limit: self.text_limit });
        }
        Ok(())
    }

    /// The answer, or why there is none. `stopped` is our own reason for ending the turn.
    pub(crate) fn finish(
        self,
        result: ResultMessage,
        cost_usd: Option<f64>,
        form: Form,
        stopped: Option<Reason>,
    ) -> Result<Answer, Error> {
        let is_missing = form == Form::Structured && result.structured_output.is_none();
        let was_stopped = stopped.is_some();
        let reason = match (stopped, result.is_error) {
            (Some(reason), _) => Some(reason),
            (None, true) => Some(reason_of(&result, self.error.as_deref())),
            (None, false) if result.stop_reason.as_deref() == Some("refusal") => {
                Some(Reason::Declined)
            }
            (None, false) => is_missing.then_some(Reason::Unstructured),
        };
        let Some(reason) = reason else {
            // Some builds give the text in the result alone.
            let text = if self.text.is_empty() { result.text } else { self.text };
            return Ok(Answer {
                text,
                structured: result.structured_output,
                cost_usd,
                usage: result.usage,
                turns: result.turns,
                session_id: result.session_id,
            });
        };
        let message = match (&reason, result.errors.as_slice()) {
            // What it says of being interrupted is of no use to anybody.
            _ if was_stopped => String::new(),
            (_, [_, ..]) => result.errors.join("; "),
            (Reason::Unstructured, []) => String::new(),
            (_, []) => result.text,
        };
        Err(Error::Unanswered(Box::new(Unanswered {
            reason,
            message,
            cost_usd,
            usage: result.usage,
            session_id: result.session_id,
        })))
    }
}

/// What services say to whoever has no credit left, or as much as may be spent.
const UNPAID: [&str; 3] = ["credit balance", "usage limits", "organization has been disabled"];

/// Why the program says that there is no answer.
fn reason_of(result: &ResultMessage, error: Option<&str>) -> Reason {
    match result.subtype.as_str() {
        "error_max_turns" => return Reason::MaxTurns,
        "error_max_budget_usd" => return Reason::Budget,
        "error_max_structured_output_retries" => return Reason::Unstructured,
        _ => {}
    }
    if result.stop_reason.as_deref() == Some("refusal") {
        return Reason::Declined;
    }
    let text = result.text.to_lowercase();
    if text.contains("prompt is too long") || text.contains("input is too long") {
        return Reason::PromptTooLong;
    }
    let says = |words: &[&str]| words.iter().any(|it| text.contains(it));
    match (result.api_error_status, error) {
        // Accounts that cannot pay are told so with a status that says only that something is wrong.
        (Some(402), _) | (_, Some("billing_error")) => Reason::Unpaid,
        (Some(400 | 403), _) if says(&UNPAID) => Reason::Unpaid,
        (Some(400), _) if says(&["content filter"]) => Reason::Declined,
        (Some(401), _) | (None, Some("authentication_failed" | "oauth_org_not_allowed")) => {
            Reason::Unauthenticated
        }
        (Some(403), _) => Reason::Forbidden,
        (Some(404), _) | (None, Some("model_not_found")) => Reason::NoSuchModel,
        (Some(413), _) => Reason::PromptTooLong,
        (Some(429), _) | (None, Some("rate_limit")) => Reason::RateLimited,
        (Some(529), _) | (None, Some("overloaded")) => Reason::Overloaded,
        (Some(408), _) => Reason::Connection,
        (Some(status @ 500..), _) => Reason::Service(status),
        (Some(status), _) => Reason::BadRequest(status),
        // A failure of the service without a status has never got as far as a status.
        (None, _) if result.terminal_reason.as_deref() == Some("api_error") => Reason::Connection,
        (None, _) => Reason::Other(result.subtype.clone()),
    }
}
