//! One line of the journal, and what it is made of.

use jiff::Timestamp;
use mle_star_agent::Reply;
use mle_star_exec::Outcome;
use mle_star_exec::machine::Machine;
use mle_star_exec::sandbox::{Containment, Wish};
use mle_star_exec::submission::Fit;
use mle_star_profile::{DataProfile, Manifest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Event;
use crate::models::{AgentType, PipelineConfig, TaskDescription};
use crate::step::{Digest, StepKey};

/// The version of the journal that this program reads and writes.
pub const FORMAT: u32 = 1;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "the large one comes once, and none is kept long")]
pub enum Record {
    /// The run began. Always the first record, and only that.
    Opened {
        /// When.
        at: Timestamp,
        /// What was settled before the first step.
        #[serde(flatten)]
        header: Header,
    },
    /// The run was taken up again, and has done something since.
    Resumed {
        /// When.
        at: Timestamp,
        /// What holds the scripts from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        containment: Option<Box<Containment>>,
    },
    /// The run was taken up with other limits. Decisions of the clock and the purse that were made
    /// before are void.
    Settings {
        /// When.
        at: Timestamp,
        /// The settings from now on.
        config: PipelineConfig,
    },
    /// A step began. It may begin again after a crash.
    Started {
        /// When.
        at: Timestamp,
        /// Which.
        key: StepKey,
        /// What it sets out to do, where a viewer may want to know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        begun: Option<Begun>,
    },
    /// A step could not be done, and the run stopped. Nothing is left in flight.
    Abandoned {
        /// When.
        at: Timestamp,
        /// Which.
        key: StepKey,
    },
    /// A step ended. It will not be done again.
    Finished {
        /// When.
        at: Timestamp,
        /// Which.
        key: StepKey,
        /// What it was given.
        input: Digest,
        /// What came of it.
        output: Output,
    },
    /// Something was decided by looking at the clock or the purse. A resumed run does not look
    /// again.
    Decided {
        /// When.
        at: Timestamp,
        /// Where in the run.
        key: StepKey,
        /// What.
        decision: Decision,
    },
    /// Something worth knowing happened between steps.
    Happened {
        /// When.
        at: Timestamp,
        /// Where in the run.
        key: StepKey,
        /// The how-manieth event at this place.
        index: u32,
        /// What.
        event: Event,
    },
}

impl Record {
    /// When it was recorded.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Opened { at, .. }
            | Self::Resumed { at, .. }
            | Self::Settings { at, .. }
            | Self::Started { at, .. }
            | Self::Abandoned { at, .. }
            | Self::Finished { at, .. }
            | Self::Decided { at, .. }
            | Self::Happened { at, .. } => *at,
        }
    }

    /// The step that this record says is finished, and what came of it.
    pub fn finished(&self) -> Option<(&StepKey, &Output)> {
        match self {
            Self::Finished { key, output, .. } => Some((key, output)),
            Self::Opened { .. }
            | Self::Resumed { .. }
            | Self::Settings { .. }
            | Self::Started { .. }
            | Self::Abandoned { .. }
            | Self::Decided { .. }
            | Self::Happened { .. } => None,
        }
    }
}

/// What was settled before the first step. A resumed run uses this, not the machine it finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`] of the program that wrote the journal.
    pub format: u32,
    /// The version of that program.
    pub version: String,
    /// Who answers the calls, as given on the command line.
    pub agents: String,
    /// The task.
    pub task: TaskDescription,
    /// The settings.
    pub config: PipelineConfig,
    /// The machine.
    pub machine: Machine,
    /// What the data looks like.
    pub data: DataProfile,
    /// What the data is, to the byte.
    pub manifest: Manifest,
    /// Discussions that the solution must not be a copy of.
    #[serde(default)]
    pub reference_discussions: Vec<String>,
    /// What was wanted of the sandbox.
    #[serde(default)]
    pub sandbox: Wish,
    /// What held the scripts when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
}

/// What a step sets out to do, in short: the whole of it is what was recorded before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Begun {
    /// An agent is asked.
    Ask {
        /// Who.
        role: AgentType,
        /// The concurrent lane that it works for.
        lane: String,
        /// What it is given.
        given: Vec<Given>,
    },
    /// A script is run.
    Run {
        /// The concurrent lane that it belongs to.
        lane: String,
        /// The script, by the name of its file in `solutions/`.
        script: String,
        /// How long the script is, in characters.
        characters: usize,
        /// How long it may run, unless its part of the run ends before.
        time_limit_seconds: f64,
    },
}

/// One of the things that an agent is given, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// What it is called.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub amount: Amount,
}

/// How much of something an agent is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// A text.
    Text {
        /// How long it is.
        characters: usize,
        /// How it begins.
        begins: String,
    },
    /// A list of so many items.
    Items(usize),
    /// A number, a choice or nothing, as it is.
    Plain(String),
}

impl Given {
    /// How much of a text is shown.
    const SHOWN_CHARS: usize = 200;

    /// What the fields of a role's input are, in short.
    pub(crate) fn all_of(input: &Value) -> Vec<Self> {
        let fields = input.as_object().into_iter().flatten();
        fields.map(|(name, value)| Self { name: name.clone(), amount: Amount::of(value) }).collect()
    }
}

impl Amount {
    fn of(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text {
                characters: text.chars().count(),
                begins: text.chars().take(Given::SHOWN_CHARS).collect(),
            },
            Value::Array(items) => Self::Items(items.len()),
            Value::Object(fields) => Self::Items(fields.len()),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => {
                Self::Plain(plain.to_string())
            }
        }
    }
}

/// What a step gives. There are two kinds of effect, and what is decided by looking at the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "scripts are half of all steps, and none is kept long"
)]
pub enum Output {
    /// An agent was asked.
    Asked {
        /// What it replied; empty if it gave no answer.
        reply: Reply,
        /// Why there is no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        no_answer: Option<String>,
    },
    /// A script was run.
    Ran {
        /// How that ended.
        outcome: Outcome,
        /// The script, by the name of its file in `solutions/`.
        script: String,
        /// The submission it wrote, by the name of its file in `solutions/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        submission: Option<String>,
        /// What is wrong with that submission, compared with the sample.
        #[serde(default, skip_serializing_if = "Fit::is_good")]
        fit: Fit,
    },
    /// The step was not done, and the run went on without it.
    NotDone {
        /// What it lacked.
        lack: Lack,
        /// Whether a call had begun and was cut off: it cost something that nobody was told.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut_off: bool,
    },
    /// The sums of the run were taken.
    Totals {
        /// Running time so far.
        duration_seconds: f64,
        /// What the agents had cost, if any of them said.
        cost_usd: Option<f64>,
    },
}

impl Output {
    /// What the step cost.
    pub fn cost_usd(&self) -> Option<f64> {
        match self {
            Self::Asked { reply, .. } => reply.cost_usd,
            Self::Ran { .. } | Self::NotDone { .. } | Self::Totals { .. } => None,
        }
    }
}

/// What a step lacked, so that it was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Lack {
    /// The time of the run, or of its path, was over.
    Time,
    /// The money was spent.
    Money,
    /// The agents could not be reached for as long as there was time to wait.
    Agents {
        /// What was wrong.
        reason: String,
    },
    /// Somebody asked for the end.
    Patience,
    /// The script could not be run.
    Executor {
        /// What was wrong.
        reason: String,
    },
}

/// What was decided by looking at the clock or the purse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// A loop ends before this iteration.
    CutShort(Lack),
    /// This part of the run ends when the run has been running so long, in seconds.
    Until(f64),
}

impl Lack {
    /// Whether nothing more can be done on this path for the same reason.
    pub fn is_shortage(&self) -> bool {
        match self {
            Self::Time | Self::Money | Self::Agents { .. } | Self::Patience => true,
            Self::Executor { .. } => false,
        }
    }
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time => f.write_str("the time is over"),
            Self::Money => f.write_str("the budget is spent"),
            Self::Agents { reason } => write!(f, "the agents could not be reached: {reason}"),
            Self::Patience => f.write_str("the end was asked for"),
            Self::Executor { reason } => write!(f, "the script could not be run: {reason}"),
        }
    }
}
