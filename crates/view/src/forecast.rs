//! When a run will probably end, and what it will have cost.

use mle_star_search::budget;
use mle_star_search::event::Phase;
use serde::Serialize;

use crate::overview::{Overview, PhaseOutcome, SolutionKind};

/// A guess at the end of a run, from how long its parts took so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// How much longer it will take.
    pub seconds_left: f64,
    /// What it will have cost, if its agents cost anything.
    pub cost_usd: Option<f64>,
    /// How much of the work is done, from 0 to 1.
    pub done: f64,
}

/// How many parts, one after another, show how fast a phase is.
const ENOUGH: f64 = 2.0;

/// The parts of a run that take about as long as each other: a script that is written and judged,
/// or a study.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    planned: f64,
    done: f64,
    /// How many of them are worked on at the same time.
    side_by_side: f64,
}

impl Forecast {
    /// A guess for a run that is going on and has taken `elapsed` seconds; `None` before there is
    /// anything to go by.
    pub fn of(overview: &Overview, elapsed: f64) -> Option<Self> {
        let settings = &overview.subject.as_ref()?.settings;
        let phases = [Phase::Phase1, Phase::Phase2, Phase::Phase3, Phase::Finalization];
        let parts = phases.map(|phase| Parts::of(overview, phase));
        let done: f64 = parts.iter().map(|it| it.done).sum();
        let planned: f64 = parts.iter().map(|it| it.planned).sum();
        if done < 1.0 || elapsed <= 0.0 {
            return None;
        }
        let round = pace(overview, &phases, &parts, elapsed);
        let left: f64 = parts.iter().map(|it| (it.planned - it.done) / it.side_by_side).sum();
        let limit = budget::search_ends(settings) + budget::finalization_reserve(settings);
        let seconds_left = (left * round).min((limit - elapsed).max(0.0));
        let spent = overview.tally.costs.total_cost_usd;
        let cost = spent * planned / done;
        let cost = settings.max_budget_usd.map_or(cost, |most| cost.min(most.max(spent)));
        let cost_usd = overview.tally.cost_usd().map(|_| cost);
        Some(Self { seconds_left, cost_usd, done: (done / planned).min(1.0) })
    }
}

/// How many seconds a part takes where as many are under way as usual: in the phase that goes on,
/// once that has shown it, else in the run so far. What is refined takes longer than what it began
/// with.
fn pace(overview: &Overview, phases: &[Phase; 4], parts: &[Parts; 4], elapsed: f64) -> f64 {
    let rounds = |it: &Parts| it.done / it.side_by_side;
    let open = overview.phases().iter().find(|it| it.outcome == PhaseOutcome::Open);
    let here = open.and_then(|open| {
        let position = phases.iter().position(|it| *it == open.phase)?;
        let rounds = parts.get(position).map(rounds).filter(|it| *it >= ENOUGH)?;
        Some((elapsed - open.began_seconds) / rounds)
    });
    here.unwrap_or_else(|| elapsed / parts.iter().map(rounds).sum::<f64>().max(1.0))
}

impl Parts {
    fn of(overview: &Overview, phase: Phase) -> Self {
        let Some(subject) = &overview.subject else { return Self::default() };
        let settings = &subject.settings;
        let ended = |kind: SolutionKind| {
            let all = overview.solutions().iter();
            all.filter(|it| it.kind == kind && it.ended_seconds.is_some()).count()
        };
        let models = ended(SolutionKind::Model);
        let models = if models == 0 { settings.num_retrieved_models } else { models };
        let paths = settings.num_parallel_solutions;
        let (planned, done, side_by_side) = match phase {
            Phase::Phase1 => {
                let done = ended(SolutionKind::Candidate) + ended(SolutionKind::Merged);
                (2 * models, done + ended(SolutionKind::EarlySubmission), 1)
            }
            Phase::Phase2 => {
                let studies = overview.studies().iter();
                let studies = studies.filter(|it| it.block.is_some() || it.ended_seconds.is_some());
                let steps = settings.outer_loop_steps * (settings.inner_loop_steps + 1);
                (paths * steps, ended(SolutionKind::Refined) + studies.count(), paths)
            }
            Phase::Phase3 if paths == 1 => (0, 0, 1),
            Phase::Phase3 => (settings.ensemble_rounds, ended(SolutionKind::Ensemble), 1),
            Phase::Finalization => (1, ended(SolutionKind::Final), 1),
        };
        let is_over = overview
            .phases()
            .iter()
            .any(|it| it.phase == phase && it.outcome != PhaseOutcome::Open);
        let done = if is_over { planned } else { done.min(planned) };
        let number = |it: usize| u32::try_from(it).map_or(f64::MAX, f64::from);
        Self {
            planned: number(planned),
            done: number(done),
            side_by_side: number(side_by_side.max(1)),
        }
    }
}
