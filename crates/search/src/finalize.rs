//! Finalization: from the best solution to `submission.csv`.

use crate::error::{Error, unless_short};
use crate::evaluate::{
    EvalOptions, Evaluated, Purpose, evaluate, evaluate_solution, evaluate_unwritten,
    script_timeout,
};
use crate::event::Event;
use crate::models::{DataContaminationResult, SolutionPhase, SolutionScript};
use crate::roles::{check_contamination, generate_test_submission, remove_subsampling};
use crate::step::RunCtx;

/// How many repairs the script of an early submission may take.
pub const EARLY_REPAIRS: usize = 1;

/// What finalization gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Finalized {
    /// The script that wrote the submission, or the one handed in if none did.
    pub solution: SolutionScript,
    /// The submission, by the name of its file in `solutions/`.
    pub submission: Option<String>,
    /// Whether the solution copies a reference discussion.
    pub contamination: Option<DataContaminationResult>,
}

/// A verified submission and the script that wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The script.
    pub solution: SolutionScript,
    /// The submission, by the name of its file in `solutions/`.
    pub file: String,
}

/// Writes the submission of `solution`, on all training data. Where time, money or agents do not
/// allow that, the solution is run as it is. Falls back to the solution itself, without a
/// submission, if no script could be made to write one.
pub async fn run_finalization(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    reference_discussions: &[String],
) -> Result<Finalized, Error> {
    let ctx = &ctx.finalizing();
    let options = EvalOptions::submission(ctx.config());
    let submission = match unless_short(submit(ctx, solution, options).await)? {
        Some(submission) => submission,
        None => submit_as_it_is(ctx, solution, options).await?,
    };
    let (solution, submission) = match submission {
        Some(Submission { solution, file }) => (solution, Some(file)),
        None => (solution.clone(), None),
    };
    let checked = check_contamination(ctx, &solution, reference_discussions).await;
    let contamination = match unless_short(checked) {
        Err(error @ Error::Precondition(_)) => {
            ctx.warn(format!("the solution was compared with nothing: {error}"))?;
            None
        }
        checked => checked?.flatten(),
    };
    Ok(Finalized { solution, submission, contamination })
}

/// Makes a submission of the initial solution, so that there is one whatever happens later. It may
/// cost no more than a script of Phase 1 and one repair.
pub async fn submit_early(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
) -> Result<Option<Submission>, Error> {
    let options = EvalOptions {
        purpose: Purpose::Submission,
        timeout: script_timeout(ctx.config()),
        max_retries: EARLY_REPAIRS,
    };
    match unless_short(submit(ctx, solution, options).await) {
        Err(error) if !error.stops_the_run() => {
            ctx.give_up(&error)?;
            ctx.warn(format!("no early submission: {}", error.in_full()))?;
            Ok(None)
        }
        submitted => Ok(submitted?.flatten()),
    }
}

/// Removes subsampling, has the submission script written, and runs it until it is verified.
async fn submit(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    options: EvalOptions,
) -> Result<Option<Submission>, Error> {
    let full = remove_subsampling(ctx, solution).await?;
    let evaluated = match generate_test_submission(ctx, &full).await? {
        Some(script) => evaluate(ctx, &script, options).await?,
        None => {
            let script = SolutionScript { phase: SolutionPhase::Final, ..full };
            let reason = "RuntimeError: no submission script was produced";
            evaluate_unwritten(ctx, &script, reason, options).await?
        }
    };
    verified(ctx, solution, evaluated)
}

/// Runs the solution as it is, without any agent: an ensemble writes its submission by itself.
async fn submit_as_it_is(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    options: EvalOptions,
) -> Result<Option<Submission>, Error> {
    let ctx = ctx.scope("as_it_is");
    ctx.warn("there is no time, money or agent for a submission script")?;
    if !solution.content.contains("submission.csv") {
        return Ok(None);
    }
    match unless_short(evaluate_solution(&ctx, solution, options).await)? {
        Some(evaluated) => verified(&ctx, solution, evaluated),
        None => Ok(None),
    }
}

/// The submission of an evaluation, if there is nothing wrong with it.
fn verified(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    evaluated: Evaluated,
) -> Result<Option<Submission>, Error> {
    let (None, Some(file)) = (&evaluated.bug, evaluated.submission) else {
        let why = evaluated.bug.map_or_else(String::new, |bug| format!(": {}", bug.headline()));
        ctx.warn(format!("no submission could be made; the best solution is kept{why}"))?;
        return Ok(None);
    };
    let info = &evaluated.submission_info;
    ctx.tell(Event::Submitted { rows: info.row_count })?;
    if info.parse_error.is_some() || info.row_count == Some(0) {
        ctx.warn("the submission cannot be read as a table with rows")?;
    }
    let solution = SolutionScript { score: solution.score, ..evaluated.solution };
    Ok(Some(Submission { solution, file }))
}
