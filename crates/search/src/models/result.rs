//! What evaluations, phases and whole runs give.

use serde::{Deserialize, Serialize};

use super::{
    CodeBlock, DataContaminationResult, PipelineConfig, RetrievedModel, Score, SolutionScript,
    TaskDescription, best_of,
};

/// How one run of a script went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationResult {
    /// The score it printed.
    pub score: Option<Score>,
    /// What it printed, shortened in the middle if long.
    pub stdout: String,
    /// What it complained about, shortened in the middle if long.
    pub stderr: String,
    /// 0 = ok, -signal for a death by signal, -1 for a timeout or a refused script.
    pub exit_code: i32,
    /// How long it ran.
    pub duration_seconds: f64,
    /// Whether it failed, or wrote a traceback all the same.
    pub is_error: bool,
    /// The last traceback, if it failed with one.
    pub error_traceback: Option<String>,
}

impl EvaluationResult {
    /// The score, unless the script also failed.
    pub fn usable_score(&self) -> Option<Score> {
        self.score.filter(|_| !self.is_error)
    }
}

/// What Phase 1 gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase1Result {
    /// The models, in retrieval order.
    pub retrieved_models: Vec<RetrievedModel>,
    /// One script per model, in the same order, failed ones included.
    pub candidate_solutions: Vec<SolutionScript>,
    /// Their scores; `None` for a failed one.
    pub candidate_scores: Vec<Option<Score>>,
    /// `s_0`, merged and checked.
    pub initial_solution: SolutionScript,
    /// Its score.
    pub initial_score: Score,
}

/// One inner step of Phase 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefinementAttempt {
    /// The plan.
    pub plan: String,
    /// What the script scored with it; `None` if it failed.
    pub score: Option<Score>,
    /// The refined block; empty if the coder failed.
    pub code_block: String,
    /// Whether the best solution was replaced.
    pub was_improvement: bool,
}

/// What the inner loop gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InnerLoopResult {
    /// The best solution, the one handed in if none was accepted.
    pub best_solution: SolutionScript,
    /// Its score.
    pub best_score: Score,
    /// Exactly K records.
    pub attempts: Vec<RefinementAttempt>,
    /// Whether the best score is strictly better than the one handed in.
    pub improved: bool,
}

/// One outer step of Phase 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OuterStepRecord {
    /// The step, counted from 0.
    pub outer_step: usize,
    /// What the ablation study found; empty if it failed.
    pub ablation_summary: String,
    /// The block that was refined; empty if none was found.
    pub code_block: String,
    /// The first plan for it.
    pub plan: String,
    /// What the inner loop tried.
    pub inner_loop_attempts: Vec<RefinementAttempt>,
    /// The best score of the path when the step ended.
    pub best_score_after_step: Score,
    /// Whether the step ended before the inner loop.
    pub was_skipped: bool,
    /// Whether the whole path failed, and this record stands for it.
    #[serde(default)]
    pub failed: bool,
}

/// What one path of Phase 2 gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase2Result {
    /// One summary per outer step; empty for a failed study.
    pub ablation_summaries: Vec<String>,
    /// One block per outer step; empty for a skipped one.
    pub refined_blocks: Vec<CodeBlock>,
    /// The best solution of the path.
    pub best_solution: SolutionScript,
    /// Its score.
    pub best_score: Score,
    /// One record per outer step.
    pub step_history: Vec<OuterStepRecord>,
}

/// One round of Phase 3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsembleAttempt {
    /// The plan.
    pub plan: String,
    /// What the ensemble scored; `None` if it failed.
    pub score: Option<Score>,
    /// The ensemble; empty if the ensembler failed.
    pub solution: SolutionScript,
}

/// What Phase 3 gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase3Result {
    /// What was combined.
    pub input_solutions: Vec<SolutionScript>,
    /// One plan per round.
    pub ensemble_plans: Vec<String>,
    /// One score per round; `None` for a failed one.
    pub ensemble_scores: Vec<Option<Score>>,
    /// The best ensemble, or the best input if every round failed.
    pub best_ensemble: SolutionScript,
    /// Its score.
    pub best_ensemble_score: Score,
    /// One record per round.
    #[serde(default)]
    pub attempts: Vec<EnsembleAttempt>,
}

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseOutcome {
    /// It did all its steps.
    Completed,
    /// It did not run.
    Skipped,
    /// It ran, and something else stands in for its result.
    Failed,
}

/// How each phase ended, and why, where that is not obvious.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseStatus {
    /// Phase 1.
    pub phase1: PhaseOutcome,
    /// Phase 2: failed if no path completed.
    pub phase2: PhaseOutcome,
    /// Phase 3.
    pub phase3: PhaseOutcome,
    /// Finalization: failed if it gave no submission.
    pub finalization: PhaseOutcome,
    /// What ran out, if the run ended before all its steps were done.
    #[serde(default)]
    pub cut_short: Option<String>,
    /// What a person should know about the above.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What a run gives: `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalResult {
    /// The task.
    pub task: TaskDescription,
    /// The settings in force.
    pub config: PipelineConfig,
    /// Phase 1.
    pub phase1: Phase1Result,
    /// Phase 2, one per path.
    pub phase2_results: Vec<Phase2Result>,
    /// Phase 3; `None` for a single path, or if the phase failed.
    pub phase3: Option<Phase3Result>,
    /// The script that made the submission, or the best one if none did.
    pub final_solution: SolutionScript,
    /// The absolute path of `submission.csv`; empty if there is none.
    pub submission_path: String,
    /// Running time, downtime between a crash and a resume not counted.
    pub total_duration_seconds: f64,
    /// What the agents cost; `None` if no agent said.
    pub total_cost_usd: Option<f64>,
    /// Whether the solution copies a reference discussion; `None` if not checked or inconclusive.
    #[serde(default)]
    pub contamination: Option<DataContaminationResult>,
    /// How each phase ended.
    pub phase_status: PhaseStatus,
}

impl FinalResult {
    /// The best score after each of the three phases, of those that gave one.
    pub fn phase_scores(&self) -> [(&'static str, Option<Score>); 3] {
        let direction = self.task.metric_direction;
        let paths = self.phase2_results.iter().map(|path| path.best_score);
        let refined = paths.reduce(|best, next| best_of(Some(best), next, direction));
        let ensemble = self.phase3.as_ref().map(|phase3| phase3.best_ensemble_score);
        [("initial", Some(self.phase1.initial_score)), ("refined", refined), ("ensemble", ensemble)]
    }
}
