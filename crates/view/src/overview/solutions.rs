//! What was tried: retrieved models, candidates, merges, refinements, ensembles, the final script.
//!
//! A solution is known by the place in the run where it was judged. A run that is taken up with
//! other limits tells again what came of it all, so everything here may come twice.

use mle_star_exec::Outcome;
use mle_star_search::evaluate::Purpose;
use mle_star_search::event::{Event, Phase};
use mle_star_search::models::{
    MetricDirection, Score, SolutionPhase, is_improvement, is_improvement_or_equal,
};
use serde::Serialize;

use super::place::Place;
use super::text::{shortened, shortened_to};

/// A script that was tried, or a model that one was written for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Solution {
    /// Its place in the run, such as `phase2/path-0/outer-1/inner-2`.
    pub id: String,
    /// What it is.
    pub kind: SolutionKind,
    /// What a person would call it.
    pub name: String,
    /// What it was made from.
    pub parents: Vec<String>,
    /// The script as it was last run, by the name of its file in `solutions/`.
    pub script: Option<String>,
    /// The idea behind it.
    pub plan: Option<String>,
    /// What it scored.
    pub score: Option<Score>,
    /// What became of it.
    pub outcome: SolutionOutcome,
    /// What was wrong with it in the end.
    pub error: Option<String>,
    /// How many repairs it took.
    pub repairs: usize,
    /// What the agents were paid for it.
    pub cost_usd: f64,
    /// How long its scripts ran.
    pub script_seconds: f64,
    /// Running time of the run when work on it began.
    pub began_seconds: f64,
    /// Running time of the run when it was judged.
    pub ended_seconds: Option<f64>,
}

/// What a solution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SolutionKind {
    /// A retrieved model.
    Model,
    /// A script for one model.
    Candidate,
    /// A merge of two scripts.
    Merged,
    /// The merged script after the checks for data usage and leakage.
    Checked,
    /// A script with a refined block.
    Refined,
    /// A combination of the paths' scripts.
    Ensemble,
    /// The script of the early submission.
    EarlySubmission,
    /// The script of the final submission.
    Final,
}

/// What became of a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SolutionOutcome {
    /// It is a model that was found; scripts are written for it.
    Retrieved,
    /// It is being worked on, or the run ended before it was judged.
    Open,
    /// It ran.
    Scored,
    /// It is at least as good as what was best before, and took its place.
    Accepted,
    /// It is worse.
    Rejected,
    /// It could not be made to run.
    Failed,
    /// It wrote a submission that was verified.
    Submitted,
}

/// All of them, in the order in which they began, and which are the best of their kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Solutions {
    pub(crate) all: Vec<Solution>,
    models: Vec<String>,
    /// Numbers of the candidates, best first.
    ranked: Vec<usize>,
    /// The best of Phase 1 so far.
    base: Option<String>,
    paths: Vec<Path>,
    best_round: Option<(String, Score)>,
    /// What was paid for checks, which are a solution only if they change the script.
    checks_cost_usd: f64,
    pub(crate) selected: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Path {
    /// The solution that the current outer step works on.
    start: Option<String>,
    best: Option<(String, Score)>,
}

impl Solutions {
    pub(crate) fn get(&self, id: &str) -> Option<&Solution> {
        self.all.iter().find(|it| it.id == id)
    }

    /// Work on a step began.
    pub(crate) fn started(&mut self, key: &str, seconds: f64) {
        let Some(id) = Place::of(key).solution() else { return };
        // Most checks leave the script as it is, and then there is no other solution.
        if id.ends_with("checks") && Place::of(key).last() != "run" {
            return;
        }
        let solution = self.at(id, seconds);
        if Place::of(key).last() == "run" {
            solution.ended_seconds = None;
        }
    }

    /// An agent was paid for its work on a step.
    pub(crate) fn paid(&mut self, key: &str, dollars: f64) {
        match (self.known(key), Place::of(key).solution()) {
            (Some(solution), _) => solution.cost_usd += dollars,
            (None, Some(_)) => self.checks_cost_usd += dollars,
            (None, None) => {}
        }
    }

    /// A script was run.
    pub(crate) fn ran(&mut self, key: &str, script: &str, outcome: &Outcome) {
        if let Some(solution) = self.known(key) {
            solution.script = Some(script.to_owned());
            solution.script_seconds += outcome.duration_seconds;
        }
    }

    /// Something happened. Gives the solution that was judged for the first time, if one was.
    pub(crate) fn happened(
        &mut self,
        key: &str,
        event: &Event,
        seconds: f64,
        direction: MetricDirection,
    ) -> Option<&Solution> {
        match event {
            // A phase that is told again is told from its beginning.
            Event::PhaseStarted { phase: Phase::Phase2 } => self.paths.clear(),
            Event::PhaseStarted { phase: Phase::Phase3 } => self.best_round = None,
            Event::Retrieved { models } => self.retrieved(models, seconds),
            Event::Ranked { candidates } => {
                self.ranked.clone_from(candidates);
                self.base = candidates.first().map(|it| format!("phase1/candidate-{it}"));
            }
            Event::Evaluated { purpose, score, repairs, error } => {
                self.guess_base(key, *score, direction);
                return self.evaluated(key, *purpose, (*score, *repairs, error.as_ref()), seconds);
            }
            Event::Merged { accepted, .. } => {
                self.judge(key, *accepted, seconds);
                if *accepted {
                    self.base = Some(key.to_owned());
                }
            }
            Event::Refined { plan, score, accepted, .. } => {
                self.at(key, seconds).score = *score;
                let solution = self.judge(key, *accepted, seconds);
                solution.plan = Some(shortened(plan));
                let path = Place::of(key).number("path");
                if let (Some(path), Some(score), true) = (path, score, accepted) {
                    self.path(path).best = Some((key.to_owned(), *score));
                }
            }
            Event::OuterStepEnded { .. } => {
                if let Some(path) = Place::of(key).number("path").map(|path| self.path(path)) {
                    path.start = path.best.as_ref().map(|(id, _)| id.clone()).or(path.start.take());
                }
            }
            Event::Ensembled { plan, score } => {
                let best = self.best_round.as_ref().map(|(_, best)| *best);
                let better = |it: Score| {
                    best.is_none_or(|best| is_improvement_or_equal(it, best, direction))
                };
                let accepted = score.filter(|score| better(*score));
                self.at(key, seconds).score = *score;
                let solution = self.judge(key, accepted.is_some(), seconds);
                solution.plan = Some(shortened(plan));
                if let Some(score) = accepted {
                    self.best_round = Some((key.to_owned(), score));
                }
            }
            Event::Selected { from, score } => self.selected = self.select(*from, *score),
            Event::Published { .. } => {
                let id = Place::of(key).solution().unwrap_or(key).to_owned();
                self.at(&id, seconds).outcome = SolutionOutcome::Submitted;
            }
            Event::PhaseStarted { phase: Phase::Phase1 | Phase::Finalization }
            | Event::PhaseEnded { .. }
            | Event::PhaseSkipped { .. }
            | Event::PhaseFailed { .. }
            | Event::LeakageChecked { .. }
            | Event::DataUsageChecked { .. }
            | Event::OuterStepStarted { .. }
            | Event::OuterStepSkipped { .. }
            | Event::OuterLoopEnded { .. }
            | Event::BlockChecked { .. }
            | Event::BlockReplaced { .. }
            | Event::InnerLoopStarted { .. }
            | Event::InnerLoopEnded { .. }
            | Event::PathEnded { .. }
            | Event::RoundStarted { .. }
            | Event::SubsamplingChecked { .. }
            | Event::ContaminationChecked { .. }
            | Event::CutShort { .. }
            | Event::Waiting { .. }
            | Event::Summarized { .. }
            | Event::Submitted { .. }
            | Event::Warned { .. } => {}
        }
        None
    }

    /// Until the candidates are ranked, the best of them is what the run goes on with.
    fn guess_base(&mut self, key: &str, new: Option<Score>, direction: MetricDirection) {
        let Some(new) = new.filter(|_| Place::of(key).number("candidate").is_some()) else {
            return;
        };
        let best = self.base.as_deref().and_then(|id| self.get(id)?.score);
        if self.ranked.is_empty() && best.is_none_or(|it| is_improvement(new, it, direction)) {
            self.base = Some(key.to_owned());
        }
    }

    fn retrieved(&mut self, models: &[String], seconds: f64) {
        self.models = models.iter().map(|it| shortened_to(it, 120)).collect();
        for (index, name) in self.models.clone().into_iter().enumerate() {
            let id = format!("model-{index}");
            if self.get(&id).is_none() {
                let model = Solution::new(&id, SolutionKind::Model, name, Vec::new(), seconds);
                let outcome = SolutionOutcome::Retrieved;
                self.all.push(Solution { outcome, ended_seconds: Some(seconds), ..model });
            }
        }
    }

    fn evaluated(
        &mut self,
        key: &str,
        purpose: Purpose,
        (score, repairs, error): (Option<Score>, usize, Option<&String>),
        seconds: f64,
    ) -> Option<&Solution> {
        let id = Place::of(key).solution()?.to_owned();
        let solution = self.at(&id, seconds);
        let is_news = solution.ended_seconds.is_none() || solution.score != score;
        solution.score = score;
        solution.repairs = repairs;
        solution.error = error.map(|it| shortened(it));
        if is_news {
            solution.ended_seconds = Some(seconds);
        }
        if solution.outcome != SolutionOutcome::Submitted {
            solution.outcome = match (purpose, error) {
                (_, Some(_)) => SolutionOutcome::Failed,
                (Purpose::Validation, None) if score.is_none() => SolutionOutcome::Failed,
                (Purpose::Validation | Purpose::Ablation | Purpose::Submission, None) => {
                    SolutionOutcome::Scored
                }
            };
        }
        if id == "phase1/checks" && score.is_some() {
            solution.outcome = SolutionOutcome::Accepted;
            self.base = Some(id.clone());
        }
        self.get(&id).filter(|_| is_news)
    }

    fn judge(&mut self, key: &str, accepted: bool, seconds: f64) -> &mut Solution {
        let solution = self.at(key, seconds);
        solution.outcome = match (accepted, solution.score) {
            (true, _) => SolutionOutcome::Accepted,
            (false, Some(_)) => SolutionOutcome::Rejected,
            (false, None) => SolutionOutcome::Failed,
        };
        solution.ended_seconds.get_or_insert(seconds);
        solution
    }

    /// What was chosen to be finalized.
    fn select(&self, from: SolutionPhase, score: Score) -> Option<String> {
        let paths = self.paths.iter().rev().filter_map(|path| path.best.as_ref());
        let path = || paths.clone().find(|(_, best)| *best == score).map(|(id, _)| id.clone());
        match from {
            SolutionPhase::Ensemble => self.best_round.as_ref().map(|(id, _)| id.clone()),
            SolutionPhase::Refined => path(),
            SolutionPhase::Init | SolutionPhase::Merged | SolutionPhase::Final => self.base.clone(),
        }
    }

    fn path(&mut self, path: usize) -> &mut Path {
        // A number in a damaged or foreign journal is not to be trusted with memory.
        let path = path.min(1023);
        if self.paths.len() <= path {
            self.paths.resize_with(path + 1, Path::default);
        }
        let base = self.base.clone();
        #[expect(clippy::indexing_slicing, reason = "made just above")]
        let found = &mut self.paths[path];
        if found.start.is_none() {
            found.start = base;
        }
        found
    }

    fn known(&mut self, key: &str) -> Option<&mut Solution> {
        let id = Place::of(key).solution()?;
        self.all.iter_mut().rev().find(|it| it.id == id)
    }

    /// The solution with this id, made if it is new.
    fn at(&mut self, id: &str, seconds: f64) -> &mut Solution {
        let position = self.all.iter().rposition(|it| it.id == id);
        let position = position.unwrap_or_else(|| {
            let solution = self.made(id, seconds);
            self.all.push(solution);
            self.all.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "a position of this list")]
        &mut self.all[position]
    }

    fn made(&mut self, id: &str, seconds: f64) -> Solution {
        let place = Place::of(id);
        let base: Vec<String> = self.base.iter().cloned().collect();
        let (kind, name, parents) = if let Some(index) = place.number("candidate") {
            let name = self.models.get(index).cloned();
            let name = name.unwrap_or_else(|| format!("candidate {index}"));
            (SolutionKind::Candidate, name, vec![format!("model-{index}")])
        } else if let Some(rank) = place.number("merge") {
            let other = self.ranked.get(rank).map(|it| format!("phase1/candidate-{it}"));
            let parents = base.into_iter().chain(other).collect();
            (SolutionKind::Merged, format!("merge {rank}"), parents)
        } else if let (Some((path, outer)), Some(inner)) =
            (place.outer_step(), place.number("inner"))
        {
            let parents = self.path(path).start.iter().cloned().collect();
            let name = format!("path {path}, outer {outer}, inner {inner}");
            (SolutionKind::Refined, name, parents)
        } else if let Some(round) = place.number("round") {
            let mut parents: Vec<String> = Vec::new();
            let base = self.base.clone();
            for path in &self.paths {
                let best = path.best.as_ref().map(|(id, _)| id).or(path.start.as_ref());
                parents.extend(best.filter(|it| !parents.contains(it)).cloned());
            }
            if parents.is_empty() {
                parents.extend(base);
            }
            (SolutionKind::Ensemble, format!("ensemble round {round}"), parents)
        } else if id.ends_with("checks") {
            (SolutionKind::Checked, "after the checks".to_owned(), base)
        } else if id.ends_with("early_submission") {
            (SolutionKind::EarlySubmission, "early submission".to_owned(), base)
        } else {
            let parents = self.selected.iter().cloned().collect();
            (SolutionKind::Final, "final solution".to_owned(), parents)
        };
        let mut solution = Solution::new(id, kind, name, parents, seconds);
        if kind == SolutionKind::Checked {
            solution.cost_usd = std::mem::take(&mut self.checks_cost_usd);
        }
        solution
    }
}

impl Solution {
    fn new(id: &str, kind: SolutionKind, name: String, parents: Vec<String>, seconds: f64) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            name,
            parents,
            script: None,
            plan: None,
            score: None,
            outcome: SolutionOutcome::Open,
            error: None,
            repairs: 0,
            cost_usd: 0.0,
            script_seconds: 0.0,
            began_seconds: seconds,
            ended_seconds: None,
        }
    }
}

impl SolutionKind {
    /// What a person would call it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Model => "retrieved model",
            Self::Candidate => "candidate",
            Self::Merged => "merge",
            Self::Checked => "checked",
            Self::Refined => "refinement",
            Self::Ensemble => "ensemble",
            Self::EarlySubmission => "early submission",
            Self::Final => "final",
        }
    }
}

impl SolutionOutcome {
    /// What a person would call it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Retrieved => "retrieved",
            Self::Open => "unfinished",
            Self::Scored => "scored",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Submitted => "submitted",
        }
    }
}
