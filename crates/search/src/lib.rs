//! MLE-STAR: finds a good machine-learning script by searching, ablating and refining.
//!
//! [`run`] is the whole algorithm. Read on in this order:
//!
//! 1. [`models`]: what is searched for, and what every phase hands to the next.
//! 2. [`phase1`], [`phase2`], [`phase3`], [`finalize`]: the search, in the order in which it runs.
//! 3. [`evaluate`]: the only way in which a script becomes a score.
//! 4. [`roles`]: what is asked of the agents, one file per role, its [`prompt`] beside it.
//! 5. [`reply`], [`block`]: reading what agents write.
//! 6. [`step`], [`event`], [`rundir`]: how work is made durable, and what a viewer can see.
//! 7. [`budget`], [`state`], [`summary`]: time and money, where a run is, and what it came to.
//!
//! Nothing here prints, starts a process, reads the clock or draws random numbers: a resumed run
//! must take the same path.

pub mod models;

pub mod finalize;
pub mod phase1;
pub mod phase2;
pub mod phase3;

pub mod evaluate;

pub mod environment;
pub mod prompt;
pub mod roles;

pub mod block;
pub mod reply;

pub mod budget;
mod error;
pub mod event;
pub mod rundir;
pub mod state;
pub mod step;
pub mod summary;

use mle_star_exec::sandbox::Tier;

use crate::event::{Event, Phase};
use crate::finalize::{Finalized, Submission};
use crate::models::{
    FinalResult, Phase1Result, Phase2Result, Phase3Result, PhaseOutcome, PhaseStatus, Score,
    SolutionScript, is_improvement_or_equal,
};
use crate::phase2::Paths;
use crate::state::Tally;
use crate::summary::Summary;

pub use crate::error::{Diagnostics, Error, PipelineError};
pub use crate::step::{Clock, OnChange, Ports, Run, RunCtx};

/// What a run gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// The result, as `result.json` shows it.
    pub result: FinalResult,
    /// The submission, by the name of its file in `solutions/`.
    pub submission: Option<String>,
}

/// Searches for the best solution of the run's task, and makes its submission.
pub async fn run(ctx: &RunCtx<'_>) -> Result<Completed, PipelineError> {
    let (initial, early) = phase1(ctx).await.map_err(|source| failed(ctx, source))?;
    let paths = phase2(ctx, &initial).await.map_err(|source| stopped(ctx, source))?;
    let ensemble = phase3(ctx, &paths).await.map_err(|source| stopped(ctx, source))?;
    let completed = finalize(ctx, initial, early, paths, ensemble).await;
    completed.map_err(|source| stopped(ctx, source))
}

async fn phase1(ctx: &RunCtx<'_>) -> Result<(Phase1Result, Option<Submission>), Error> {
    let ctx = ctx.scope("phase1");
    ctx.tell(Event::PhaseStarted { phase: Phase::Phase1 })?;
    let result = match phase1::run_phase1(&ctx).await {
        Err(error) if !error.stops_the_run() => {
            ctx.tell(Event::PhaseFailed { phase: Phase::Phase1, reason: error.in_full() })?;
            return Err(error);
        }
        ended => ended?,
    };
    let early = early_submission(&ctx, &result).await?;
    ctx.tell(Event::PhaseEnded { phase: Phase::Phase1, best: Some(result.initial_score) })?;
    Ok((result, early))
}

/// A submission of the initial solution, which only a better one will replace.
async fn early_submission(
    ctx: &RunCtx<'_>,
    phase1: &Phase1Result,
) -> Result<Option<Submission>, Error> {
    let ctx = ctx.scope("early_submission").in_lane("final");
    if !ctx.config().early_submission || ctx.is_cut_short()? {
        return Ok(None);
    }
    let early = finalize::submit_early(&ctx, &phase1.initial_solution).await?;
    if let Some(Submission { solution, file }) = &early {
        let from = phase1.initial_solution.phase;
        ctx.publish(file, solution, phase1.initial_score, from)?;
    }
    Ok(early)
}

async fn phase2(ctx: &RunCtx<'_>, initial: &Phase1Result) -> Result<Paths, Error> {
    let ctx = ctx.scope("phase2");
    ctx.tell(Event::PhaseStarted { phase: Phase::Phase2 })?;
    let paths = phase2::run_phase2(&ctx, initial).await?;
    let best = best_path(&ctx, &paths.results).map(|best| best.best_score);
    ctx.tell(Event::PhaseEnded { phase: Phase::Phase2, best })?;
    Ok(paths)
}

/// What came of Phase 3.
enum Ensemble {
    /// There was only one solution.
    Skipped,
    /// It ended with an error that another run would not mend.
    Failed(String),
    Best(Box<Phase3Result>),
}

async fn phase3(ctx: &RunCtx<'_>, paths: &Paths) -> Result<Ensemble, Error> {
    let best = best_path(ctx, &paths.results).map(|path| path.best_score);
    let ctx = ctx.scope("phase3").in_lane("ensemble");
    if ctx.config().num_parallel_solutions == 1 {
        ctx.tell(Event::PhaseSkipped { phase: Phase::Phase3, best })?;
        return Ok(Ensemble::Skipped);
    }
    ctx.tell(Event::PhaseStarted { phase: Phase::Phase3 })?;
    let solutions: Vec<SolutionScript> = paths
        .results
        .iter()
        .map(|path| SolutionScript { score: Some(path.best_score), ..path.best_solution.clone() })
        .collect();
    let ensemble = match phase3::run_phase3(&ctx, &solutions).await {
        Ok(result) => Ensemble::Best(Box::new(result)),
        Err(error) if error.stops_the_run() => return Err(error),
        Err(error) => {
            ctx.give_up(&error)?;
            ctx.warn(format!("Phase 3 failed: {}", error.in_full()))?;
            Ensemble::Failed(error.in_full())
        }
    };
    let best = match &ensemble {
        Ensemble::Best(result) => Some(result.best_ensemble_score),
        Ensemble::Skipped | Ensemble::Failed(_) => None,
    };
    ctx.tell(Event::PhaseEnded { phase: Phase::Phase3, best })?;
    Ok(ensemble)
}

async fn finalize(
    ctx: &RunCtx<'_>,
    phase1: Phase1Result,
    early: Option<Submission>,
    paths: Paths,
    ensemble: Ensemble,
) -> Result<Completed, Error> {
    let mut notes = paths.failures;
    let (phase3, phase3_outcome) = match ensemble {
        Ensemble::Skipped => (None, PhaseOutcome::Skipped),
        Ensemble::Failed(why) => {
            notes.push(format!("Phase 3 failed: {why}"));
            (None, PhaseOutcome::Failed)
        }
        Ensemble::Best(result) => (Some(*result), PhaseOutcome::Completed),
    };
    let ctx_final = ctx.scope("finalization").in_lane("final");
    ctx_final.tell(Event::PhaseStarted { phase: Phase::Finalization })?;
    let best = select(&ctx_final, &phase1, &paths.results, phase3.as_ref())?;
    let references = &ctx.header().reference_discussions;
    let Finalized { solution, submission, contamination } =
        match finalize::run_finalization(&ctx_final, &best, references).await {
            Ok(finalized) => finalized,
            Err(error) if error.stops_the_run() => return Err(error),
            Err(error) => {
                ctx_final.give_up(&error)?;
                let failure = format!("finalization failed: {}", error.in_full());
                ctx_final.warn(&failure)?;
                notes.push(failure);
                Finalized { solution: best.clone(), submission: None, contamination: None }
            }
        };
    let finalization = match &submission {
        Some(_) => PhaseOutcome::Completed,
        None => PhaseOutcome::Failed,
    };
    let score = best.score.unwrap_or(phase1.initial_score);
    // The paper's selection may be worse than what was submitted early; that one stays then.
    let replaces = early.is_none() || is_better_or_equal(ctx, score, phase1.initial_score);
    let submission = submission.filter(|_| replaces);
    if let Some(file) = &submission {
        ctx_final.publish(file, &solution, score, best.phase)?;
    }
    let submission = submission.or_else(|| {
        let early = early?;
        notes.push(format!(
            "the submission is the early one, of the initial solution (score {})",
            phase1.initial_score
        ));
        Some(early.file)
    });
    ctx_final.tell(Event::PhaseEnded { phase: Phase::Finalization, best: best.score })?;

    let (total_duration_seconds, total_cost_usd) = ctx.totals().await?;
    if let Some(tier) = ctx.tally().weakest_tier.filter(|tier| *tier < Tier::Strong) {
        notes.push(format!("scripts ran in a weak sandbox (`{tier}`)"));
    }
    let result = FinalResult {
        task: ctx.task().clone(),
        config: ctx.config().clone(),
        phase1,
        phase2_results: paths.results,
        phase3,
        final_solution: solution,
        submission_path: submission
            .as_ref()
            .map(|_| ctx.dir().submission().into_string())
            .unwrap_or_default(),
        total_duration_seconds,
        total_cost_usd,
        contamination,
        phase_status: PhaseStatus {
            phase1: PhaseOutcome::Completed,
            phase2: paths.outcome,
            phase3: phase3_outcome,
            finalization,
            cut_short: ctx.lacked().map(|lack| lack.to_string()),
            notes,
        },
    };
    let Tally { costs, mut durations, .. } = ctx.tally();
    durations.total_duration_seconds = total_duration_seconds;
    let lineage = summary::lineage(&result, best.phase);
    let summary = Box::new(Summary { costs, durations, lineage });
    ctx.tell(Event::Summarized { summary })?;
    Ok(Completed { result, submission })
}

/// What is finalized: the best ensemble, unless a single path did better, in which case the paper
/// is followed only where that is asked for.
fn select(
    ctx: &RunCtx<'_>,
    phase1: &Phase1Result,
    paths: &[Phase2Result],
    phase3: Option<&Phase3Result>,
) -> Result<SolutionScript, Error> {
    let path = best_path(ctx, paths)
        .map_or((&phase1.initial_solution, phase1.initial_score), |path| {
            (&path.best_solution, path.best_score)
        });
    let (solution, score) = match phase3 {
        Some(ensemble)
            if ctx.config().strict_paper_selection
                || is_better_or_equal(ctx, ensemble.best_ensemble_score, path.1) =>
        {
            (&ensemble.best_ensemble, ensemble.best_ensemble_score)
        }
        Some(_) | None => path,
    };
    ctx.tell(Event::Selected { from: solution.phase, score })?;
    Ok(SolutionScript { score: Some(score), ..solution.clone() })
}

/// The path with the best score, the last of equals.
fn best_path<'a>(ctx: &RunCtx<'_>, paths: &'a [Phase2Result]) -> Option<&'a Phase2Result> {
    paths.iter().reduce(|best, next| {
        if is_better_or_equal(ctx, next.best_score, best.best_score) { next } else { best }
    })
}

fn is_better_or_equal(ctx: &RunCtx<'_>, new: Score, old: Score) -> bool {
    is_improvement_or_equal(new, old, ctx.task().metric_direction)
}

/// Phase 1 ended: if that is not because the run was stopped, there is nothing to go on with.
fn failed(ctx: &RunCtx<'_>, source: Error) -> PipelineError {
    if source.stops_the_run() {
        return stopped(ctx, source);
    }
    if let Some(lack) = ctx.lacked() {
        return PipelineError::Exhausted {
            lack,
            source: Box::new(source),
            diagnostics: Box::new(ctx.diagnostics()),
        };
    }
    PipelineError::Phase1 { source: Box::new(source), diagnostics: Box::new(ctx.diagnostics()) }
}

fn stopped(ctx: &RunCtx<'_>, source: Error) -> PipelineError {
    PipelineError::Stopped { source: Box::new(source), diagnostics: Box::new(ctx.diagnostics()) }
}
