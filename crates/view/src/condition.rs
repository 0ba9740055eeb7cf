//! How a run is doing: the one place that decides it, for `list`, `show`, `clean`, the report and
//! the page alike.
//!
//! The records do not say it alone: a run that was killed and one that is thinking look the same.
//! Whoever looks must bring whether somebody holds the journal. A damaged journal is not told here,
//! because there are no records to tell it by: those who read it have the error.

use std::fmt;

use mle_star_search::rundir::RunDir;
use serde::Serialize;

use crate::overview::{Overview, PhaseOutcome, State};

/// Whether somebody works on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Somebody holds its journal.
    GoesOn,
    /// Nobody does.
    Rests,
}

/// How a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// There is nothing in its journal.
    Empty,
    /// Somebody works on it.
    Running,
    /// It has not reached its end, and nobody works on it.
    Stopped,
    /// It has ended without a solution.
    Failed,
    /// It has reached its end.
    Finished,
}

impl Work {
    /// Whether somebody works on the run in `dir` now. To be asked before its records are read:
    /// a run that ends in between would else look as if it had been stopped.
    pub fn on(dir: &RunDir) -> Self {
        if dir.is_held() { Self::GoesOn } else { Self::Rests }
    }
}

impl Condition {
    /// The condition of a run with these records.
    pub fn of(overview: &Overview, work: Work) -> Self {
        let has_failed = || overview.phases().iter().any(|it| it.outcome == PhaseOutcome::Failed);
        match (overview.state(), work) {
            (State::Empty, _) => Self::Empty,
            (State::Finished, _) => Self::Finished,
            (State::Unfinished, Work::GoesOn) => Self::Running,
            (State::Unfinished, Work::Rests) if has_failed() => Self::Failed,
            (State::Unfinished, Work::Rests) => Self::Stopped,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Empty => "empty",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Finished => "finished",
        })
    }
}
