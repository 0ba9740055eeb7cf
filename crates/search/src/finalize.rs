//! Finalization: from the best solution to `submission.csv`.

use crate::error::Error;
use crate::evaluate::{EvalOptions, evaluate, evaluate_unwritten};
use crate::event::Event;
use crate::models::{DataContaminationResult, SolutionPhase, SolutionScript};
use crate::roles::{check_contamination, generate_test_submission, remove_subsampling};
use crate::step::RunCtx;

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

/// Writes the submission of `solution`, on all training data. Falls back to the solution itself,
/// without a submission, if no script could be made to write one.
pub async fn run_finalization(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    reference_discussions: &[String],
) -> Result<Finalized, Error> {
    let full = remove_subsampling(ctx, solution).await?;
    let options = EvalOptions::submission(ctx.config());
    let evaluated = match generate_test_submission(ctx, &full).await? {
        Some(script) => evaluate(ctx, &script, options).await?,
        None => {
            let script = SolutionScript { phase: SolutionPhase::Final, ..full };
            let reason = "RuntimeError: no submission script was produced";
            evaluate_unwritten(ctx, &script, reason, options).await?
        }
    };

    let (solution, submission) = match (evaluated.bug, evaluated.submission) {
        (None, Some(submission)) => {
            let info = &evaluated.submission_info;
            ctx.tell(Event::Submitted { rows: info.row_count })?;
            if info.parse_error.is_some() || info.row_count == Some(0) {
                ctx.warn("the submission cannot be read as a table with rows")?;
            }
            let solution = SolutionScript { score: solution.score, ..evaluated.solution };
            (solution, Some(submission))
        }
        (bug, _) => {
            let why = bug.map_or_else(String::new, |bug| format!(": {}", bug.headline()));
            ctx.warn(format!("no submission could be made; the best solution is kept{why}"))?;
            (solution.clone(), None)
        }
    };
    let contamination = match check_contamination(ctx, &solution, reference_discussions).await {
        Err(error @ Error::Precondition(_)) => {
            ctx.warn(format!("the solution was compared with nothing: {error}"))?;
            None
        }
        contamination => contamination?,
    };
    Ok(Finalized { solution, submission, contamination })
}
