//! Phase 1: find models, write a candidate for each, merge the good ones (Algorithm 1).

use futures::future::join_all;
use jiff::Timestamp;

use crate::error::{Error, unless_short};
use crate::evaluate::{EvalOptions, Evaluated, evaluate, evaluate_with_retry, rank_solutions};
use crate::event::Event;
use crate::models::{
    Phase1Result, RetrievedModel, Score, SolutionPhase, SolutionScript, is_improvement_or_equal,
};
use crate::roles::{
    check_and_fix_leakage, check_data_usage, generate_candidate, merge_solutions, retrieve_models,
};
use crate::step::RunCtx;

/// A script with the score it earned.
struct Scored {
    script: SolutionScript,
    score: Score,
}

/// Finds the initial solution `s_0`.
pub async fn run_phase1(ctx: &RunCtx<'_>) -> Result<Phase1Result, Error> {
    let retrieved_models = retrieve_models(ctx).await?;

    // Candidates do not depend on each other; results stay in retrieval order.
    let written = retrieved_models.iter().enumerate().map(|(index, model)| {
        let name = format!("candidate-{index}");
        let ctx = ctx.scope(&name).in_lane(&name);
        async move { write_candidate(&ctx, model).await }
    });
    let candidate_solutions = join_all(written).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let candidate_scores: Vec<_> = candidate_solutions.iter().map(|it| it.score).collect();

    let candidates = rank_solutions(&candidate_scores, ctx.task().metric_direction);
    ctx.tell(Event::Ranked { candidates: candidates.clone() })?;
    let mut ranked = candidates
        .into_iter()
        .filter_map(|index| candidate_solutions.get(index))
        .filter_map(|script| Some(Scored { score: script.score?, script: script.clone() }));
    let best = ranked.next().ok_or(Error::NoCandidate { tried: candidate_solutions.len() })?;
    let merged = merge_greedily(ctx, best, ranked).await?;
    let initial = check_safety(ctx, merged).await?;

    Ok(Phase1Result {
        retrieved_models,
        candidate_solutions,
        candidate_scores,
        initial_solution: initial.script,
        initial_score: initial.score,
    })
}

/// Lines 2-5: one simple script per model.
async fn write_candidate(
    ctx: &RunCtx<'_>,
    model: &RetrievedModel,
) -> Result<SolutionScript, Error> {
    let Some(candidate) = unless_short(generate_candidate(ctx, model).await)? else {
        let nothing = SolutionScript::placeholder(SolutionPhase::Init, Timestamp::UNIX_EPOCH);
        return Ok(SolutionScript { source_model: Some(model.model_name.clone()), ..nothing });
    };
    if candidate.content.is_empty() {
        return Ok(candidate);
    }
    let evaluated = evaluate(ctx, &candidate, EvalOptions::validation(ctx.config())).await;
    let Some(evaluated) = unless_short(evaluated)? else {
        return Ok(SolutionScript { is_executable: false, ..candidate });
    };
    if let Some(bug) = &evaluated.bug {
        ctx.warn(format!("candidate `{}` failed: {}", model.model_name, bug.headline()))?;
    }
    Ok(evaluated.solution)
}

/// Lines 8-17: work the other candidates in, best first, until one does not help.
async fn merge_greedily(
    ctx: &RunCtx<'_>,
    best: Scored,
    others: impl Iterator<Item = Scored>,
) -> Result<Scored, Error> {
    let mut base = best;
    for (index, reference) in others.enumerate() {
        let rank = index + 1;
        let ctx = ctx.scope(format_args!("merge-{rank}")).in_lane("merge");
        if ctx.is_cut_short()? {
            break;
        }
        let merged = merge(&ctx, &base.script, &reference.script).await;
        let Some(script) = unless_short(merged)? else { break };
        let accepted = script.score.is_some_and(|score| {
            is_improvement_or_equal(score, base.score, ctx.task().metric_direction)
        });
        ctx.tell(Event::Merged { rank, base: base.score, score: script.score, accepted })?;
        match script.score {
            Some(score) if accepted => base = Scored { script, score },
            Some(_) | None => break,
        }
    }
    Ok(base)
}

/// One merge, evaluated if there is something to evaluate.
async fn merge(
    ctx: &RunCtx<'_>,
    base: &SolutionScript,
    reference: &SolutionScript,
) -> Result<SolutionScript, Error> {
    let merged = merge_solutions(ctx, base, reference).await?;
    if merged.content.is_empty() {
        return Ok(merged);
    }
    Ok(evaluate(ctx, &merged, EvalOptions::validation(ctx.config())).await?.solution)
}

/// After merging: use all the data, leak none of it.
async fn check_safety(ctx: &RunCtx<'_>, merged: Scored) -> Result<Scored, Error> {
    let ctx = ctx.scope("checks").in_lane("merge");
    let Some(checked) = unless_short(checked(&ctx, &merged.script).await)? else {
        return Ok(merged);
    };
    match checked {
        None => Ok(merged),
        Some(Evaluated {
            solution: script @ SolutionScript { score: Some(score), .. }, ..
        }) => Ok(Scored { script, score }),
        Some(Evaluated { bug, .. }) => {
            let why = bug.map_or_else(String::new, |bug| format!(": {}", bug.headline()));
            ctx.warn(format!("the checked script failed and the merged one is kept{why}"))?;
            Ok(merged)
        }
    }
}

/// What the checks made of a script, evaluated; `None` if they left it as it was.
async fn checked(ctx: &RunCtx<'_>, merged: &SolutionScript) -> Result<Option<Evaluated>, Error> {
    let revised = check_data_usage(ctx, merged).await?;
    let checked = check_and_fix_leakage(ctx, &revised).await?;
    if checked.content == merged.content {
        return Ok(None);
    }
    let options = EvalOptions::validation(ctx.config());
    evaluate_with_retry(ctx, &checked, options).await.map(Some)
}
