use jiff::Timestamp;
use serde::Serialize;

use crate::error::Error;
use crate::models::AgentType;
use crate::prompt::Variables;
use crate::reply::try_extract_code;
use crate::roles::{Role, coding_variables, excerpt};
use crate::step::{Asked, RunCtx};

/// A_coder: carries out a plan on a code block.
#[derive(Debug, Serialize)]
pub(crate) struct Coder<'a> {
    pub(crate) code_block: &'a str,
    pub(crate) plan: &'a str,
}

impl Role for Coder<'_> {
    const AGENT: AgentType = AgentType::Coder;
    const STEP: &'static str = "coder";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("code_block", self.code_block.to_owned());
        variables.insert("plan", self.plan.to_owned());
        variables
    }
}

/// Writes the refined block; `None` if the reply holds no code.
pub async fn invoke_coder(
    ctx: &RunCtx<'_>,
    code_block: &str,
    plan: &str,
) -> Result<Option<String>, Error> {
    Ok(refine_block(ctx, code_block, plan).await?.map(|(code, _)| code))
}

/// Writes the refined block, and says when.
pub(crate) async fn refine_block(
    ctx: &RunCtx<'_>,
    code_block: &str,
    plan: &str,
) -> Result<Option<(String, Timestamp)>, Error> {
    if code_block.trim().is_empty() {
        return Err(Error::Precondition("A_coder requires a non-empty code block"));
    }
    if plan.trim().is_empty() {
        return Err(Error::Precondition("A_coder requires a non-empty plan"));
    }
    let Asked { reply, at, .. } = ctx.ask(&Coder { code_block, plan }).await?;
    let code = try_extract_code(&reply.text);
    if code.is_none() {
        ctx.warn(format!("A_coder wrote no code: {}", excerpt(&reply.text)))?;
    }
    Ok(code.map(|code| (code, at)))
}
