//! The state of a run, which can be asked for at any time while it runs.
//!
//! [`Tally`] is the one place where records are added up: time, money, phases and paths. The search
//! asks it what is left, and every viewer builds on it, so that both see the same sums.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mle_star_exec::sandbox::Tier;
use serde::Serialize;

use crate::evaluate::Purpose;
use crate::event::{Decision, Event, Lack, Output, Phase, Record};
use crate::models::{MetricDirection, Score, best_of};
use crate::step::StepKey;
use crate::summary::{Costs, Durations};

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PipelineState {
    /// The phase.
    pub current_phase: CurrentPhase,
    /// Running time so far.
    pub elapsed_seconds: f64,
    /// What it has spent, calls in flight at a kill included.
    pub accumulated_cost_usd: f64,
    /// One per path.
    pub phase2_path_statuses: Vec<PathStatus>,
    /// The best validation score of any script.
    pub best_score_so_far: Option<Score>,
    /// Calls that were answered.
    pub agent_call_count: usize,
}

/// The phase a run is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum CurrentPhase {
    #[default]
    Init,
    Phase1,
    Phase2,
    Phase3,
    Finalization,
    Complete,
}

/// How a path is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum PathStatus {
    Running,
    Completed,
    Failed,
    Cancelled,
}

/// What is summed up of the records as they come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// What was paid, calls that were cut off included.
    pub costs: Costs,
    /// How long the phases took that have ended.
    pub durations: Durations,
    /// Agent calls that were answered.
    pub agent_calls: usize,
    /// How often a script was run.
    pub runs: usize,
    /// The best validation score of any script.
    pub best: Option<Score>,
    /// Where the run is.
    pub phase: CurrentPhase,
    /// How often it was taken up again.
    pub resumes: usize,
    /// One per path, once Phase 2 has begun.
    pub paths: Vec<PathStatus>,
    pub(crate) finished_steps: usize,
    pub(crate) last_finished: Option<String>,
    pub(crate) scripts: BTreeSet<String>,
    /// How tightly the scripts were held at least, as far as that is known.
    pub(crate) weakest_tier: Option<Tier>,
    /// Whether any agent has said what it costs.
    costs_known: bool,
    /// By role, how many calls said what they cost, and how much that was.
    priced_calls: BTreeMap<String, (u32, f64)>,
    /// Agent calls that were begun and not finished in the current life.
    in_flight: BTreeSet<String>,
    /// Agent calls that were cut off before any call had a price to estimate theirs by.
    unpriced: Vec<String>,
    /// What was lacking, and where.
    shortages: Vec<(StepKey, Lack)>,
    phase_began: f64,
    parallel: usize,
    direction: Option<MetricDirection>,
    /// Running time of earlier lives.
    elapsed_before: f64,
    life_began: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Tally {
    /// Takes a record into account.
    pub fn note(&mut self, record: &Record) {
        if let Record::Opened { at, .. } | Record::Resumed { at, .. } = record {
            self.begin_life(*at);
        }
        self.last = Some(record.at());
        match record {
            Record::Opened { header, .. } => {
                self.direction = Some(header.task.metric_direction);
                self.parallel = header.config.num_parallel_solutions;
            }
            Record::Resumed { .. } => self.resumes += 1,
            Record::Settings { .. } => self.shortages.clear(),
            Record::Decided { key, decision, .. } => {
                if let Decision::CutShort(lack) = decision {
                    self.shortages.push((key.clone(), lack.clone()));
                }
            }
            Record::Started { key, .. } => {
                if role(key.as_str()) != "run" && role(key.as_str()) != "totals" {
                    self.in_flight.insert(key.to_string());
                }
            }
            Record::Abandoned { key, .. } => {
                self.in_flight.remove(key.as_str());
            }
            Record::Finished { key, output, .. } => {
                self.in_flight.remove(key.as_str());
                if let Output::NotDone { lack, cut_off } = output {
                    if lack.is_shortage() {
                        self.shortages.push((key.clone(), lack.clone()));
                    }
                    if *cut_off {
                        self.estimate([key.to_string()]);
                    }
                }
                self.finish(key.as_str(), output);
            }
            Record::Happened { key, event: Event::BrokenOff { cost_usd }, .. } => {
                self.break_off(key, *cost_usd);
            }
            Record::Happened { at, event, .. } => self.happen(event, self.elapsed(*at)),
        }
    }

    /// A life of the run begins, and the one before is over: calls that were in flight then were
    /// paid for, and their bill was never seen.
    pub fn begin_life(&mut self, at: Timestamp) {
        self.end_life();
        (self.life_began, self.last) = (Some(at), Some(at));
    }

    /// Nobody works on the run any more. Its time stands still until it is taken up again.
    pub fn end_life(&mut self) {
        if let (Some(began), Some(last)) = (self.life_began.take(), self.last) {
            self.elapsed_before += seconds_between(began, last);
        }
        let cut_off = std::mem::take(&mut self.in_flight);
        self.estimate(cut_off);
    }

    /// Running time of all lives of the run, if it is `now`.
    pub fn elapsed(&self, now: Timestamp) -> f64 {
        let life = self.life_began.map_or(0.0, |began| seconds_between(began, now));
        self.elapsed_before + life
    }

    /// How many steps were finished.
    pub fn finished_steps(&self) -> usize {
        self.finished_steps
    }

    /// When something was last recorded.
    pub fn last(&self) -> Option<Timestamp> {
        self.last
    }

    fn finish(&mut self, key: &str, output: &Output) {
        self.finished_steps += 1;
        self.last_finished = Some(key.to_owned());
        match output {
            Output::Asked { reply, .. } => {
                self.agent_calls += 1;
                if let Some(cost) = reply.cost_usd {
                    self.costs_known = true;
                    self.costs.book(key, cost);
                    let (calls, paid) = self.priced_calls.entry(role(key).to_owned()).or_default();
                    *calls += 1;
                    *paid += cost;
                    let unpriced = std::mem::take(&mut self.unpriced);
                    self.estimate(unpriced);
                }
            }
            Output::Totals { .. } => self.phase = CurrentPhase::Complete,
            Output::Ran { script, outcome, .. } => {
                self.runs += 1;
                self.scripts.insert(script.clone());
                if outcome.limits.is_some() {
                    let tier = outcome.tier;
                    self.weakest_tier = Some(self.weakest_tier.map_or(tier, |it| it.min(tier)));
                }
            }
            Output::NotDone { .. } => {}
        }
    }

    fn happen(&mut self, event: &Event, running: f64) {
        match event {
            Event::PhaseStarted { phase } => {
                self.phase_began = running;
                self.phase = match phase {
                    Phase::Phase1 => CurrentPhase::Phase1,
                    Phase::Phase2 => CurrentPhase::Phase2,
                    Phase::Phase3 => CurrentPhase::Phase3,
                    Phase::Finalization => CurrentPhase::Finalization,
                };
                if *phase == Phase::Phase2 {
                    self.paths = vec![PathStatus::Running; self.parallel];
                }
            }
            Event::PhaseEnded { phase, .. } => {
                self.durations.book(*phase, running - self.phase_began);
            }
            Event::PathEnded { path, failure, cut_short, .. } => {
                if let Some(status) = self.paths.get_mut(*path) {
                    *status = match (failure, cut_short) {
                        (Some(_), _) => PathStatus::Failed,
                        (None, true) => PathStatus::Cancelled,
                        (None, false) => PathStatus::Completed,
                    };
                }
            }
            Event::Evaluated { purpose: Purpose::Validation, score: Some(score), .. } => {
                let best = |direction| best_of(self.best, *score, direction);
                self.best = Some(self.direction.map_or(*score, best));
            }
            Event::Evaluated { .. }
            | Event::PhaseSkipped { .. }
            | Event::PhaseFailed { .. }
            | Event::Retrieved { .. }
            | Event::Ranked { .. }
            | Event::Merged { .. }
            | Event::LeakageChecked { .. }
            | Event::DataUsageChecked { .. }
            | Event::Refined { .. }
            | Event::OuterStepSkipped { .. }
            | Event::OuterStepStarted { .. }
            | Event::OuterStepEnded { .. }
            | Event::OuterLoopEnded { .. }
            | Event::BlockChecked { .. }
            | Event::BlockReplaced { .. }
            | Event::InnerLoopStarted { .. }
            | Event::InnerLoopEnded { .. }
            | Event::RoundStarted { .. }
            | Event::SubsamplingChecked { .. }
            | Event::ContaminationChecked { .. }
            | Event::Ensembled { .. }
            | Event::Selected { .. }
            | Event::CutShort { .. }
            | Event::Waiting { .. }
            | Event::BrokenOff { .. }
            | Event::Published { .. }
            | Event::Summarized { .. }
            | Event::Submitted { .. }
            | Event::Warned { .. } => {}
        }
    }

    /// What was lacking first at `key` or inside of it.
    pub(crate) fn lacked(&self, key: &StepKey) -> Option<&Lack> {
        let mut shortages = self.shortages.iter();
        shortages.find(|(at, _)| key.as_str().is_empty() || at.is_within(key)).map(|(_, it)| it)
    }

    /// Books a conversation that was paid for in vain. Its key is below that of its step.
    fn break_off(&mut self, key: &StepKey, cost_usd: Option<f64>) {
        let step = key.as_str().rsplit_once('/').map_or(key.as_str(), |(step, _)| step);
        match cost_usd {
            Some(cost) => {
                self.costs_known = true;
                self.costs.book(step, cost);
            }
            None => self.estimate([step.to_owned()]),
        }
    }

    /// Books what calls that were cut off are taken to have cost: what their role costs on
    /// average, or any call if theirs has no price yet.
    fn estimate(&mut self, cut_off: impl IntoIterator<Item = String>) {
        // Only what was billed counts: estimates of estimates would double with every call.
        let all = self.priced_calls.values();
        let all = all.fold((0, 0.0), |(calls, paid), (more, sum)| (calls + more, paid + sum));
        let average = |(calls, paid): (u32, f64)| (calls > 0).then(|| paid / f64::from(calls));
        let Some(overall) = average(all) else {
            self.unpriced.extend(cut_off);
            return;
        };
        let estimates: Vec<(String, f64)> = cut_off
            .into_iter()
            .map(|key| {
                let of_role = self.priced_calls.get(role(&key)).copied();
                let estimate = of_role.and_then(average).unwrap_or(overall);
                (key, estimate)
            })
            .collect();
        for (key, estimate) in estimates {
            self.costs.book(&key, estimate);
            self.costs.estimated_cost_usd += estimate;
        }
    }

    pub(crate) fn spent(&self) -> f64 {
        self.costs.total_cost_usd
    }

    /// What was spent; `None` if no agent has said what it costs.
    pub fn cost_usd(&self) -> Option<f64> {
        self.costs_known.then_some(self.costs.total_cost_usd)
    }

    pub(crate) fn pipeline_state(&self, elapsed_seconds: f64) -> PipelineState {
        PipelineState {
            current_phase: self.phase,
            elapsed_seconds,
            accumulated_cost_usd: self.spent(),
            phase2_path_statuses: self.paths.clone(),
            best_score_so_far: self.best,
            agent_call_count: self.agent_calls,
        }
    }
}

/// The last part of a key: who is asked, or what is done.
fn role(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use mle_star_agent::Reply;

    use super::*;
    use crate::step::Digest;

    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn key(text: &str) -> StepKey {
        text.split('/').fold(StepKey::root(), |key, part| key.join(part))
    }

    fn started(step: &str) -> Record {
        Record::Started { at: AT, key: key(step), begun: None }
    }

    fn answered(step: &str, cost: f64) -> Record {
        let reply = Reply { cost_usd: Some(cost), ..Reply::default() };
        let output = Output::Asked { reply, no_answer: None };
        Record::Finished { at: AT, key: key(step), input: Digest::of(&()), output }
    }

    fn broken_off(step: &str, cost_usd: Option<f64>) -> Record {
        let event = Event::BrokenOff { cost_usd };
        Record::Happened { at: AT, key: key(step).join("broken_off"), index: 0, event }
    }

    fn tally(records: &[Record]) -> Tally {
        let mut tally = Tally::default();
        records.iter().for_each(|record| tally.note(record));
        tally
    }

    fn assert_costs(tally: &Tally, total: f64, estimated: f64) {
        assert!((tally.spent() - total).abs() < 1e-9, "{} in all", tally.spent());
        let found = tally.costs.estimated_cost_usd;
        assert!((found - estimated).abs() < 1e-9, "{found} estimated");
    }

    /// Each costs what its role costs on average, however many there are.
    #[test]
    fn conversations_that_broke_off_are_estimated_by_what_was_billed() {
        let off = || broken_off("phase1/init", None);
        let told = tally(&[answered("phase1/init", 0.5), off(), off(), off()]);
        assert_costs(&told, 2.0, 1.5);
        let known = tally(&[answered("phase1/init", 0.5), broken_off("phase1/init", Some(0.1))]);
        assert_costs(&known, 0.6, 0.0);
    }

    /// The first call of all may be the one that is lost.
    #[test]
    fn a_call_that_was_lost_before_any_was_billed_is_counted_with_the_first_bill() {
        let mut told = tally(&[started("phase1/retriever")]);
        told.end_life();
        assert_costs(&told, 0.0, 0.0);
        told.note(&answered("phase1/retriever", 0.25));
        assert_costs(&told, 0.5, 0.25);
    }
}
