use serde::Serialize;

use crate::error::Error;
use crate::models::{AgentType, SolutionPhase, SolutionScript};
use crate::prompt::Variables;
use crate::reply::try_extract_code;
use crate::roles::{Role, coding_variables, excerpt};
use crate::step::RunCtx;

/// A_merger: works a reference solution into a base solution.
#[derive(Debug, Serialize)]
pub(crate) struct Merger<'a> {
    pub(crate) base_code: &'a str,
    pub(crate) reference_code: &'a str,
}

impl Role for Merger<'_> {
    const AGENT: AgentType = AgentType::Merger;
    const STEP: &'static str = "merger";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("base_code", self.base_code.to_owned());
        variables.insert("reference_code", self.reference_code.to_owned());
        variables
    }
}

/// Merges `reference` into `base`; an empty placeholder if the agent wrote no code.
pub async fn merge_solutions(
    ctx: &RunCtx<'_>,
    base: &SolutionScript,
    reference: &SolutionScript,
) -> Result<SolutionScript, Error> {
    let asked =
        ctx.ask(&Merger { base_code: &base.content, reference_code: &reference.content }).await?;
    Ok(match try_extract_code(&asked.reply.text) {
        Some(code) => SolutionScript::new(code, SolutionPhase::Merged, asked.at),
        None => {
            ctx.warn(format!("A_merger wrote no code: {}", excerpt(&asked.reply.text)))?;
            SolutionScript::placeholder(SolutionPhase::Merged, asked.at)
        }
    })
}
