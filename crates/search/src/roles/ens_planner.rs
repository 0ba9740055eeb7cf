use serde::Serialize;

use crate::error::Error;
use crate::models::{AgentType, Score, SolutionScript};
use crate::prompt::Variables;
use crate::roles::{Role, history, metric_variables, score_list};
use crate::step::RunCtx;

/// A_ens_planner: proposes how to combine the solutions, having seen how other ways did.
#[derive(Debug, Serialize)]
pub(crate) struct EnsPlanner<'a> {
    pub(crate) solutions: Vec<&'a str>,
    pub(crate) plans: &'a [String],
    pub(crate) scores: &'a [Option<Score>],
}

impl Role for EnsPlanner<'_> {
    const AGENT: AgentType = AgentType::EnsPlanner;
    const STEP: &'static str = "ens_planner";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = metric_variables(ctx);
        variables.insert("L", self.solutions.len().to_string());
        variables.insert("solutions", labelled(&self.solutions));
        let tried = history("Ensemble plans you have tried", self.plans, self.scores);
        variables.insert("plans", tried);
        variables.insert("scores", score_list(self.scores));
        variables
    }
}

/// The scripts that are to be combined, each under its number.
pub(crate) fn labelled(solutions: &[&str]) -> String {
    let shown = solutions.iter().enumerate().map(|(index, code)| {
        format!(
            "# {}th Python Solution\n\n<python_solution>\n{code}\n</python_solution>",
            index + 1
        )
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

/// Proposes the next ensemble; `None` if the reply is empty.
pub async fn invoke_ens_planner(
    ctx: &RunCtx<'_>,
    solutions: &[SolutionScript],
    plans: &[String],
    scores: &[Option<Score>],
) -> Result<Option<String>, Error> {
    if solutions.len() < 2 {
        return Err(Error::Precondition(
            "A_ens_planner requires at least 2 solutions for ensembling",
        ));
    }
    if plans.len() != scores.len() {
        return Err(Error::Precondition("A_ens_planner requires one score per plan"));
    }
    let solutions = solutions.iter().map(|it| it.content.as_str()).collect();
    let text = ctx.ask(&EnsPlanner { solutions, plans, scores }).await?.reply.text;
    Ok(Some(text.trim().to_owned()).filter(|plan| !plan.is_empty()))
}
