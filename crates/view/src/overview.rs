//! The state of a run, folded from its records.

use jiff::Timestamp;
use mle_star_exec::sandbox::Containment;
use mle_star_search::event::{Event, Output, Phase, Record};
use mle_star_search::models::{MetricDirection, Score, best_of};
use serde::Serialize;

/// Where a run is, what it has found and what it has spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Overview {
    /// The task.
    pub competition_id: String,
    /// The metric, with its direction.
    pub metric: String,
    /// Who answers the calls.
    pub agents: String,
    /// What holds the scripts, as of last.
    pub containment: Option<Containment>,
    /// How far it is.
    pub state: State,
    /// The phase it is in.
    pub phase: Option<Phase>,
    /// When it began.
    pub began: Option<Timestamp>,
    /// When something was last recorded.
    pub last: Option<Timestamp>,
    /// Agent calls that were answered.
    pub agent_calls: usize,
    /// Scripts that were run.
    pub scripts: usize,
    /// What the agents cost, if any of them said.
    pub cost_usd: Option<f64>,
    /// The best score so far.
    pub best: Option<Score>,
    /// The score of what was finalized.
    pub selected: Option<Score>,
    /// How often it was taken up again.
    pub resumes: usize,
    /// Steps that were begun and not finished, in the order in which they began.
    pub open_steps: Vec<String>,
    /// What did not go as it should.
    pub warnings: Vec<String>,
    #[serde(skip)]
    direction: Option<MetricDirection>,
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
        match record {
            Record::Opened { at, header } => {
                self.competition_id.clone_from(&header.task.competition_id);
                self.metric = format!(
                    "{} ({})",
                    header.task.evaluation_metric,
                    header.task.metric_direction.in_words()
                );
                self.agents.clone_from(&header.agents);
                self.containment.clone_from(&header.containment);
                self.state = State::Unfinished;
                self.began = Some(*at);
                self.last = Some(*at);
                self.direction = Some(header.task.metric_direction);
            }
            Record::Settings { at, .. } | Record::Decided { at, .. } => self.last = Some(*at),
            Record::Resumed { at, containment } => {
                if let Some(containment) = containment {
                    self.containment = Some((**containment).clone());
                }
                self.last = Some(*at);
                self.resumes += 1;
                self.open_steps.clear();
            }
            Record::Abandoned { at, key } => {
                self.last = Some(*at);
                self.open_steps.retain(|open| open != key.as_str());
            }
            Record::Started { at, key } => {
                self.last = Some(*at);
                self.open_steps.push(key.to_string());
            }
            Record::Finished { at, key, output, .. } => {
                self.last = Some(*at);
                self.open_steps.retain(|open| open != key.as_str());
                self.finish(output);
            }
            Record::Happened { at, key, event, .. } => {
                self.last = Some(*at);
                self.happen(key.as_str(), event);
            }
        }
    }

    fn finish(&mut self, output: &Output) {
        match output {
            Output::Asked { .. } => self.agent_calls += 1,
            Output::Ran { .. } => self.scripts += 1,
            Output::NotDone { .. } => {}
            // The sums are taken when everything else is done.
            Output::Totals { .. } => self.state = State::Finished,
        }
        if let Some(cost) = output.cost_usd() {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    fn happen(&mut self, key: &str, event: &Event) {
        match event {
            Event::PhaseStarted { phase } => self.phase = Some(*phase),
            Event::Evaluated { score: Some(score), .. } => {
                let best = |direction| best_of(self.best, *score, direction);
                self.best = Some(self.direction.map_or(*score, best));
            }
            Event::Selected { score, .. } => self.selected = Some(*score),
            Event::Warned { message } => self.warnings.push(format!("{key}: {message}")),
            Event::Evaluated { score: None, .. }
            | Event::PhaseEnded { .. }
            | Event::Retrieved { .. }
            | Event::Merged { .. }
            | Event::LeakageChecked { .. }
            | Event::DataUsageChecked { .. }
            | Event::Refined { .. }
            | Event::OuterStepSkipped { .. }
            | Event::OuterStepEnded { .. }
            | Event::PathEnded { .. }
            | Event::Ensembled { .. }
            | Event::CutShort { .. }
            | Event::Waiting { .. }
            | Event::BrokenOff { .. }
            | Event::Published { .. }
            | Event::Summarized { .. }
            | Event::Submitted { .. } => {}
        }
    }
}
