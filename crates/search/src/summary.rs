//! What a run cost, how long it took, and where its solution comes from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evaluate::rank_solutions;
use crate::event::Phase;
use crate::models::{FinalResult, Score, SolutionPhase};

/// The sums of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What was paid.
    pub costs: Costs,
    /// How long it took.
    pub durations: Durations,
    /// Where the final solution comes from.
    pub lineage: Vec<String>,
}

/// What was paid, in US dollars.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the specification")]
pub struct Costs {
    pub phase1_cost_usd: f64,
    pub phase2_cost_usd: f64,
    pub phase2_per_path_cost_usd: Vec<f64>,
    pub phase3_cost_usd: f64,
    pub finalization_cost_usd: f64,
    pub total_cost_usd: f64,
    /// The part of the total that calls in flight at a kill are taken to have cost.
    pub estimated_cost_usd: f64,
    /// What each role was paid.
    pub per_role_cost_usd: BTreeMap<String, f64>,
}

/// How long it took, in seconds of running time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the specification")]
pub struct Durations {
    pub phase1_duration_seconds: f64,
    pub phase2_duration_seconds: f64,
    pub phase3_duration_seconds: f64,
    pub finalization_duration_seconds: f64,
    pub total_duration_seconds: f64,
}

impl Costs {
    /// Books what the step at `key` cost.
    pub(crate) fn book(&mut self, key: &str, dollars: f64) {
        let mut parts = key.split('/');
        match parts.next() {
            Some("phase2") => {
                self.phase2_cost_usd += dollars;
                let path: Option<usize> =
                    parts.next().and_then(|it| it.strip_prefix("path-")?.parse().ok());
                if let Some(path) = path {
                    let paths = self.phase2_per_path_cost_usd.len().max(path + 1);
                    self.phase2_per_path_cost_usd.resize(paths, 0.0);
                    if let Some(cost) = self.phase2_per_path_cost_usd.get_mut(path) {
                        *cost += dollars;
                    }
                }
            }
            Some("phase3") => self.phase3_cost_usd += dollars,
            Some("finalization") => self.finalization_cost_usd += dollars,
            _ => self.phase1_cost_usd += dollars,
        }
        self.total_cost_usd += dollars;
        let role = key.rsplit('/').next().unwrap_or_default().to_owned();
        *self.per_role_cost_usd.entry(role).or_default() += dollars;
    }
}

impl Durations {
    /// Books that `phase` took so long.
    pub(crate) fn book(&mut self, phase: Phase, seconds: f64) {
        *match phase {
            Phase::Phase1 => &mut self.phase1_duration_seconds,
            Phase::Phase2 => &mut self.phase2_duration_seconds,
            Phase::Phase3 => &mut self.phase3_duration_seconds,
            Phase::Finalization => &mut self.finalization_duration_seconds,
        } += seconds;
    }
}

/// Where the final solution comes from, one sentence per phase.
pub(crate) fn lineage(result: &FinalResult, selected: SolutionPhase) -> Vec<String> {
    let mut lines = Vec::new();
    let phase1 = &result.phase1;
    let models: Vec<&str> =
        phase1.retrieved_models.iter().map(|it| it.model_name.as_str()).collect();
    lines.push(format!("Phase 1: models {}", models.join(", ")));
    let ranked = rank_solutions(&phase1.candidate_scores, result.task.metric_direction);
    let best = ranked.first().and_then(|index| phase1.candidate_solutions.get(*index));
    if let Some(name) = best.and_then(|it| it.source_model.as_deref()) {
        lines.push(format!(
            "Phase 1: best candidate {name}; initial solution ({:?}) scored {}",
            phase1.initial_solution.phase, phase1.initial_score
        ));
    }
    for (path, refined) in result.phase2_results.iter().enumerate() {
        let improved: Vec<String> = refined
            .step_history
            .iter()
            .flat_map(|step| {
                let accepted = step.inner_loop_attempts.iter().enumerate();
                accepted
                    .filter(|(_, attempt)| attempt.was_improvement)
                    .map(|(inner, _)| format!("outer {} inner {inner}", step.outer_step))
            })
            .collect();
        let steps = if improved.is_empty() { "no step".to_owned() } else { improved.join(", ") };
        lines.push(format!("Phase 2: path {path} reached {} by {steps}", refined.best_score));
    }
    if let Some(phase3) = &result.phase3 {
        let best = Some(phase3.best_ensemble_score);
        let round = phase3.ensemble_scores.iter().rposition(|it: &Option<Score>| *it == best);
        let (inputs, score) = (phase3.input_solutions.len(), phase3.best_ensemble_score);
        lines.push(match round {
            Some(round) => format!("Phase 3: round {round} combined {inputs} solutions to {score}"),
            None => format!("Phase 3: no round beat the best of {inputs} solutions, {score}"),
        });
    }
    lines.push(format!("Finalization: took the {selected:?} solution"));
    lines.extend(result.phase_status.notes.iter().map(|note| format!("Finalization: {note}")));
    lines
}
