//! What is asked of the agents.
//!
//! A role is a struct: its fields are what the agent is given, its prompt lies beside it in a
//! Markdown file of the same name. Below each role stands the function that asks it and reads the
//! reply; an unusable reply is an ordinary answer (`None`, or the input unchanged), never an error.

mod ablation;
mod coder;
mod data;
mod debugger;
mod ens_planner;
mod ensembler;
mod extractor;
mod init;
mod leakage;
mod merger;
mod planner;
mod retriever;
mod summarize;
mod test;

use serde::Serialize;

use crate::models::{AgentType, Score};
use crate::prompt::Variables;
use crate::step::RunCtx;

pub use ablation::invoke_ablation;
pub use coder::invoke_coder;
pub(crate) use coder::refine_block;
pub use data::{check_data_usage, parse_data_agent_response};
pub use debugger::invoke_debugger;
pub use ens_planner::invoke_ens_planner;
pub use ensembler::invoke_ensembler;
pub use extractor::{ExtractorReply, invoke_extractor};
pub use init::generate_candidate;
pub use leakage::check_and_fix_leakage;
pub use merger::merge_solutions;
pub use planner::invoke_planner;
pub use retriever::{parse_retriever_output, retrieve_models};
pub use summarize::invoke_summarize;
pub use test::{check_contamination, generate_test_submission, remove_subsampling};

/// A part that an agent plays.
pub trait Role: Serialize + Sync {
    /// Who plays it.
    const AGENT: AgentType;
    /// Which of the agent's prompts it uses.
    const VARIANT: Option<&'static str> = None;
    /// The last part of its step's key.
    const STEP: &'static str;

    /// What fills the blanks of its prompt.
    fn variables(&self, ctx: &RunCtx<'_>) -> Variables;
}

/// The metric and its direction, which most prompts show.
fn metric_variables(ctx: &RunCtx<'_>) -> Variables {
    Variables::from([
        ("evaluation_metric", ctx.task().evaluation_metric.clone()),
        ("direction", ctx.task().metric_direction.in_words().to_owned()),
    ])
}

/// What the agents that write whole scripts or blocks are shown besides their own input.
fn coding_variables(ctx: &RunCtx<'_>) -> Variables {
    let mut variables = metric_variables(ctx);
    variables.insert("environment", crate::environment::section(ctx.header()));
    variables.insert("subsample_instruction", subsample_instruction(ctx));
    variables
}

/// How refinement keeps scripts fast: the sentence that the harness puts into prompts.
pub const SUBSAMPLE_INSTRUCTION: &str = "If there are more than {limit} training samples, you \
                                         must subsample to {limit} for a faster run.";

fn subsample_instruction(ctx: &RunCtx<'_>) -> String {
    SUBSAMPLE_INSTRUCTION.replace("{limit}", &ctx.config().subsample_limit.to_string())
}

/// Plans with what each scored, as the planners are shown them. Empty if nothing was tried.
fn history(heading: &str, plans: &[String], scores: &[Option<Score>]) -> String {
    if plans.is_empty() {
        return String::new();
    }
    let tried = plans.iter().zip(scores).map(|(plan, score)| {
        let score =
            score.map_or_else(|| "N/A (evaluation failed)".to_owned(), |score| score.to_string());
        format!("## Plan: {plan}\n## Score: {score}")
    });
    format!("# {heading}\n\n{}", tried.collect::<Vec<_>>().join("\n\n"))
}

/// The scores alone, for prompts that want them so.
fn score_list(scores: &[Option<Score>]) -> String {
    let shown = scores.iter().map(|it| it.map_or_else(|| "N/A".to_owned(), |it| it.to_string()));
    shown.collect::<Vec<_>>().join(", ")
}

/// Texts under a heading, numbered from 1, each between tags. Empty if there are none.
fn numbered(heading: &str, item: &str, texts: &[String], tag: &str) -> String {
    if texts.is_empty() {
        return String::new();
    }
    // Tags and not fences: scripts and summaries may hold fences and headings of their own.
    let texts = texts
        .iter()
        .enumerate()
        .map(|(index, text)| format!("## {item} {}\n\n<{tag}>\n{text}\n</{tag}>", index + 1));
    format!("# {heading}\n\n{}", texts.collect::<Vec<_>>().join("\n\n"))
}

/// How a text begins, for warnings.
fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The tail of a long text, which is where results stand, within what a prompt can hold.
fn tail(text: &str, bytes: usize) -> &str {
    let start = text.len().saturating_sub(bytes);
    text.get(text.ceil_char_boundary(start)..).unwrap_or_default()
}

#[cfg(test)]
#[path = "roles/prompt_tests.rs"]
mod prompt_tests;
