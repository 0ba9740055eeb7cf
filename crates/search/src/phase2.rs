//! Phase 2: find the code block that matters most, and refine that one (Algorithm 2).

mod inner;
mod outer;

use futures::StreamExt;
use futures::stream;

use crate::budget;
use crate::error::Error;
use crate::event::Event;
use crate::models::{
    CodeBlock, OuterStepRecord, Phase1Result, Phase2Result, PhaseOutcome, SolutionScript,
};
use crate::step::RunCtx;

pub use inner::run_phase2_inner_loop;
pub use outer::{EXTRACTOR_CALLS, run_phase2_outer_loop};

/// How the lanes of paths are called, but for their numbers.
const PATH: &str = "path-";

/// What all paths gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Paths {
    /// One result per path; a placeholder for a failed one.
    pub results: Vec<Phase2Result>,
    /// Failed if no path completed.
    pub outcome: PhaseOutcome,
    /// Why paths failed.
    pub failures: Vec<String>,
}

/// Refines the initial solution on L paths side by side. A path that fails takes no other with it.
pub async fn run_phase2(ctx: &RunCtx<'_>, phase1: &Phase1Result) -> Result<Paths, Error> {
    let config = ctx.config();
    let at_once = config.num_parallel_solutions.min(config.max_concurrent_sessions);
    if at_once < config.num_parallel_solutions {
        ctx.warn(format!("only {at_once} paths run at the same time; the others wait"))?;
    }
    let budget = budget::path_budget(config, budget::phase2_budget(config, ctx.elapsed()));
    let paths = (0..config.num_parallel_solutions).map(|path| {
        let name = format!("{PATH}{path}");
        let ctx = ctx.scope(&name).in_lane(&name);
        async move {
            let initial = phase1.initial_solution.clone();
            let ended = match ctx.limited_to(budget) {
                Ok(ctx) => run_phase2_outer_loop(&ctx, &initial, phase1.initial_score).await,
                Err(error) => Err(error),
            };
            (path, ended)
        }
    });
    let mut ended: Vec<_> = stream::iter(paths).buffer_unordered(at_once).collect().await;
    ended.sort_by_key(|(path, _)| *path);

    let (mut results, mut failures) = (Vec::new(), Vec::new());
    for (path, ended) in ended {
        let (result, failure) = match ended {
            Ok(result) => (result, None),
            Err(error) if error.stops_the_run() => return Err(error),
            Err(error) => {
                ctx.give_up(&error)?;
                (placeholder(phase1), Some(error.in_full()))
            }
        };
        let cut_short = ctx.scope(format_args!("{PATH}{path}")).lacked().is_some();
        ctx.tell(Event::PathEnded {
            path,
            best: result.best_score,
            failure: failure.clone(),
            cut_short,
        })?;
        results.push(result);
        failures.extend(failure.map(|why| format!("path {path} failed: {why}")));
    }
    let outcome = if failures.len() == results.len() {
        PhaseOutcome::Failed
    } else {
        PhaseOutcome::Completed
    };
    Ok(Paths { results, outcome, failures })
}

/// Whether a lane is that of a path.
pub(crate) fn is_path(lane: &str) -> bool {
    lane.starts_with(PATH)
}

/// What a failed path contributes: the solution it started from.
fn placeholder(phase1: &Phase1Result) -> Phase2Result {
    Phase2Result {
        ablation_summaries: vec![String::new()],
        refined_blocks: vec![CodeBlock { outer_step: Some(0), ..CodeBlock::default() }],
        best_solution: SolutionScript {
            score: Some(phase1.initial_score),
            ..phase1.initial_solution.clone()
        },
        best_score: phase1.initial_score,
        step_history: vec![OuterStepRecord {
            outer_step: 0,
            ablation_summary: String::new(),
            code_block: String::new(),
            plan: String::new(),
            inner_loop_attempts: Vec::new(),
            best_score_after_step: phase1.initial_score,
            was_skipped: true,
            failed: true,
        }],
    }
}
