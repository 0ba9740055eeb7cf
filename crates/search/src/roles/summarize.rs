use serde::Serialize;

use crate::error::Error;
use crate::models::AgentType;
use crate::prompt::Variables;
use crate::roles::{Role, excerpt, tail};
use crate::step::RunCtx;

/// How much of a study's output a prompt shows.
const SHOWN_BYTES: usize = 48 * 1024;

/// How much of a study's output stands in for a missing summary.
const FALLBACK_CHARS: usize = 2000;

/// A_summarize: says in words what an ablation study found.
#[derive(Debug, Serialize)]
pub(crate) struct Summarize<'a> {
    pub(crate) ablation_code: &'a str,
    pub(crate) raw_result: &'a str,
}

impl Role for Summarize<'_> {
    const AGENT: AgentType = AgentType::Summarize;
    const STEP: &'static str = "summarize";

    fn variables(&self, _: &RunCtx<'_>) -> Variables {
        Variables::from([
            ("ablation_code", self.ablation_code.to_owned()),
            ("raw_result", tail(self.raw_result, SHOWN_BYTES).to_owned()),
        ])
    }
}

/// Sums up a study: the whole reply, or the end of the raw output if there is none.
pub async fn invoke_summarize(
    ctx: &RunCtx<'_>,
    ablation_code: &str,
    raw_output: &str,
) -> Result<String, Error> {
    if ablation_code.trim().is_empty() {
        return Err(Error::Precondition("A_summarize requires the code of the study"));
    }
    let summary = ctx.ask(&Summarize { ablation_code, raw_result: raw_output }).await?.reply.text;
    if !summary.trim().is_empty() {
        return Ok(summary);
    }
    ctx.warn(format!("A_summarize gave no summary: `{}`", excerpt(&summary)))?;
    let skipped = raw_output.chars().count().saturating_sub(FALLBACK_CHARS);
    let last: String = raw_output.chars().skip(skipped).collect();
    Ok(format!("[Auto-summary from raw output] {last}"))
}
