//! What happens in a run, as it is recorded and shown.
//!
//! The journal is a file of [`Record`]s and nothing else. Every view is a fold over them, live or
//! from the file: there is no second source of truth.

use jiff::Timestamp;
use mle_star_agent::Reply;
use mle_star_exec::Outcome;
use mle_star_exec::machine::Machine;
use mle_star_profile::{DataProfile, Manifest};
use serde::{Deserialize, Serialize};

use crate::evaluate::Purpose;
use crate::models::{PipelineConfig, Score, SolutionPhase, TaskDescription};
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
    },
    /// A step began. It may begin again after a crash.
    Started {
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
    /// The step that this record says is finished, and what came of it.
    pub fn finished(&self) -> Option<(&StepKey, &Output)> {
        match self {
            Self::Finished { key, output, .. } => Some((key, output)),
            Self::Opened { .. }
            | Self::Resumed { .. }
            | Self::Started { .. }
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
}

/// What a step gives. There are two kinds of effect, and what is decided by looking at the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    },
    /// A script could not be run, and the run went on without it.
    GivenUp {
        /// Why.
        reason: String,
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
            Self::Ran { .. } | Self::GivenUp { .. } | Self::Totals { .. } => None,
        }
    }
}

/// A part of the run that a person would name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the paper")]
pub enum Phase {
    Phase1,
    Phase2,
    Phase3,
    Finalization,
}

/// Something worth knowing that is not a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A phase began.
    PhaseStarted {
        /// Which.
        phase: Phase,
    },
    /// A phase ended.
    PhaseEnded {
        /// Which.
        phase: Phase,
        /// The best score at that time.
        best: Option<Score>,
    },
    /// The retriever found models.
    Retrieved {
        /// Their names.
        models: Vec<String>,
    },
    /// A script was evaluated, repairs included.
    Evaluated {
        /// What it was run for.
        purpose: Purpose,
        /// What it scored; `None` if it failed, or was not run to be scored.
        score: Option<Score>,
        /// How many repairs it took.
        repairs: usize,
        /// The first line of what was wrong in the end.
        error: Option<String>,
    },
    /// A merge was judged.
    Merged {
        /// Rank of the candidate that was merged in.
        rank: usize,
        /// The score before.
        base: Score,
        /// The score of the merged script.
        score: Option<Score>,
        /// Whether it became the base.
        accepted: bool,
    },
    /// The leakage check was made.
    LeakageChecked {
        /// Whether leakage was found.
        found: bool,
        /// Whether the script was changed.
        changed: bool,
    },
    /// The data-usage check was made.
    DataUsageChecked {
        /// Whether the script was changed.
        changed: bool,
    },
    /// An inner step was judged.
    Refined {
        /// The plan.
        plan: String,
        /// What it scored; `None` if it failed.
        score: Option<Score>,
        /// The best score of the path so far.
        best: Score,
        /// Whether this is now the best.
        accepted: bool,
    },
    /// An outer step ended before its inner loop.
    OuterStepSkipped {
        /// Why.
        reason: String,
    },
    /// An outer step ended.
    OuterStepEnded {
        /// The best score of the path so far.
        best: Score,
    },
    /// A path ended.
    PathEnded {
        /// Which.
        path: usize,
        /// Its best score.
        best: Score,
        /// Why it failed, if it did; Phase 1's solution stands in for it then.
        failure: Option<String>,
    },
    /// An ensemble was judged.
    Ensembled {
        /// The plan.
        plan: String,
        /// What it scored; `None` if it failed.
        score: Option<Score>,
    },
    /// What is finalized was chosen.
    Selected {
        /// Who wrote it.
        from: SolutionPhase,
        /// Its score.
        score: Score,
    },
    /// The submission was written.
    Submitted {
        /// Its rows, if it could be read as a table.
        rows: Option<u64>,
    },
    /// Something did not go as it should; the run goes on.
    Warned {
        /// What.
        message: String,
    },
}
