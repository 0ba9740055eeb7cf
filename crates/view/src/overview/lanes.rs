//! What goes on side by side: one lane for each candidate, each path, the ensemble and the end.

use mle_star_search::event::{Begun, Event, Phase};
use mle_star_search::models::{MetricDirection, Score, best_of, is_improvement};
use serde::Serialize;

use super::place::Place;

/// How many points of a trend are kept; the oldest go first.
const KEPT_POINTS: usize = 500;

/// Work that goes on one step after another, beside that of other lanes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lane {
    /// Its name, such as `path-0`.
    pub name: String,
    /// How it is doing.
    pub state: LaneState,
    /// The step it is at, or was at last.
    pub step: String,
    /// Its best score so far.
    pub best: Option<Score>,
    /// How its best score came to be.
    pub trend: Vec<Point>,
    /// What its agents were paid.
    pub cost_usd: f64,
    /// Running time of the run when it first did something.
    pub began_seconds: f64,
    /// Running time of the run when it last did something.
    pub ended_seconds: f64,
    /// Why it failed.
    pub failure: Option<String>,
}

/// How a lane is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneState {
    /// A step is in flight.
    Working,
    /// Nothing is in flight; there may be more to do.
    Idle,
    /// All is done.
    Done,
    /// It ended before all was done.
    CutShort,
    /// It could not go on.
    Failed,
}

/// A score at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Running time of the run.
    pub seconds: f64,
    /// The score.
    pub score: Score,
}

/// A step that was begun and is not finished.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenStep {
    /// Which.
    pub key: String,
    /// Its lane.
    pub lane: String,
    /// Running time of the run when it began.
    pub began_seconds: f64,
    /// If it runs a script: which, by the name of its file in `solutions/`.
    pub script: Option<String>,
    /// If it runs a script: how long that may take.
    pub limit_seconds: Option<f64>,
    /// If it runs a script: running time of the run when that could begin; `None` while others have
    /// the machine.
    pub runs_since_seconds: Option<f64>,
}

impl OpenStep {
    /// Whether it has a script that cannot run yet.
    pub fn waits(&self) -> bool {
        self.script.is_some() && self.runs_since_seconds.is_none()
    }
}

/// All lanes, in the order in which they began, and what is in flight.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Lanes {
    pub(crate) all: Vec<Lane>,
    pub(crate) open: Vec<OpenStep>,
    /// How many scripts run side by side, if that is known. The others wait, and are let in in the
    /// order in which they came.
    pub(crate) slots: Option<usize>,
}

impl Lanes {
    pub(crate) fn started(&mut self, key: &str, begun: Option<&Begun>, seconds: f64) {
        let (name, script, limit_seconds) = match begun {
            Some(Begun::Ask { lane, .. }) => (lane.clone(), None, None),
            Some(Begun::Run { lane, script, time_limit_seconds, .. }) => {
                (lane.clone(), Some(script.clone()), Some(*time_limit_seconds))
            }
            None => (Place::of(key).lane(), None, None),
        };
        let lane = self.at(&name, seconds);
        key.clone_into(&mut lane.step);
        lane.state = LaneState::Working;
        lane.ended_seconds = seconds;
        let running = self.open.iter().filter(|it| it.runs_since_seconds.is_some()).count();
        let has_room = self.slots.is_none_or(|slots| running < slots);
        self.open.push(OpenStep {
            runs_since_seconds: (script.is_some() && has_room).then_some(seconds),
            key: key.to_owned(),
            lane: name,
            began_seconds: seconds,
            script,
            limit_seconds,
        });
    }

    pub(crate) fn ended(&mut self, key: &str, dollars: f64, seconds: f64) {
        let position = self.open.iter().position(|it| it.key == key);
        let Some(step) = position.map(|position| self.open.remove(position)) else { return };
        if step.runs_since_seconds.is_some()
            && let Some(next) = self.open.iter_mut().find(|it| it.waits())
        {
            next.runs_since_seconds = Some(seconds);
        }
        let is_idle = !self.open.iter().any(|it| it.lane == step.lane);
        let lane = self.at(&step.lane, seconds);
        lane.cost_usd += dollars;
        lane.ended_seconds = seconds;
        if is_idle && lane.state == LaneState::Working {
            lane.state = LaneState::Idle;
        }
    }

    /// Nobody works on the run any more.
    pub(crate) fn stop(&mut self) {
        self.open.clear();
        let working = self.all.iter_mut().filter(|it| it.state == LaneState::Working);
        working.for_each(|lane| lane.state = LaneState::Idle);
    }

    /// A script got a score.
    pub(crate) fn scored(
        &mut self,
        key: &str,
        score: Score,
        (direction, seconds): (MetricDirection, f64),
    ) {
        let lane = self.at(&Place::of(key).lane(), seconds);
        if lane.best.is_none_or(|best| is_improvement(score, best, direction)) {
            lane.trend.push(Point { seconds, score });
            if lane.trend.len() > KEPT_POINTS {
                lane.trend.remove(0);
            }
        }
        lane.best = Some(best_of(lane.best, score, direction));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "few events matter here")]
    pub(crate) fn happened(&mut self, event: &Event, seconds: f64) {
        match event {
            Event::PathEnded { path, failure, cut_short, .. } => {
                let lane = self.at(&format!("path-{path}"), seconds);
                lane.state = match (failure, cut_short) {
                    (Some(_), _) => LaneState::Failed,
                    (None, true) => LaneState::CutShort,
                    (None, false) => LaneState::Done,
                };
                lane.failure.clone_from(failure);
            }
            Event::PhaseEnded { phase, .. } => {
                let belongs = |name: &str| match phase {
                    Phase::Phase1 => name.starts_with("candidate-") || name == "merge",
                    Phase::Phase2 => false,
                    Phase::Phase3 => name == "ensemble",
                    Phase::Finalization => name == "final" || name == "main",
                };
                let lanes = self.all.iter_mut().filter(|it| belongs(&it.name));
                lanes.for_each(|lane| lane.state = LaneState::Done);
            }
            _ => {}
        }
    }

    fn at(&mut self, name: &str, seconds: f64) -> &mut Lane {
        let position = self.all.iter().position(|it| it.name == name);
        let position = position.unwrap_or_else(|| {
            self.all.push(Lane {
                name: name.to_owned(),
                state: LaneState::Idle,
                step: String::new(),
                best: None,
                trend: Vec::new(),
                cost_usd: 0.0,
                began_seconds: seconds,
                ended_seconds: seconds,
                failure: None,
            });
            self.all.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "a position of this list")]
        &mut self.all[position]
    }
}
