//! The only way in which a script becomes a score.
//!
//! [`evaluate`] checks a script for leakage, runs it, reads its score, and has it mended while it
//! fails and repairs are left. Whatever goes wrong with a script becomes a [`BugReport`], so that
//! the debugger sees timeouts, kills, syntax errors and missing scores as well as tracebacks.

mod bug;
mod output;

use std::time::Duration;

use futures::future::BoxFuture;
use mle_star_exec::{Ended, Outcome, SubmissionInfo};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::event::Event;
use crate::models::{
    EvaluationResult, MetricDirection, PipelineConfig, Score, SolutionScript, TaskDescription,
    is_improvement,
};
use crate::roles;
use crate::step::RunCtx;

pub use bug::BugReport;
pub use output::{build_evaluation_result, detect_error, extract_traceback};

/// What a script is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To be scored.
    Validation,
    /// To learn what its parts contribute.
    Ablation,
    /// To write the submission.
    Submission,
}

/// How a script is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalOptions {
    /// What for.
    pub purpose: Purpose,
    /// How long it may take.
    pub timeout: Duration,
    /// How many repairs it may take.
    pub max_retries: usize,
}

/// A script that was run, repaired where needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The script as it was last run, with what that showed.
    pub solution: SolutionScript,
    /// How it went.
    pub result: EvaluationResult,
    /// What is still wrong with it.
    pub bug: Option<BugReport>,
    /// The submission it wrote, by the name of its file in `solutions/`.
    pub submission: Option<String>,
    /// What is known of that file.
    pub submission_info: SubmissionInfo,
}

impl EvalOptions {
    /// A script of Phases 1 to 3 that is to be scored.
    pub fn validation(config: &PipelineConfig) -> Self {
        Self {
            purpose: Purpose::Validation,
            timeout: script_timeout(config),
            max_retries: config.max_debug_attempts,
        }
    }

    /// An ablation study.
    pub fn ablation(config: &PipelineConfig) -> Self {
        Self {
            purpose: Purpose::Ablation,
            timeout: ablation_timeout(config),
            max_retries: config.max_debug_attempts,
        }
    }

    /// The script that writes the submission.
    pub fn submission(config: &PipelineConfig) -> Self {
        Self {
            purpose: Purpose::Submission,
            timeout: Duration::from_secs(config.time_limit_seconds),
            max_retries: config.max_debug_attempts,
        }
    }
}

/// How long a script of Phases 1 to 3 may run: one that hangs must not eat the run.
pub fn script_timeout(config: &PipelineConfig) -> Duration {
    let seconds = config.script_timeout_seconds.unwrap_or(config.time_limit_seconds / 10);
    Duration::from_secs(seconds.max(1))
}

/// How long an ablation study may run.
pub fn ablation_timeout(config: &PipelineConfig) -> Duration {
    let steps = u64::try_from(config.outer_loop_steps).unwrap_or(u64::MAX);
    let share = config.time_limit_seconds / steps.saturating_mul(2).max(1);
    Duration::from_secs(share.clamp(1, 600))
}

/// Checks a script for leakage, runs it, and has it mended while it fails.
pub async fn evaluate(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
    options: EvalOptions,
) -> Result<Evaluated, Error> {
    let checked = check_leakage(ctx, script, options.purpose).await?;
    evaluate_with_retry(ctx, &checked, options).await
}

/// Runs a script, and has it mended while it fails and repairs are left.
pub async fn evaluate_with_retry(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
    options: EvalOptions,
) -> Result<Evaluated, Error> {
    let evaluated = evaluate_solution(&ctx.scope("attempt-0"), script, options).await?;
    repair(ctx, evaluated, options).await
}

/// Has a script made from `script` where an agent wrote none: the first repair comes before the
/// first run.
pub async fn evaluate_unwritten(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
    reason: &str,
    options: EvalOptions,
) -> Result<Evaluated, Error> {
    repair(ctx, refused(script, reason), options).await
}

async fn repair(
    ctx: &RunCtx<'_>,
    mut evaluated: Evaluated,
    options: EvalOptions,
) -> Result<Evaluated, Error> {
    let mut repairs = 0;
    while let Some(bug) = &evaluated.bug
        && repairs < options.max_retries
    {
        let attempt = ctx.scope(format_args!("attempt-{repairs}"));
        repairs += 1;
        if attempt.is_news() {
            tracing::info!(attempt = repairs, max = options.max_retries, "retry attempt");
        }
        let mended = debug(&attempt, &evaluated.solution, bug, options.purpose).await?;
        // What failed once fails again: an unchanged script costs an attempt, but no run.
        if mended.content != evaluated.solution.content {
            let ctx = ctx.scope(format_args!("attempt-{repairs}"));
            evaluated = evaluate_solution(&ctx, &mended, options).await?;
        }
    }
    ctx.tell(Event::Evaluated {
        purpose: options.purpose,
        score: evaluated.solution.score,
        repairs,
        error: evaluated.bug.as_ref().map(|bug| bug.headline().to_owned()),
    })?;
    Ok(evaluated)
}

/// Runs a script once.
pub async fn evaluate_solution(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
    options: EvalOptions,
) -> Result<Evaluated, Error> {
    if let Some(reason) = refusal(&script.content) {
        return Ok(refused(script, &reason));
    }
    for warning in mle_star_python::error_masking(&script.content) {
        ctx.warn(warning)?;
    }
    let is_news = ctx.is_news();
    let ran = ctx.execute(script, options.timeout).await?;
    let mut result = build_evaluation_result(&ran.outcome);
    if options.purpose != Purpose::Validation {
        // A number that a study or a submission prints is not what the solution is judged by.
        result.score = None;
    }
    let bug = BugReport::of(&ran, &result, options.purpose);
    if is_news {
        log(&result, bug.as_ref());
    }
    if options.purpose == Purpose::Submission {
        for warning in &ran.fit.warnings {
            ctx.warn(warning)?;
        }
    }
    Ok(Evaluated {
        solution: script.clone().stamped(&result),
        result,
        bug,
        submission: ran.submission,
        submission_info: ran.outcome.submission,
    })
}

/// Says how a run went, for whoever listens.
fn log(result: &EvaluationResult, bug: Option<&BugReport>) {
    let EvaluationResult { exit_code, duration_seconds, .. } = *result;
    let score = result.score.map(f64::from);
    tracing::info!(exit_code, duration_seconds, score, "execution complete");
    if result.is_error {
        // The first line of every traceback is the same; the error is named elsewhere.
        let traceback = result.error_traceback.as_deref().and_then(|text| text.lines().next());
        let error = bug.map(BugReport::headline);
        tracing::warn!(exit_code, traceback, error, "error detected");
    }
}

/// Runs scripts one after the other. The results are in the order of the scripts.
pub async fn evaluate_batch(
    ctx: &RunCtx<'_>,
    scripts: &[SolutionScript],
    options: EvalOptions,
) -> Result<Vec<Evaluated>, Error> {
    let mut results = Vec::with_capacity(scripts.len());
    for (index, script) in scripts.iter().enumerate() {
        let ctx = ctx.scope(format_args!("script-{index}"));
        results.push(evaluate_solution(&ctx, script, options).await?);
    }
    Ok(results)
}

/// Says how good a script is.
pub trait ScoreFunction: Send + Sync {
    /// Judges `script` on `task`.
    fn score<'a>(
        &'a self,
        script: &'a SolutionScript,
        task: &'a TaskDescription,
    ) -> BoxFuture<'a, Result<EvaluationResult, Error>>;
}

/// Judges scripts by running them, at one place of a run.
#[derive(Debug, Clone)]
pub struct Evaluator<'run> {
    /// The place.
    pub ctx: RunCtx<'run>,
    /// How scripts are run.
    pub options: EvalOptions,
}

impl ScoreFunction for Evaluator<'_> {
    fn score<'a>(
        &'a self,
        script: &'a SolutionScript,
        task: &'a TaskDescription,
    ) -> BoxFuture<'a, Result<EvaluationResult, Error>> {
        Box::pin(async move {
            if task != self.ctx.task() {
                return Err(Error::Precondition("a run scores scripts for its own task only"));
            }
            Ok(evaluate_solution(&self.ctx, script, self.options).await?.result)
        })
    }
}

/// One repair: one call of the debugger, and a leakage check if it changed the script.
async fn debug(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
    bug: &BugReport,
    purpose: Purpose,
) -> Result<SolutionScript, Error> {
    let mended = roles::invoke_debugger(ctx, script, bug, purpose).await?;
    if mended.content == script.content {
        return Ok(mended);
    }
    check_leakage(ctx, &mended, purpose).await
}

/// The leakage check, as far as it applies to what the script is for.
async fn check_leakage(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
    purpose: Purpose,
) -> Result<SolutionScript, Error> {
    if script.content.trim().is_empty() || purpose == Purpose::Ablation {
        return Ok(script.clone());
    }
    let checked = roles::check_and_fix_leakage(ctx, script).await?;
    let names_it = |script: &SolutionScript| script.content.contains("submission.csv");
    if purpose == Purpose::Submission && names_it(script) && !names_it(&checked) {
        // Training on all data looks like leakage to the agent, but is what was asked for.
        ctx.warn("a leakage correction removed the submission and was dropped")?;
        return Ok(script.clone());
    }
    Ok(checked)
}

/// Why a script is not run at all.
fn refusal(content: &str) -> Option<String> {
    if content.trim().is_empty() {
        return Some("ScriptRejected: the script is empty".to_owned());
    }
    let call = mle_star_python::exit_calls(content).into_iter().next()?;
    Some(format!(
        "ScriptRejected: line {}: `{}` ends the program early and is not allowed",
        call.line, call.call
    ))
}

/// The result of a script that was not run. It goes through the same repairs as any failure.
fn refused(script: &SolutionScript, reason: &str) -> Evaluated {
    let result = EvaluationResult {
        score: None,
        stdout: String::new(),
        stderr: reason.to_owned(),
        exit_code: -1,
        duration_seconds: 0.0,
        is_error: true,
        error_traceback: None,
    };
    Evaluated {
        solution: script.clone().stamped(&result),
        bug: Some(BugReport::new(reason, "")),
        result,
        submission: None,
        submission_info: SubmissionInfo::default(),
    }
}

/// Whether a result beats `old`: it has a usable score, and that is strictly better.
pub fn is_better_solution(
    result: &EvaluationResult,
    old: Score,
    direction: MetricDirection,
) -> bool {
    result.usable_score().is_some_and(|score| is_improvement(score, old, direction))
}

/// The positions of the scored solutions, best first; equals stay in their order.
pub fn rank_solutions(scores: &[Option<Score>], direction: MetricDirection) -> Vec<usize> {
    let mut scored: Vec<(usize, Score)> = scores
        .iter()
        .enumerate()
        .filter_map(|(index, score)| score.map(|score| (index, score)))
        .collect();
    scored.sort_by(|(_, a), (_, b)| {
        let (better, worse) =
            (is_improvement(*a, *b, direction), is_improvement(*b, *a, direction));
        worse.cmp(&better)
    });
    scored.into_iter().map(|(index, _)| index).collect()
}

/// What ended a script, as the exit code of the specification.
fn exit_code(outcome: &Outcome) -> i32 {
    match outcome.ended {
        Ended::Exited { code } => code,
        Ended::Signaled { signal } => -signal,
        Ended::TimedOut { .. } => -1,
        Ended::Exceeded { .. } => -9, // which is how it was stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ConfigLayer;

    fn config(layer: ConfigLayer) -> PipelineConfig {
        layer.resolve().unwrap()
    }

    /// REQ-P2O-035
    #[test]
    fn an_ablation_study_gets_its_share_of_the_time_but_ten_minutes_at_most() {
        let limit = |time_limit_seconds, outer_loop_steps| {
            ablation_timeout(&config(ConfigLayer {
                time_limit_seconds: Some(time_limit_seconds),
                outer_loop_steps: Some(outer_loop_steps),
                ..ConfigLayer::default()
            }))
            .as_secs()
        };
        assert_eq!(limit(86_400, 4), 600);
        assert_eq!(limit(3_600, 4), 450);
        assert_eq!(limit(5, 4), 1);
    }

    /// REQ-EX-046
    #[test]
    fn a_script_gets_a_tenth_of_the_time_unless_told_otherwise() {
        assert_eq!(script_timeout(&PipelineConfig::default()).as_secs(), 8_640);
        let explicit = ConfigLayer { script_timeout_seconds: Some(60), ..ConfigLayer::default() };
        assert_eq!(script_timeout(&config(explicit)).as_secs(), 60);
    }

    /// REQ-EX-027
    #[test]
    fn ranking_puts_the_best_first_and_leaves_failures_out() {
        let scores = [Some(0.7), Some(0.9), Some(0.8), None, Some(0.9)]
            .map(|score| score.and_then(Score::new));
        assert_eq!(rank_solutions(&scores, MetricDirection::Maximize), [1, 4, 2, 0]);
        assert_eq!(rank_solutions(&scores, MetricDirection::Minimize), [0, 2, 1, 4]);
    }

    /// REQ-EX-006, REQ-EX-044
    #[test]
    fn a_script_that_would_end_the_interpreter_is_refused() {
        for call in ["exit()", "quit()", "import sys\nsys.exit(0)", "import os\nos._exit(1)"] {
            assert!(refusal(call).is_some(), "{call}");
        }
        assert!(refusal(" \n").is_some());
        assert_eq!(refusal("parser.exit()  # exit()"), None);
    }
}
