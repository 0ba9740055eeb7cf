//! When the phases began and ended.

use mle_star_search::event::{Event, Phase};
use mle_star_search::models::Score;
use serde::Serialize;

/// A phase that has begun.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseSpan {
    /// Which.
    pub phase: Phase,
    /// Running time of the run when it began.
    pub began_seconds: f64,
    /// Running time of the run when it ended.
    pub ended_seconds: Option<f64>,
    /// The best score when it ended.
    pub best: Option<Score>,
    /// What became of it.
    pub outcome: PhaseOutcome,
}

/// What became of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseOutcome {
    /// It has not ended.
    Open,
    /// It has ended.
    Ended,
    /// It was not needed.
    Skipped,
    /// It has ended without a result.
    Failed,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Phases {
    pub(crate) all: Vec<PhaseSpan>,
    /// The rows of the last submission that was written.
    pub(crate) rows: Option<u64>,
    /// How many steps were finished when the last phase began.
    steps: usize,
}

impl Phases {
    #[expect(clippy::wildcard_enum_match_arm, reason = "few events matter here")]
    pub(crate) fn happened(&mut self, event: &Event, seconds: f64, steps: usize) {
        match event {
            Event::PhaseStarted { phase } => {
                self.steps = steps;
                self.at(*phase, seconds);
            }
            Event::PhaseEnded { phase, best } => {
                let began = self.steps;
                let span = self.at(*phase, seconds);
                span.best = *best;
                span.outcome = PhaseOutcome::Ended;
                // A resumed run may tell of a phase again in which nothing is left to do.
                if span.ended_seconds.is_none() || steps > began {
                    span.ended_seconds = Some(seconds);
                }
            }
            Event::PhaseSkipped { phase, best } => {
                let span = self.at(*phase, seconds);
                (span.best, span.outcome) = (*best, PhaseOutcome::Skipped);
                span.ended_seconds.get_or_insert(seconds);
            }
            Event::PhaseFailed { phase, .. } => {
                let span = self.at(*phase, seconds);
                span.outcome = PhaseOutcome::Failed;
                span.ended_seconds = Some(seconds);
            }
            _ => {}
        }
    }

    fn at(&mut self, phase: Phase, seconds: f64) -> &mut PhaseSpan {
        let position = self.all.iter().position(|it| it.phase == phase);
        let position = position.unwrap_or_else(|| {
            self.all.push(PhaseSpan {
                phase,
                began_seconds: seconds,
                ended_seconds: None,
                best: None,
                outcome: PhaseOutcome::Open,
            });
            self.all.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "a position of this list")]
        &mut self.all[position]
    }
}
