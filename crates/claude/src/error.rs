//! Why there is no answer.
//!
//! An [`Error`] is about the program: it is not there, it ended, it makes no sense. One of its
//! kinds, [`Unanswered`], is about the conversation: the program did its work, and the work ended
//! without an answer for a [`Reason`]. That may have cost something.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::answer::Usage;
use crate::cli::Version;

/// What programs say that could start no process of their own.
const STARVED: [&str; 2] = ["Resource temporarily unavailable", "Cannot allocate memory"];

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such program.
    #[error("there is no {tried}")]
    NotFound {
        /// Where it was looked for.
        tried: String,
    },
    /// The program, or the folder that it should start in, cannot be used.
    #[error("`{}` cannot be started", path.display())]
    NotStarted {
        /// What cannot be used.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is some other program.
    #[error("`{}` does not say the version of Claude Code, but `{said}`", path.display())]
    NotClaude {
        /// The program.
        path: PathBuf,
        /// What it says.
        said: String,
    },
    /// The program is older than this client knows.
    #[error("claude {version} at `{}` is older than {oldest}", path.display())]
    TooOld {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: Version,
        /// The oldest that will do.
        oldest: Version,
    },
    /// The program would let tools run whose hooks fail.
    #[error("claude {version} would run tools whose hooks fail")]
    HooksFailOpen {
        /// What it says its version is.
        version: String,
    },
    /// The program ended before the conversation began.
    #[error("claude ended at its start ({}): {said}", exit(*.code))]
    Exited {
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
        /// Its last words.
        said: String,
    },
    /// The program ended in the middle of the conversation.
    #[error("claude ended in the middle of a conversation ({}): {said}", exit(*.code))]
    Closed {
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
        /// Its last words.
        said: String,
    },
    /// Nothing came for too long.
    #[error("claude said nothing for {} s while {doing}", after.as_secs())]
    Hung {
        /// What it should have done.
        doing: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// What the program says makes no sense.
    #[error("claude said what makes no sense: {what}")]
    Garbage {
        /// What it is, cut short.
        what: String,
    },
    /// The program says more than can be kept.
    #[error("claude said more than {limit} bytes {what}")]
    Flooded {
        /// At once or together.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The program refused a request of ours.
    #[error("claude refused the request `{request}`: {reason}")]
    Refused {
        /// The request.
        request: &'static str,
        /// What it said.
        reason: String,
    },
    /// The conversation ended without an answer.
    #[error(transparent)]
    Unanswered(Box<Unanswered>),
}

/// A conversation that ended without an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{reason}{}{message}", if message.is_empty() { "" } else { ": " })]
pub struct Unanswered {
    /// Why.
    pub reason: Reason,
    /// What the program said about it.
    pub message: String,
    /// What it cost all the same, in US dollars, as far as is known.
    pub cost_usd: Option<f64>,
    /// The tokens that it took.
    pub usage: Usage,
    /// The session.
    pub session_id: Option<String>,
}

/// Why a conversation ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The key is missing, wrong or expired.
    #[error("the credentials were refused")]
    Unauthenticated,
    /// The key is not for this.
    #[error("the credentials do not allow this")]
    Forbidden,
    /// There is no such model, or no such address.
    #[error("the model or the address does not exist")]
    NoSuchModel,
    /// Too much was asked too quickly.
    #[error("the rate limit was reached")]
    RateLimited,
    /// The service has too much to do.
    #[error("the service is overloaded")]
    Overloaded,
    /// The service failed.
    #[error("the service failed with status {0}")]
    Service(u16),
    /// The connection could not be made, or was lost.
    #[error("the connection was lost")]
    Connection,
    /// The account has no credit left, or has spent what it may spend.
    #[error("the account cannot pay for the request")]
    Unpaid,
    /// The request is not one that the service takes.
    #[error("the request was not accepted (status {0})")]
    BadRequest(u16),
    /// The prompt does not fit.
    #[error("the prompt is too long")]
    PromptTooLong,
    /// The model, or who watches over it, declined.
    #[error("the model declined to answer")]
    Declined,
    /// As many turns as were allowed were taken.
    #[error("the limit of turns was reached")]
    MaxTurns,
    /// As much as was allowed was spent.
    #[error("the budget was spent")]
    Budget,
    /// A schema was given, and the reply has no structured part that fits it.
    #[error("the reply is not structured as was asked")]
    Unstructured,
    /// Somebody interrupted it.
    #[error("the conversation was interrupted")]
    Interrupted,
    /// The time was over.
    #[error("the time for the answer was over")]
    OutOfTime,
    /// Something else; this is what the program calls it.
    #[error("the conversation failed ({0})")]
    Other(String),
}

/// Whether asking the same again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Later, with nothing changed.
    Later,
    /// Only after something was changed.
    Pointless,
}

impl Error {
    /// Whether asking the same again may help.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Closed { .. } | Self::Hung { .. } | Self::Garbage { .. } => Retry::Later,
            // Memory, processes or files may be short; a wrong option stays wrong.
            Self::Exited { code: None | Some(128..), .. } => Retry::Later,
            Self::Exited { .. } if self.is_want_of_room() => Retry::Later,
            Self::NotStarted { source, .. } => {
                let kind = source.kind();
                let stays =
                    [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied].contains(&kind);
                if stays { Retry::Pointless } else { Retry::Later }
            }
            Self::NotFound { .. }
            | Self::NotClaude { .. }
            | Self::TooOld { .. }
            | Self::HooksFailOpen { .. }
            | Self::Exited { .. }
            | Self::Flooded { .. }
            | Self::Refused { .. } => Retry::Pointless,
            Self::Unanswered(unanswered) => unanswered.reason.retry(),
        }
    }

    /// Whether there was no room for another process, for us or for the program. Nothing is wrong
    /// with it then.
    pub fn is_want_of_room(&self) -> bool {
        match self {
            Self::NotStarted { source, .. } => {
                matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
            }
            Self::Exited { said, .. } => STARVED.iter().any(|it| said.contains(it)),
            Self::NotFound { .. }
            | Self::NotClaude { .. }
            | Self::TooOld { .. }
            | Self::HooksFailOpen { .. }
            | Self::Closed { .. }
            | Self::Hung { .. }
            | Self::Garbage { .. }
            | Self::Flooded { .. }
            | Self::Refused { .. }
            | Self::Unanswered(_) => false,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            // Without a version, an older Node gets a program that is too old.
            Self::NotFound { .. } => Some(
                "install it (npm install -g @anthropic-ai/claude-code@2.1.325), or name the program",
            ),
            Self::NotClaude { .. } => Some("name the program `claude` of Claude Code"),
            Self::NotStarted { .. } | Self::Exited { .. } if self.is_want_of_room() => {
                Some("there is no room for another process: end others, or raise `ulimit -u`")
            }
            Self::NotStarted { .. } => Some("check the path and its permissions"),
            Self::TooOld { .. } | Self::HooksFailOpen { .. } => {
                Some("claude update, or npm install -g @anthropic-ai/claude-code@2.1.325")
            }
            Self::Exited { .. } | Self::Refused { .. } => {
                Some("start `claude -p hello` by hand to see what is wrong")
            }
            Self::Closed { .. } | Self::Hung { .. } | Self::Garbage { .. } => {
                Some("ask again; if it happens often, look at the memory of the machine")
            }
            Self::Flooded { .. } => Some("ask for less at once, or use another model"),
            Self::Unanswered(unanswered) => unanswered.reason.remedy(),
        }
    }

    /// What was spent without an answer, in US dollars, as far as is known.
    pub fn cost_usd(&self) -> Option<f64> {
        self.unanswered().and_then(|unanswered| unanswered.cost_usd)
    }

    /// Why the conversation ended without an answer, if that is what happened.
    pub fn reason(&self) -> Option<&Reason> {
        self.unanswered().map(|unanswered| &unanswered.reason)
    }

    /// The conversation that ended without an answer, if that is what happened.
    pub fn unanswered(&self) -> Option<&Unanswered> {
        if let Self::Unanswered(unanswered) = self { Some(unanswered) } else { None }
    }
}

impl Reason {
    /// Whether asking the same again may help.
    pub fn retry(&self) -> Retry {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Service(_) | Self::Connection => {
                Retry::Later
            }
            Self::Unauthenticated
            | Self::Forbidden
            | Self::Unpaid
            | Self::NoSuchModel
            | Self::BadRequest(_)
            | Self::PromptTooLong
            | Self::Declined
            | Self::MaxTurns
            | Self::Budget
            | Self::Unstructured
            | Self::Interrupted
            | Self::OutOfTime
            | Self::Other(_) => Retry::Pointless,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Unauthenticated => Some("set ANTHROPIC_API_KEY to a key that is valid"),
            Self::Forbidden => Some("use a key that has access to this model"),
            Self::Unpaid => Some("add credit to the account, or raise its limit of spending"),
            Self::NoSuchModel => Some("name another model; check ANTHROPIC_BASE_URL"),
            Self::BadRequest(_) => Some("name another model, or another service"),
            Self::RateLimited | Self::Overloaded | Self::Service(_) => Some("wait, and ask again"),
            Self::Connection => Some("check the network, the proxy and ANTHROPIC_BASE_URL"),
            Self::PromptTooLong => Some("ask for less at once, or use a model that takes more"),
            Self::MaxTurns => Some("allow more turns"),
            Self::Budget => Some("allow more money"),
            Self::OutOfTime => Some("allow more time"),
            Self::Declined | Self::Unstructured | Self::Interrupted | Self::Other(_) => None,
        }
    }
}

fn exit(code: Option<i32>) -> String {
    code.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"))
}
