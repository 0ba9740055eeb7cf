use serde::Serialize;

use crate::error::Error;
use crate::models::{AgentType, Score};
use crate::prompt::Variables;
use crate::roles::{Role, history, metric_variables, score_list};
use crate::step::RunCtx;

/// A_planner: proposes the next plan for a block, having seen how the others did.
#[derive(Debug, Serialize)]
pub(crate) struct Planner<'a> {
    pub(crate) code_block: &'a str,
    pub(crate) plans: &'a [String],
    pub(crate) scores: &'a [Option<Score>],
}

impl Role for Planner<'_> {
    const AGENT: AgentType = AgentType::Planner;
    const STEP: &'static str = "planner";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = metric_variables(ctx);
        variables.insert("code_block", self.code_block.to_owned());
        let tried = history("Improvement plans you have tried", self.plans, self.scores);
        variables.insert("plans", tried);
        variables.insert("scores", score_list(self.scores));
        variables
    }
}

/// Proposes the next plan; `None` if the reply is empty.
pub async fn invoke_planner(
    ctx: &RunCtx<'_>,
    code_block: &str,
    plans: &[String],
    scores: &[Option<Score>],
) -> Result<Option<String>, Error> {
    if plans.is_empty() {
        return Err(Error::Precondition("At least one previous plan is required for A_planner"));
    }
    if code_block.trim().is_empty() {
        return Err(Error::Precondition("A_planner requires a non-empty code block"));
    }
    if plans.len() != scores.len() {
        return Err(Error::Precondition("A_planner requires one score per plan"));
    }
    let text = ctx.ask(&Planner { code_block, plans, scores }).await?.reply.text;
    Ok(Some(text.trim().to_owned()).filter(|plan| !plan.is_empty()))
}
