//! Why a run, or a part of one, stops. A script that fails is no reason, nor is an agent that
//! writes nonsense: both are outcomes that the algorithm deals with.

use mle_star_agent::AgentError;
use mle_star_exec::ExecError;
use mle_star_journal::JournalError;

use crate::event::Lack;
use crate::models::AgentType;
use crate::prompt::PromptError;
use crate::step::{Digest, StepKey};

/// Why a part of a run stops.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An agent could not be asked.
    #[error("could not ask the agent at step `{key}`")]
    Agent {
        /// Where.
        key: StepKey,
        /// Why.
        source: AgentError,
    },
    /// A script could not be run.
    #[error("could not run a script at step `{key}`")]
    Exec {
        /// Where.
        key: StepKey,
        /// The fingerprint of the script.
        input: Box<Digest>,
        /// Why.
        source: ExecError,
    },
    /// A step was not done when it was its turn, and the run goes on without it.
    #[error("{}", not_done(.key, .lack))]
    NotDone {
        /// Where.
        key: StepKey,
        /// Why.
        lack: Lack,
    },
    /// The journal could not be read or written.
    #[error("the journal of the run cannot be used")]
    Journal(#[from] JournalError),
    /// A file of the run directory could not be read or written. The message names it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A prompt could not be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The journal has this step, done with another input.
    #[error(
        "step `{key}` was recorded with a different input; going on would redo {steps} recorded \
         steps (${dollars:.2})"
    )]
    Diverged {
        /// The first step that differs.
        key: StepKey,
        /// How many recorded steps would be done again, this one included.
        steps: usize,
        /// What those had cost.
        dollars: f64,
    },
    /// A replay needs a step that the journal does not have.
    #[error("step `{key}` is not in the journal")]
    NotRecorded {
        /// Which.
        key: StepKey,
    },
    /// The journal was written by a version of the program that this one does not understand.
    #[error("the journal has format {found}; this program reads format {expected}")]
    Format {
        /// What the journal says.
        found: u64,
        /// What this program reads and writes.
        expected: u32,
    },
    /// The journal does not begin with the settings of its run.
    #[error("the journal does not begin with the settings of its run")]
    Headless,
    /// A function was called with something that it cannot work with.
    #[error("{0}")]
    Precondition(&'static str),
    /// An agent without which nothing can begin gave no answer.
    #[error("A_{agent} gave no answer: {reason}")]
    NoAnswer {
        /// Which.
        agent: AgentType,
        /// What it said instead.
        reason: String,
    },
    /// The retriever's reply could not be read.
    #[error("the reply of A_retriever could not be read: {excerpt}")]
    Retriever {
        /// How the reply begins.
        excerpt: String,
    },
    /// The retriever found nothing.
    #[error("A_retriever returned zero models")]
    NoModels,
    /// No candidate of Phase 1 has a score.
    #[error("Phase 1 failed: all {tried} candidates produced execution errors")]
    NoCandidate {
        /// How many were tried.
        tried: usize,
    },
}

impl Error {
    /// The error with all its causes, on one line.
    pub fn in_full(&self) -> String {
        mle_star_exec::in_full(self)
    }

    /// Whether time, money or agents were lacking: nothing more can be done here, and what there
    /// is counts.
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::NotDone { lack, .. } if lack.is_shortage())
    }

    /// Whether this must stop the whole run, not only the path on which it happened: what is wrong
    /// is outside the path, and the run can be resumed when it is mended.
    pub fn stops_the_run(&self) -> bool {
        match self {
            Self::Agent { .. }
            | Self::Journal(_)
            | Self::Io(_)
            | Self::Diverged { .. }
            | Self::NotRecorded { .. }
            | Self::Format { .. }
            | Self::Headless => true,
            Self::Exec { source, .. } => is_about_the_disk(source),
            Self::NotDone { .. }
            | Self::Prompt(_)
            | Self::Precondition(_)
            | Self::NoAnswer { .. }
            | Self::Retriever { .. }
            | Self::NoModels
            | Self::NoCandidate { .. } => false,
        }
    }
}

/// Whether the disk is to blame: then no other path would fare better.
fn is_about_the_disk(error: &ExecError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    if let ExecError::Io(error) = error {
        return matches!(error.kind(), QuotaExceeded | ReadOnlyFilesystem | StorageFull);
    }
    matches!(error, ExecError::NoRoom { .. })
}

fn not_done(key: &StepKey, lack: &Lack) -> String {
    match lack {
        // To the letter what the error said when it was new.
        Lack::Executor { reason } => format!("could not run a script at step `{key}`: {reason}"),
        Lack::Time | Lack::Money | Lack::Agents { .. } | Lack::Patience => {
            format!("step `{key}` was not done: {lack}")
        }
    }
}

/// `None` if time, money or agents were lacking.
pub(crate) fn unless_short<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(error) if error.is_shortage() => Ok(None),
        result => result.map(Some),
    }
}

/// Why a run ended without a result, and how far it got.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// Phase 1 gave no solution to work with.
    #[error("no initial solution was found")]
    Phase1 {
        /// Why.
        source: Box<Error>,
        /// How far the run got.
        diagnostics: Box<Diagnostics>,
    },
    /// Time, money or agents ran out before a first solution was scored.
    #[error("the run ended before a first solution was scored, because {lack}")]
    Exhausted {
        /// What ran out first.
        lack: Lack,
        /// What could not be done without it.
        source: Box<Error>,
        /// How far the run got.
        diagnostics: Box<Diagnostics>,
    },
    /// Something outside the algorithm failed. The run can be resumed when it is mended.
    #[error("the run was stopped")]
    Stopped {
        /// Why.
        source: Box<Error>,
        /// How far the run got.
        diagnostics: Box<Diagnostics>,
    },
}

/// How far a run got before it failed.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Diagnostics {
    /// Running time until then.
    pub elapsed_seconds: f64,
    /// What the agents had cost.
    pub cost_usd: Option<f64>,
    /// The last step that was finished.
    pub last_finished_step: Option<String>,
    /// How many steps were finished.
    pub finished_steps: usize,
    /// The scripts that were run until then, by the names of their files in `solutions/`.
    pub scripts: Vec<String>,
}

impl PipelineError {
    /// How far the run got.
    pub fn diagnostics(&self) -> &Diagnostics {
        match self {
            Self::Phase1 { diagnostics, .. }
            | Self::Exhausted { diagnostics, .. }
            | Self::Stopped { diagnostics, .. } => diagnostics,
        }
    }

    /// What went wrong.
    pub fn cause(&self) -> &Error {
        match self {
            Self::Phase1 { source, .. }
            | Self::Exhausted { source, .. }
            | Self::Stopped { source, .. } => source,
        }
    }
}
