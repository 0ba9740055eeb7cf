//! The playbook: an expert system that plays every role of MLE-STAR without a language model.
//!
//! Its knowledge is Python in `catalogue/`, one file per piece. It looks at the data once
//! ([`Shape`]), chooses the pieces that fit, and from then on every reply is a pure function of
//! the call: the same call gets the same reply in this run, in a resumed one and in the next.
//!
//! Reading order: `shape` (what the data is), `catalogue` (what could be done), `script` (what a
//! solution is made of), `data_section` and `assembly` (from pieces to a script), `ideas` (what
//! can be done to a block), then one file per role in `roles/`. `leaks` finds data leakage in any
//! script, also in those that the playbook did not write.
//!
//! Absent on purpose: files written, processes started, clocks and random numbers. What the
//! playbook cannot do it says, and leaves the input as it was.

mod assembly;
mod catalogue;
mod data_section;
mod ideas;
mod leaks;
mod roles;
mod script;
mod shape;

use futures::future::BoxFuture;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_profile::DataProfile;
use mle_star_search::models::{MetricDirection, TaskDescription};
use serde::de::DeserializeOwned;

use catalogue::Catalogue;
pub use leaks::{Leak, leaks};
pub use shape::{Certainty, Kind, Seen, Shape, ShapeError, Wanted};

/// Answers every role from the catalogue.
#[derive(Debug)]
pub struct Playbook {
    pub(crate) shape: Shape,
    pub(crate) catalogue: Catalogue,
    pub(crate) direction: MetricDirection,
    pub(crate) options: Options,
}

/// What a run says about its scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// More training rows than this are subsampled, but for the submission.
    pub subsample_limit: u64,
    /// Where the scripts' random numbers begin.
    pub seed: u64,
    /// With how many models the run begins.
    pub models_retrieved: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { subsample_limit: 30_000, seed: 0, models_retrieved: 4 }
    }
}

impl Playbook {
    /// Looks at the data of `task` and opens the catalogue at the pieces that fit it. `packages`
    /// are the names of the installed Python packages; an empty list means that nobody knows.
    pub fn new(
        task: &TaskDescription,
        profile: &DataProfile,
        packages: &[String],
        options: Options,
    ) -> Result<Self, ShapeError> {
        let shape = Shape::of(task, profile)?;
        let catalogue = Catalogue::fitting(&shape, packages);
        Ok(Self { shape, catalogue, direction: task.metric_direction, options })
    }

    /// The same where these packages are installed. The data is not looked at again.
    #[must_use]
    pub fn with_packages(self, packages: &[String]) -> Self {
        Self { catalogue: Catalogue::fitting(&self.shape, packages), ..self }
    }

    fn answer(&self, call: &Call) -> Result<Reply, AgentError> {
        use roles::*;
        match (call.role.as_str(), call.variant.as_deref()) {
            ("retriever", _) => Ok(retriever::answer(self, &input(call)?)),
            ("init", _) => init::answer(self, &input(call)?),
            ("merger", _) => merger::answer(self, &input(call)?),
            ("ablation", _) => ablation::answer(self, &input(call)?),
            ("summarize", _) => Ok(summarize::answer(self, &input(call)?)),
            ("extractor", _) => extractor::answer(self, &input(call)?, path(call)),
            ("planner", _) => Ok(planner::answer(self, &input(call)?)),
            ("coder", _) => coder::answer(self, &input(call)?),
            ("ens_planner", _) => Ok(ens_planner::answer(self, &input(call)?)),
            ("ensembler", _) => ensembler::answer(self, &input(call)?),
            ("debugger", _) => debugger::answer(self, &input(call)?),
            ("leakage", Some("correction")) => Ok(leakage::correct(&input(call)?)),
            ("leakage", _) => Ok(leakage::detect(&input(call)?)),
            ("data", _) => Ok(data::answer(self, &input(call)?)),
            ("test", Some("subsampling_extract")) => Ok(test::extract_subsampling(&input(call)?)),
            ("test", Some("subsampling_remove")) => Ok(test::remove_subsampling(&input(call)?)),
            ("test", Some("contamination")) => Ok(test::contamination()),
            ("test", _) => test::answer(self, &input(call)?),
            (role, _) => Err(no_answer(format!("the playbook does not know the role `{role}`"))),
        }
    }
}

impl Agent for Playbook {
    fn name(&self) -> &str {
        "playbook (no LLM)"
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        let free = |reply| Reply { cost_usd: Some(0.0), ..reply };
        Box::pin(async move { self.answer(call).map(free) })
    }
}

/// What the prompt of a call was rendered from.
fn input<T: DeserializeOwned>(call: &Call) -> Result<T, AgentError> {
    serde_json::from_value(call.input.clone())
        .map_err(|error| no_answer(format!("the input of `{}` cannot be read: {error}", call.role)))
}

/// The number at the end of the lane, so that parallel paths do not all do the same.
fn path(call: &Call) -> usize {
    let digits = call.lane.rsplit(|it: char| !it.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

fn no_answer(reason: impl Into<String>) -> AgentError {
    AgentError::NoAnswer { reason: reason.into(), cost_usd: None }
}

#[cfg(test)]
mod testing;
