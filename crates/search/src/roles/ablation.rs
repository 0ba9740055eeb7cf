use serde::Serialize;

use crate::error::Error;
use crate::models::{AgentType, SolutionPhase, SolutionScript};
use crate::prompt::Variables;
use crate::reply::try_extract_code;
use crate::roles::{Role, coding_variables, excerpt, numbered};
use crate::step::RunCtx;

/// A_abl: writes a study of what each part of the solution contributes.
#[derive(Debug, Serialize)]
pub(crate) struct Ablation<'a> {
    pub(crate) solution_script: &'a str,
    pub(crate) previous_ablations: &'a [String],
}

impl Role for Ablation<'_> {
    const AGENT: AgentType = AgentType::Ablation;
    const STEP: &'static str = "ablation";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("solution_script", self.solution_script.to_owned());
        variables.insert(
            "previous_ablations",
            numbered(
                "Previous ablation studies",
                "Study",
                self.previous_ablations,
                "ablation_summary",
            ),
        );
        variables
    }
}

/// Writes the study `a_t`; `None` if the agent wrote no code.
pub async fn invoke_ablation(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    previous_summaries: &[String],
) -> Result<Option<SolutionScript>, Error> {
    if solution.content.trim().is_empty() || !solution.is_executable {
        return Err(Error::Precondition("A_abl requires an executable solution"));
    }
    let asked = ctx
        .ask(&Ablation {
            solution_script: &solution.content,
            previous_ablations: previous_summaries,
        })
        .await?;
    let Some(code) = try_extract_code(&asked.reply.text) else {
        ctx.warn(format!("A_abl wrote no code: {}", excerpt(&asked.reply.text)))?;
        return Ok(None);
    };
    Ok(Some(SolutionScript::new(code, SolutionPhase::Refined, asked.at)))
}
