//! The outer loop: which block matters (Algorithm 2, lines 4-8 and 26-28).

use super::run_phase2_inner_loop;
use crate::block::{Located, locate};
use crate::error::{Error, unless_short};
use crate::evaluate::{EvalOptions, evaluate_with_retry};
use crate::event::Event;
use crate::models::{
    CodeBlock, ExtractorOutput, OuterStepRecord, Phase2Result, RefinePlan, Score, SolutionScript,
    is_improvement_or_equal,
};
use crate::roles::{ExtractorReply, invoke_ablation, invoke_extractor, invoke_summarize};
use crate::step::RunCtx;

/// How often the extractor is asked again for a block that is really in the script.
const BLOCK_RETRIES: usize = 2;

/// How often the extractor is asked again for a reply that can be read.
const PARSE_RETRIES: usize = 1;

/// How often the extractor is asked at most in one outer step.
pub const EXTRACTOR_CALLS: usize = 1 + PARSE_RETRIES + BLOCK_RETRIES;

/// What stands for the summary of a study that failed.
const STUDY_FAILED: &str = "Ablation study failed for this step";

/// Refines `initial_solution`, one code block per outer step.
pub async fn run_phase2_outer_loop(
    ctx: &RunCtx<'_>,
    initial_solution: &SolutionScript,
    initial_score: Score,
) -> Result<Phase2Result, Error> {
    let direction = ctx.task().metric_direction;
    let mut best_solution =
        SolutionScript { score: Some(initial_score), ..initial_solution.clone() };
    let mut best_score = initial_score;
    let mut summaries: Vec<String> = Vec::new(); // T_abl
    let mut blocks: Vec<CodeBlock> = Vec::new(); // C
    let mut step_history: Vec<OuterStepRecord> = Vec::new();

    for outer_step in 0..ctx.config().outer_loop_steps {
        let ctx = ctx.scope(format_args!("outer-{outer_step}"));
        let (mut summary, mut target) = (String::new(), None);
        if !ctx.is_cut_short()? {
            let summaries = known(&step_history).len();
            ctx.tell(Event::OuterStepStarted { best: best_score, summaries })?;
            let studied = study(&ctx, &best_solution, &known(&step_history)).await;
            summary = unless_short(studied)?.unwrap_or_default();
            let found = find_target(&ctx, &summary, &best_solution, &blocks, &step_history).await;
            target = unless_short(found)?.flatten();
        }

        let mut record = OuterStepRecord {
            outer_step,
            ablation_summary: summary.clone(),
            code_block: String::new(),
            plan: String::new(),
            inner_loop_attempts: Vec::new(),
            best_score_after_step: best_score,
            was_skipped: target.is_none(),
            failed: false,
        };
        let mut block = CodeBlock { outer_step: Some(outer_step), ..CodeBlock::default() };
        if let Some(RefinePlan { code_block, plan }) = target {
            block.content.clone_from(&code_block);
            ctx.tell(Event::InnerLoopStarted {
                characters: code_block.chars().count(),
                begins: code_block.chars().take(200).collect(),
                plan: plan.clone(),
                best: best_score,
            })?;
            let refined =
                run_phase2_inner_loop(&ctx, &best_solution, &block, &plan, best_score).await?;
            ctx.tell(Event::InnerLoopEnded {
                attempts: refined.attempts.len(),
                scored: refined.attempts.iter().filter(|it| it.score.is_some()).count(),
                best: refined.best_score,
                improved: refined.improved,
            })?;
            if is_improvement_or_equal(refined.best_score, best_score, direction) {
                best_solution = refined.best_solution;
                best_score = refined.best_score;
            }
            record = OuterStepRecord {
                code_block,
                plan,
                inner_loop_attempts: refined.attempts,
                best_score_after_step: best_score,
                ..record
            };
        }
        // A skipped step leaves placeholders, so that indices still tell the step.
        summaries.push(if record.was_skipped { String::new() } else { summary });
        blocks.push(block);
        step_history.push(record);
        ctx.tell(Event::OuterStepEnded { best: best_score })?;
    }
    let steps = step_history.iter().filter(|step| !step.was_skipped).count();
    ctx.tell(Event::OuterLoopEnded { steps, best: best_score })?;
    Ok(Phase2Result {
        ablation_summaries: summaries,
        refined_blocks: blocks,
        best_solution,
        best_score,
        step_history,
    })
}

/// What earlier studies found, also those of steps that were skipped afterwards.
fn known(step_history: &[OuterStepRecord]) -> Vec<String> {
    let summaries = step_history.iter().map(|step| step.ablation_summary.clone());
    summaries.filter(|summary| !summary.is_empty()).collect()
}

/// Lines 5-7: write a study, run it, sum it up. Empty if it could not be made to run.
async fn study(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    earlier: &[String],
) -> Result<String, Error> {
    let Some(study) = invoke_ablation(ctx, solution, earlier).await? else {
        return Ok(String::new());
    };
    let ctx_study = ctx.scope("study");
    let ran = evaluate_with_retry(&ctx_study, &study, EvalOptions::ablation(ctx.config())).await?;
    if let Some(bug) = &ran.bug {
        ctx.warn(format!("the ablation study failed: {}", bug.headline()))?;
        return Ok(String::new());
    }
    invoke_summarize(ctx, &ran.solution.content, &ran.result.stdout).await
}

/// Line 8: the block to refine, as it stands in the script, and the first plan for it.
async fn find_target(
    ctx: &RunCtx<'_>,
    summary: &str,
    solution: &SolutionScript,
    blocks: &[CodeBlock],
    step_history: &[OuterStepRecord],
) -> Result<Option<RefinePlan>, Error> {
    let summary = if summary.is_empty() { without_study(step_history) } else { summary.to_owned() };
    let previous: Vec<String> =
        blocks.iter().map(|it| it.content.clone()).filter(|it| !it.is_empty()).collect();
    let (mut parse_retries, mut block_retries) = (PARSE_RETRIES, BLOCK_RETRIES);
    let mut last = ExtractorReply::Fresh;
    let mut readable: Vec<ExtractorOutput> = Vec::new();
    for attempt in 0.. {
        let ctx = ctx.scope(format_args!("extract-{attempt}"));
        match invoke_extractor(&ctx, &summary, solution, &previous, last).await? {
            None if parse_retries == 0 => break,
            None => parse_retries -= 1,
            Some(output) => {
                let first = output.plans.first();
                let quoted: String = first
                    .map(|plan| plan.code_block.chars().take(100).collect())
                    .unwrap_or_default();
                let located = first.and_then(|plan| locate(&solution.content, &plan.code_block));
                ctx.tell(Event::BlockChecked {
                    matched: located.map(|it| it.matched),
                    attempt,
                    begins: quoted.clone(),
                })?;
                if let (Some(plan), Some(block)) = (first, located) {
                    return Ok(Some(at(plan, block)));
                }
                ctx.warn(format!("the extracted block is not in the script: {quoted}"))?;
                readable.push(output);
                if block_retries == 0 {
                    break;
                }
                block_retries -= 1;
                last = ExtractorReply::NotFound;
            }
        }
    }
    // The latest reply was given with the most advice.
    let mut others = readable.iter().rev().flat_map(|output| &output.plans);
    let target = others.find_map(|plan| in_script(plan, solution));
    if target.is_none() {
        let reason =
            if readable.is_empty() { "no readable plan" } else { "no block of the script" };
        ctx.tell(Event::OuterStepSkipped { reason: format!("the extractor gave {reason}") })?;
    }
    Ok(target)
}

/// The plan with its block as it stands in the script, if it stands there.
fn in_script(plan: &RefinePlan, solution: &SolutionScript) -> Option<RefinePlan> {
    Some(at(plan, locate(&solution.content, &plan.code_block)?))
}

fn at(plan: &RefinePlan, block: Located<'_>) -> RefinePlan {
    RefinePlan { code_block: block.text.to_owned(), plan: plan.plan.clone() }
}

/// What the extractor goes by when this step's study failed.
fn without_study(step_history: &[OuterStepRecord]) -> String {
    let earlier = known(step_history);
    if earlier.is_empty() {
        return STUDY_FAILED.to_owned();
    }
    format!("{STUDY_FAILED}. Results of earlier studies:\n\n{}", earlier.join("\n\n"))
}
