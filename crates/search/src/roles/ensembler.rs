use serde::Serialize;

use super::ens_planner::labelled;
use crate::error::Error;
use crate::models::{AgentType, SolutionPhase, SolutionScript};
use crate::prompt::Variables;
use crate::reply::try_extract_code;
use crate::roles::{Role, coding_variables, excerpt};
use crate::step::{Asked, RunCtx};

/// A_ensembler: writes one program that combines the solutions as planned.
#[derive(Debug, Serialize)]
pub(crate) struct Ensembler<'a> {
    pub(crate) plan: &'a str,
    pub(crate) solutions: Vec<&'a str>,
}

impl Role for Ensembler<'_> {
    const AGENT: AgentType = AgentType::Ensembler;
    const STEP: &'static str = "ensembler";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("L", self.solutions.len().to_string());
        variables.insert("solutions", labelled(&self.solutions));
        variables.insert("plan", self.plan.to_owned());
        variables
    }
}

/// Writes the ensemble; `None` if the reply holds no code.
pub async fn invoke_ensembler(
    ctx: &RunCtx<'_>,
    plan: &str,
    solutions: &[SolutionScript],
) -> Result<Option<SolutionScript>, Error> {
    if plan.trim().is_empty() {
        return Err(Error::Precondition("A_ensembler requires a non-empty ensemble plan"));
    }
    if solutions.len() < 2 {
        return Err(Error::Precondition(
            "A_ensembler requires at least 2 solutions for ensembling",
        ));
    }
    let solutions = solutions.iter().map(|it| it.content.as_str()).collect();
    let Asked { reply, at, .. } = ctx.ask(&Ensembler { plan, solutions }).await?;
    let Some(code) = try_extract_code(&reply.text) else {
        ctx.warn(format!("A_ensembler wrote no code: {}", excerpt(&reply.text)))?;
        return Ok(None);
    };
    Ok(Some(SolutionScript::new(code, SolutionPhase::Ensemble, at)))
}
