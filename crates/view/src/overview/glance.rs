//! What is handed out of an overview: at a glance, as a whole, and against its limits.

use std::collections::VecDeque;

use jiff::Timestamp;
use mle_star_search::budget;
use mle_star_search::event::Phase;
use mle_star_search::models::Score;
use mle_star_search::summary::{Costs, Durations};
use serde::Serialize;

use super::{
    Lane, OpenStep, Overview, PhaseSpan, Said, Solution, State, Study, Subject, Submission, Trouble,
};

/// What a list of runs shows of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Glance {
    /// The task.
    pub competition_id: String,
    /// The metric, with its direction.
    pub metric: String,
    /// Who answers the calls.
    pub agents: String,
    /// How far it is.
    pub state: State,
    /// The phase it is in.
    pub phase: Option<Phase>,
    /// When it began.
    pub began: Option<Timestamp>,
    /// When something was last recorded.
    pub last: Option<Timestamp>,
    /// Running time until then.
    pub elapsed_seconds: f64,
    /// Agent calls that were answered.
    pub agent_calls: usize,
    /// How often a script was run.
    pub scripts: usize,
    /// What was spent, calls that were cut off included; `None` if no agent has said.
    pub cost_usd: Option<f64>,
    /// The best score so far.
    pub best: Option<Score>,
    /// The score of what was finalized.
    pub selected: Option<Score>,
    /// How often it was taken up again.
    pub resumes: usize,
    /// How many warnings there were.
    pub warnings: usize,
}

/// Everything that a view may want, as `show --json` prints it.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the parts of the overview")]
pub struct Whole<'a> {
    #[serde(flatten)]
    pub glance: Glance,
    pub subject: Option<&'a Subject>,
    pub budget: Option<Budget>,
    pub costs: &'a Costs,
    pub durations: Durations,
    pub phases: &'a [PhaseSpan],
    pub lanes: &'a [Lane],
    pub open_steps: &'a [OpenStep],
    pub solutions: &'a [Solution],
    pub submission: Option<&'a Submission>,
    pub ablations: &'a [Study],
    pub troubles: &'a [Trouble],
    pub lineage: &'a [String],
    pub events: &'a VecDeque<Said>,
}

/// What may be spent, and what was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Budget {
    /// How long the run may take.
    pub time_limit_seconds: f64,
    /// The last part of it, which only finalization may use.
    pub reserve_seconds: f64,
    /// How long it has taken.
    pub elapsed_seconds: f64,
    /// What the agents may cost.
    pub max_budget_usd: Option<f64>,
    /// What they have cost.
    pub spent_usd: f64,
}

impl Overview {
    /// What may be spent, and what was.
    pub fn budget(&self) -> Option<Budget> {
        let settings = &self.subject.as_ref()?.settings;
        let reserve_seconds = budget::finalization_reserve(settings);
        Some(Budget {
            time_limit_seconds: budget::search_ends(settings) + reserve_seconds,
            reserve_seconds,
            elapsed_seconds: self.elapsed(),
            max_budget_usd: settings.max_budget_usd,
            spent_usd: self.tally.costs.total_cost_usd,
        })
    }

    /// What a list of runs shows of it.
    pub fn glance(&self) -> Glance {
        let subject = self.subject.as_deref();
        let text = |of: fn(&Subject) -> String| subject.map(of).unwrap_or_default();
        Glance {
            competition_id: text(|it| it.competition_id.clone()),
            metric: text(|it| format!("{} ({})", it.metric, it.direction.in_words())),
            agents: text(|it| it.agents.clone()),
            state: self.state(),
            phase: self.phases.all.last().map(|it| it.phase),
            began: self.began,
            last: self.tally.last(),
            elapsed_seconds: self.elapsed(),
            agent_calls: self.tally.agent_calls,
            scripts: self.tally.runs,
            cost_usd: self.tally.cost_usd(),
            best: self.tally.best,
            selected: self.selected.as_ref().map(|it| it.score),
            resumes: self.tally.resumes,
            warnings: self.warning_count,
        }
    }

    /// Everything, in a form that can be written down.
    pub fn whole(&self) -> Whole<'_> {
        Whole {
            glance: self.glance(),
            subject: self.subject.as_deref(),
            budget: self.budget(),
            costs: &self.tally.costs,
            durations: self.durations(),
            phases: self.phases(),
            lanes: self.lanes(),
            open_steps: self.open_steps(),
            solutions: self.solutions(),
            submission: self.submission.as_ref(),
            ablations: self.studies(),
            troubles: &self.troubles,
            lineage: &self.lineage,
            events: &self.events,
        }
    }
}
