//! The state of a run, folded from its records.
//!
//! [`Overview`] is what every view reads: `list`, `show`, the report, the log. It builds on
//! [`Tally`], the sums that the search itself goes by, so that no view can disagree with
//! `result.json` about time or money. It works on any record of any run: running, finished, killed
//! or copied from elsewhere; and it keeps no text longer than a view would show.

mod glance;
mod lanes;
mod phases;
mod place;
mod solutions;
mod studies;
mod text;

use std::collections::VecDeque;

use jiff::Timestamp;
use mle_star_exec::machine::Machine;
use mle_star_exec::sandbox::Containment;
use mle_star_search::event::{Event, Header, Output, Record};
use mle_star_search::models::{
    ContaminationVerdict, MetricDirection, PipelineConfig, Score, SolutionPhase,
};
use mle_star_search::state::{CurrentPhase, Tally};
use mle_star_search::summary::Durations;
use serde::Serialize;

use crate::condition::{Condition, Work};
use crate::line::{Detail, line};
pub use glance::{Budget, Glance, Whole};
use lanes::Lanes;
pub use lanes::{Lane, LaneState, OpenStep, Point};
use phases::Phases;
pub use phases::{PhaseOutcome, PhaseSpan};
pub(crate) use place::Place;
use solutions::Solutions;
pub use solutions::{Solution, SolutionKind, SolutionOutcome};
use studies::Studies;
pub use studies::{Effect, Study};
pub(crate) use text::{shortened, shortened_to};

/// How many of the last events are kept.
const KEPT_EVENTS: usize = 50;

/// How many troubles are kept; there is a count of all.
const KEPT_TROUBLES: usize = 300;

/// Where a run is, what it has found and what it has spent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overview {
    /// What the run is about; `None` for a journal without a beginning.
    pub subject: Option<Box<Subject>>,
    /// Sums of time and money.
    pub tally: Tally,
    /// When it began.
    pub began: Option<Timestamp>,
    /// What was chosen to be finalized, and its score.
    pub selected: Option<Selected>,
    /// The submission that is in `final/`.
    pub submission: Option<Submission>,
    /// What went wrong, and what stood in for it. The oldest are kept.
    pub troubles: Vec<Trouble>,
    /// How many troubles there were in all.
    pub trouble_count: usize,
    /// How many warnings there were.
    pub warning_count: usize,
    /// Whether the solution copies a reference discussion.
    pub contamination: Option<ContaminationVerdict>,
    /// Where the final solution comes from, one sentence per phase, once the run has ended.
    pub lineage: Vec<String>,
    /// The last events, the newest last.
    pub events: VecDeque<Said>,
    /// How many records there are.
    pub records: usize,
    phases: Phases,
    lanes: Lanes,
    solutions: Solutions,
    studies: Studies,
}

/// What a run is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Subject {
    /// The task.
    pub competition_id: String,
    /// The metric.
    pub metric: String,
    /// Which way it improves.
    pub direction: MetricDirection,
    /// What the task says, as far as a view shows it.
    pub description: String,
    /// Who answers the calls.
    pub agents: String,
    /// The program that began the run.
    pub version: String,
    /// The settings, as of last.
    pub settings: PipelineConfig,
    /// The machine that it began on.
    pub machine: Machine,
    /// What holds the scripts, as of last.
    pub containment: Option<Containment>,
}

/// What was chosen to be finalized.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selected {
    /// The solution, by its place in the run, if it is known.
    pub solution: Option<String>,
    /// Its score.
    pub score: Score,
    /// Who wrote it.
    pub from: SolutionPhase,
}

/// A verified submission.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Submission {
    /// The script that wrote it, by its place in the run.
    pub solution: String,
    /// The score of the solution that it was made from.
    pub score: Score,
    /// Its rows, if it could be read as a table.
    pub rows: Option<u64>,
    /// Running time of the run when it took its place.
    pub seconds: f64,
}

/// Something that went wrong, or was given up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trouble {
    /// Running time of the run.
    pub seconds: f64,
    /// Where in the run.
    pub place: String,
    /// What kind.
    pub kind: TroubleKind,
    /// What was wrong.
    pub message: String,
}

/// Kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// Something did not go as it should; the run went on.
    Warning,
    /// A script could not be made to run.
    Failure,
    /// Something else stood in for what failed, or was left out.
    Fallback,
}

/// An event as one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
    /// When.
    pub at: Timestamp,
    /// Running time of the run.
    pub seconds: f64,
    /// What.
    pub line: String,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing is known yet.
    #[default]
    Empty,
    /// It has begun and has not reached its end.
    Unfinished,
    /// It has reached its end.
    Finished,
}

impl Overview {
    /// The overview of a whole journal.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut overview = Self::default();
        records.into_iter().for_each(|record| overview.apply(record));
        overview
    }

    /// Takes one more record into account.
    pub fn apply(&mut self, record: &Record) {
        self.tally.note(record);
        self.records += 1;
        let at = record.at();
        let seconds = self.tally.elapsed(at);
        match record {
            Record::Opened { at, header } => {
                self.began = Some(*at);
                self.subject = Some(Box::new(Subject::of(header)));
                self.lanes.slots = self.subject.as_deref().map(Subject::slots);
            }
            Record::Settings { config, .. } => {
                if let Some(subject) = &mut self.subject {
                    subject.settings = config.clone();
                }
                self.lanes.slots = self.subject.as_deref().map(Subject::slots);
            }
            Record::Resumed { containment, .. } => {
                if let (Some(subject), Some(new)) = (&mut self.subject, containment) {
                    subject.containment = Some((**new).clone());
                }
                self.lanes.stop();
            }
            Record::Decided { .. } => {}
            Record::Abandoned { key, .. } => self.lanes.ended(key.as_str(), 0.0, seconds),
            Record::Started { key, begun, .. } => {
                self.lanes.started(key.as_str(), begun.as_ref(), seconds);
                self.solutions.started(key.as_str(), seconds);
            }
            Record::Finished { key, output, .. } => self.finish(key.as_str(), output, seconds),
            Record::Happened { key, event, .. } => self.happen(key.as_str(), event, seconds),
        }
        if let Some(line) = line(record, Detail::Events) {
            if self.events.len() == KEPT_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(Said { at, seconds, line });
        }
    }

    /// Takes into account whether somebody works on the run: if nobody does, nothing is in flight,
    /// and its time stands still.
    pub fn settle(&mut self, work: Work) -> Condition {
        if work == Work::Rests {
            self.lanes.stop();
            self.tally.end_life();
        }
        Condition::of(self, work)
    }

    fn finish(&mut self, key: &str, output: &Output, seconds: f64) {
        let dollars = output.cost_usd().unwrap_or(0.0);
        self.lanes.ended(key, dollars, seconds);
        match output {
            Output::Asked { reply, .. } => {
                self.solutions.paid(key, dollars);
                self.studies.summarized(key, &reply.text, seconds);
            }
            Output::Ran { outcome, script, .. } => {
                self.solutions.ran(key, script, outcome);
                let when = (self.direction(), seconds);
                self.studies.ran(key, script, &outcome.stdout.text, when);
            }
            Output::NotDone { lack, .. } => {
                self.trouble(key, TroubleKind::Fallback, &format!("not done: {lack}"), seconds);
            }
            Output::Totals { .. } => {}
        }
    }

    fn happen(&mut self, key: &str, event: &Event, seconds: f64) {
        let direction = self.direction();
        self.phases.happened(event, seconds, self.tally.finished_steps());
        self.lanes.happened(event, seconds);
        self.studies.happened(key, event, seconds);
        // A path begins with what Phase 1 found, and may find nothing better at first.
        if let Event::OuterStepStarted { best, .. } = event {
            self.lanes.scored(key, *best, (direction, seconds));
        }
        let judged = self.solutions.happened(key, event, seconds, direction);
        if let Some(score) = judged.and_then(|it| it.score) {
            self.lanes.scored(key, score, (direction, seconds));
        }
        match event {
            Event::Selected { from, score } => {
                let solution = self.solutions.selected.clone();
                self.selected = Some(Selected { solution, score: *score, from: *from });
            }
            Event::Submitted { rows } => {
                // Recorded before it is published, which it may not be.
                self.phases.rows = *rows;
            }
            Event::Published { score, .. } => {
                let solution = Place::of(key).solution().unwrap_or(key).to_owned();
                let rows = self.phases.rows;
                let is_told_again =
                    self.submission.as_ref().is_some_and(|it| it.solution == solution);
                if !is_told_again {
                    self.submission = Some(Submission { solution, score: *score, rows, seconds });
                }
            }
            Event::ContaminationChecked { overall, .. } => self.contamination = *overall,
            Event::Summarized { summary } => self.lineage.clone_from(&summary.lineage),
            Event::Warned { message } => {
                self.trouble(key, TroubleKind::Warning, message, seconds);
            }
            Event::Evaluated { error: Some(error), .. } => {
                self.trouble(key, TroubleKind::Failure, error, seconds);
            }
            Event::OuterStepSkipped { reason } => {
                let message = format!("step skipped: {reason}");
                self.trouble(key, TroubleKind::Fallback, &message, seconds);
            }
            Event::CutShort { lack } => {
                self.trouble(key, TroubleKind::Fallback, &format!("skipped: {lack}"), seconds);
            }
            Event::PathEnded { path, failure: Some(why), .. } => {
                let place = format!("{key}/path-{path}");
                let message = format!("the initial solution stands in for this path: {why}");
                self.trouble(&place, TroubleKind::Fallback, &message, seconds);
            }
            Event::PhaseFailed { reason, .. } => {
                self.trouble(key, TroubleKind::Failure, reason, seconds);
            }
            Event::Waiting { reason, .. } => {
                let message = format!("waited for the agents: {reason}");
                self.trouble(key, TroubleKind::Warning, &message, seconds);
            }
            Event::PhaseStarted { .. }
            | Event::PhaseEnded { .. }
            | Event::PhaseSkipped { .. }
            | Event::Retrieved { .. }
            | Event::Ranked { .. }
            | Event::Evaluated { error: None, .. }
            | Event::Merged { .. }
            | Event::LeakageChecked { .. }
            | Event::DataUsageChecked { .. }
            | Event::Refined { .. }
            | Event::OuterStepStarted { .. }
            | Event::OuterStepEnded { .. }
            | Event::OuterLoopEnded { .. }
            | Event::BlockChecked { .. }
            | Event::BlockReplaced { .. }
            | Event::InnerLoopStarted { .. }
            | Event::InnerLoopEnded { .. }
            | Event::PathEnded { failure: None, .. }
            | Event::RoundStarted { .. }
            | Event::SubsamplingChecked { .. }
            | Event::BrokenOff { .. }
            | Event::Ensembled { .. } => {}
        }
    }

    fn trouble(&mut self, place: &str, kind: TroubleKind, message: &str, seconds: f64) {
        let message = shortened_to(message, 400);
        let is_known = |it: &Trouble| it.place == place && it.kind == kind && it.message == message;
        // A run that is taken up with other limits tells again what happened.
        if self.tally.resumes > 0 && self.troubles.iter().any(is_known) {
            return;
        }
        self.trouble_count += 1;
        self.warning_count += usize::from(kind == TroubleKind::Warning);
        if self.troubles.len() < KEPT_TROUBLES {
            self.troubles.push(Trouble { seconds, place: place.to_owned(), kind, message });
        }
    }

    /// Which way the metric improves.
    pub fn direction(&self) -> MetricDirection {
        self.subject.as_ref().map_or(MetricDirection::Maximize, |it| it.direction)
    }

    /// How far it is.
    pub fn state(&self) -> State {
        match (&self.subject, self.tally.phase) {
            (None, _) => State::Empty,
            (_, CurrentPhase::Complete) => State::Finished,
            (Some(_), _) => State::Unfinished,
        }
    }

    /// Running time until the last record.
    pub fn elapsed(&self) -> f64 {
        self.tally.last().map_or(0.0, |last| self.tally.elapsed(last))
    }

    /// How long each phase took that has ended, and all of it.
    pub fn durations(&self) -> Durations {
        Durations { total_duration_seconds: self.elapsed(), ..self.tally.durations.clone() }
    }

    /// The phases that have begun, in the order in which they did.
    pub fn phases(&self) -> &[PhaseSpan] {
        &self.phases.all
    }

    /// What goes on side by side.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes.all
    }

    /// Steps that were begun and not finished, in the order in which they began.
    pub fn open_steps(&self) -> &[OpenStep] {
        &self.lanes.open
    }

    /// What was tried, in the order in which it began.
    pub fn solutions(&self) -> &[Solution] {
        &self.solutions.all
    }

    /// A solution, by its place in the run.
    pub fn solution(&self, id: &str) -> Option<&Solution> {
        self.solutions.get(id)
    }

    /// The ablation ledger.
    pub fn studies(&self) -> &[Study] {
        &self.studies.all
    }

    /// What the submission, or else what was selected, was made from: itself first, then its
    /// parents, their parents, and so on to the retrieved models.
    pub fn ancestors(&self) -> Vec<&Solution> {
        let submitted = self.submission.as_ref().map(|it| it.solution.as_str());
        let selected = self.selected.as_ref().and_then(|it| it.solution.as_deref());
        let mut found: Vec<&Solution> = Vec::new();
        let mut next: Vec<&str> = submitted.or(selected).into_iter().collect();
        while let Some(id) = next.pop() {
            if let Some(solution) = self.solution(id)
                && !found.iter().any(|it| it.id == id)
            {
                found.push(solution);
                next.extend(solution.parents.iter().map(String::as_str));
            }
        }
        found
    }
}

impl Subject {
    /// How many scripts run side by side: one for each path, as far as there are cores and cards.
    fn slots(&self) -> usize {
        let cards = match self.machine.gpus.devices.len() {
            0 => usize::MAX,
            count => count,
        };
        self.settings.num_parallel_solutions.min(self.machine.cores).min(cards).max(1)
    }

    fn of(header: &Header) -> Self {
        Self {
            competition_id: shortened_to(&header.task.competition_id, 200),
            metric: shortened_to(&header.task.evaluation_metric, 200),
            direction: header.task.metric_direction,
            description: shortened(&header.task.description),
            agents: header.agents.clone(),
            version: header.version.clone(),
            settings: header.config.clone(),
            machine: header.machine.clone(),
            containment: header.containment.clone(),
        }
    }
}
