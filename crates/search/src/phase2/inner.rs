//! The inner loop: K plans for one block (Algorithm 2, lines 9-25).

use crate::error::Error;
use crate::evaluate::{EvalOptions, evaluate};
use crate::event::Event;
use crate::models::{
    CodeBlock, InnerLoopResult, RefinementAttempt, Score, SolutionPhase, SolutionScript,
    is_improvement, is_improvement_or_equal,
};
use crate::roles::{invoke_planner, refine_block};
use crate::step::RunCtx;

/// What stands for the plan of an attempt that was not made.
const SKIPPED: &str = "[skipped]";

/// What stands for the plan of a planner that had none.
const PLANNER_FAILED: &str = "[planner failed]";

/// Tries K plans on `code_block`, each on the solution as it was handed in.
pub async fn run_phase2_inner_loop(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    code_block: &CodeBlock,
    initial_plan: &str,
    best_score: Score,
) -> Result<InnerLoopResult, Error> {
    let direction = ctx.task().metric_direction;
    let mut local_best_solution = solution.clone();
    let mut local_best_score = best_score;
    let (mut plans, mut scores) = (Vec::new(), Vec::new());
    let mut attempts = Vec::new();

    for inner_step in 0..ctx.config().inner_loop_steps {
        let ctx = ctx.scope(format_args!("inner-{inner_step}"));
        if ctx.is_cut_short()? {
            attempts.push(skipped());
            continue;
        }
        let plan = if inner_step == 0 {
            Some(initial_plan.to_owned())
        } else {
            or_fail(&ctx, invoke_planner(&ctx, &code_block.content, &plans, &scores).await)?
        };
        let Refined { code, solution: candidate } = match &plan {
            Some(plan) => or_fail(&ctx, refine(&ctx, solution, code_block, plan).await)?,
            None => {
                ctx.warn("A_planner gave no plan; this attempt is skipped")?;
                Refined::default()
            }
        };
        let score = candidate.as_ref().and_then(|it| it.score);
        let was_improvement =
            score.is_some_and(|score| is_improvement_or_equal(score, local_best_score, direction));
        if let (true, Some(candidate), Some(score)) = (was_improvement, candidate, score) {
            local_best_solution = candidate;
            local_best_score = score;
        }

        // Every attempt is remembered, failed ones too: the planner learns from both.
        let plan = plan.unwrap_or_else(|| PLANNER_FAILED.to_owned());
        ctx.tell(Event::Refined {
            plan: plan.clone(),
            score,
            best: local_best_score,
            accepted: was_improvement,
        })?;
        plans.push(plan.clone());
        scores.push(score);
        attempts.push(RefinementAttempt { plan, score, code_block: code, was_improvement });
    }
    Ok(InnerLoopResult {
        improved: is_improvement(local_best_score, best_score, direction),
        best_solution: local_best_solution,
        best_score: local_best_score,
        attempts,
    })
}

/// What came of one plan.
#[derive(Default)]
struct Refined {
    /// The refined block; empty if the coder wrote none.
    code: String,
    /// The solution with it, evaluated; `None` if it did not come to that.
    solution: Option<SolutionScript>,
}

/// What stands for an attempt that was not made.
fn skipped() -> RefinementAttempt {
    RefinementAttempt {
        plan: SKIPPED.to_owned(),
        score: None,
        code_block: String::new(),
        was_improvement: false,
    }
}

/// An unmet precondition is the agent's failure, and what time or money do not allow was not to
/// be: both end the attempt, not the loop.
fn or_fail<T: Default>(ctx: &RunCtx<'_>, result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Err(error @ Error::Precondition(_)) => {
            ctx.warn(error.to_string())?;
            Ok(T::default())
        }
        Err(error) if error.is_shortage() => Ok(T::default()),
        result => result,
    }
}

/// Lines 9-11 and 18-20: write the block, put it in, evaluate.
async fn refine(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    code_block: &CodeBlock,
    plan: &str,
) -> Result<Refined, Error> {
    let Some((code, created_at)) = refine_block(ctx, &code_block.content, plan).await? else {
        return Ok(Refined::default());
    };
    let candidate = match solution.replace_block(&code_block.content, &code) {
        Ok(candidate) => SolutionScript { phase: SolutionPhase::Refined, created_at, ..candidate },
        Err(error) => {
            ctx.warn(error.to_string())?;
            return Ok(Refined { code, solution: None });
        }
    };
    ctx.tell(Event::BlockReplaced {
        before: code_block.content.chars().count(),
        after: code.chars().count(),
    })?;
    let evaluated = evaluate(ctx, &candidate, EvalOptions::validation(ctx.config())).await?;
    Ok(Refined { code, solution: Some(evaluated.solution) })
}
