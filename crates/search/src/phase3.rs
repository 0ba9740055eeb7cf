//! Phase 3: combine the solutions of all paths, over R rounds (Algorithm 3).

use crate::error::{Error, unless_short};
use crate::evaluate::{EvalOptions, evaluate, rank_solutions};
use crate::event::Event;
use crate::models::{
    EnsembleAttempt, MetricDirection, Phase3Result, Score, SolutionPhase, SolutionScript,
    is_improvement_or_equal,
};
use crate::roles::{invoke_ens_planner, invoke_ensembler};
use crate::step::RunCtx;

/// What stands for the plan of a round that was not made.
const SKIPPED: &str = "[skipped]";

/// What stands for the plan of an ensemble planner that had none.
const PLANNER_FAILED: &str = "[ens_planner failed]";

/// Combines `solutions`, which must all have a score.
pub async fn run_phase3(
    ctx: &RunCtx<'_>,
    solutions: &[SolutionScript],
) -> Result<Phase3Result, Error> {
    let scores: Vec<Option<Score>> = solutions.iter().map(|it| it.score).collect();
    let best_input = rank_solutions(&scores, ctx.task().metric_direction)
        .first()
        .and_then(|index| solutions.get(*index))
        .filter(|_| scores.iter().all(Option::is_some));
    let Some(best_input) = best_input else {
        return Err(Error::Precondition("Phase 3 requires scored solutions"));
    };

    let mut attempts: Vec<EnsembleAttempt> = Vec::new();
    if solutions.len() > 1 {
        for round in 0..ctx.config().ensemble_rounds {
            let ctx = ctx.scope(format_args!("round-{round}"));
            let attempt = if ctx.is_cut_short()? {
                None
            } else {
                ctx.tell(Event::RoundStarted { earlier: attempts.len() })?;
                unless_short(attempt_ensemble(&ctx, solutions, &attempts).await)?
            };
            let Some(attempt) = attempt else {
                attempts.push(nothing(SKIPPED, solutions));
                continue;
            };
            ctx.tell(Event::Ensembled { plan: attempt.plan.clone(), score: attempt.score })?;
            attempts.push(attempt);
        }
    }

    let best = best_round(&attempts, ctx.task().metric_direction);
    if best.is_none() && attempts.iter().any(|attempt| attempt.plan != SKIPPED) {
        ctx.warn(format!(
            "Phase 3 ensemble: all {} attempts failed; falling back to best input solution",
            attempts.len()
        ))?;
    }
    let best_ensemble = best.map_or(best_input, |attempt| &attempt.solution).clone();
    let Some(best_ensemble_score) = best_ensemble.score else {
        return Err(Error::Precondition("Phase 3 requires scored solutions"));
    };
    Ok(Phase3Result {
        input_solutions: solutions.to_vec(),
        ensemble_plans: attempts.iter().map(|it| it.plan.clone()).collect(),
        ensemble_scores: attempts.iter().map(|it| it.score).collect(),
        best_ensemble,
        best_ensemble_score,
        attempts,
    })
}

/// Lines 1-3 and 5-7: plan an ensemble, write it, evaluate it.
async fn attempt_ensemble(
    ctx: &RunCtx<'_>,
    solutions: &[SolutionScript],
    earlier: &[EnsembleAttempt],
) -> Result<EnsembleAttempt, Error> {
    let plans: Vec<String> = earlier.iter().map(|it| it.plan.clone()).collect();
    let scores: Vec<Option<Score>> = earlier.iter().map(|it| it.score).collect();
    let Some(plan) = invoke_ens_planner(ctx, solutions, &plans, &scores).await? else {
        ctx.warn("A_ens_planner gave no plan; this round is skipped")?;
        return Ok(nothing(PLANNER_FAILED, solutions));
    };
    let Some(ensemble) = invoke_ensembler(ctx, &plan, solutions).await? else {
        return Ok(nothing(&plan, solutions));
    };
    let evaluated = evaluate(ctx, &ensemble, EvalOptions::validation(ctx.config())).await?;
    if let Some(bug) = &evaluated.bug {
        let plan: String = plan.chars().take(200).collect();
        ctx.warn(format!("the ensemble failed: {}; its plan was: {plan}", bug.headline()))?;
    } else if evaluated.submission.is_none() {
        ctx.warn("the ensemble wrote no ./final/submission.csv")?;
    }
    Ok(EnsembleAttempt { plan, score: evaluated.solution.score, solution: evaluated.solution })
}

/// What stands for a round that gave no ensemble.
fn nothing(plan: &str, solutions: &[SolutionScript]) -> EnsembleAttempt {
    // A placeholder was not written by any step: it is as old as what it was to be made of.
    let at = solutions.first().map(|it| it.created_at).unwrap_or_default();
    EnsembleAttempt {
        plan: plan.to_owned(),
        score: None,
        solution: SolutionScript::placeholder(SolutionPhase::Ensemble, at),
    }
}

/// Line 9: the best round, the last of equals.
fn best_round(
    attempts: &[EnsembleAttempt],
    direction: MetricDirection,
) -> Option<&EnsembleAttempt> {
    let scored = attempts.iter().filter_map(|attempt| Some((attempt.score?, attempt)));
    let best =
        scored.reduce(
            |best, next| {
                if is_improvement_or_equal(next.0, best.0, direction) { next } else { best }
            },
        );
    best.map(|(_, attempt)| attempt)
}
