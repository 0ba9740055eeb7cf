//! Finalization: from the best solution to `submission.csv`.

use crate::error::Error;
use crate::evaluate::{BugReport, EvalOptions, Purpose, evaluate};
use crate::event::Event;
use crate::models::{DataContaminationResult, SolutionPhase, SolutionScript};
use crate::roles::{
    check_contamination, generate_test_submission, invoke_debugger, remove_subsampling,
};
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
    let script = write_submission_script(ctx, &full).await?;
    let evaluated = evaluate(ctx, &script, EvalOptions::submission(ctx.config())).await?;

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
    let contamination = check_contamination(ctx, &solution, reference_discussions).await?;
    Ok(Finalized { solution, submission, contamination })
}

/// The script that A_test writes, or the debugger, if A_test wrote none.
async fn write_submission_script(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
) -> Result<SolutionScript, Error> {
    if let Some(script) = generate_test_submission(ctx, solution).await? {
        return Ok(script);
    }
    let script = SolutionScript { phase: SolutionPhase::Final, ..solution.clone() };
    let bug = BugReport::new("RuntimeError: no submission script was produced", "");
    invoke_debugger(ctx, &script, &bug, Purpose::Submission).await
}
