use serde::Serialize;

use crate::error::Error;
use crate::models::{AgentType, RetrievedModel, SolutionPhase, SolutionScript};
use crate::prompt::Variables;
use crate::reply::try_extract_code;
use crate::roles::{Role, coding_variables, excerpt};
use crate::step::RunCtx;

/// A_init: writes a simple solution around one retrieved model.
#[derive(Debug, Serialize)]
pub(crate) struct Init<'a> {
    pub(crate) task_description: &'a str,
    pub(crate) model_name: &'a str,
    pub(crate) example_code: &'a str,
}

impl Role for Init<'_> {
    const AGENT: AgentType = AgentType::Init;
    const STEP: &'static str = "init";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("task_description", self.task_description.to_owned());
        variables.insert("model_name", self.model_name.to_owned());
        variables.insert("example_code", self.example_code.to_owned());
        variables
    }
}

/// Writes a candidate for `model`; an empty placeholder if the agent wrote none.
pub async fn generate_candidate(
    ctx: &RunCtx<'_>,
    model: &RetrievedModel,
) -> Result<SolutionScript, Error> {
    let asked = ctx
        .ask(&Init {
            task_description: &ctx.task().description,
            model_name: &model.model_name,
            example_code: &model.example_code,
        })
        .await?;
    let script = match try_extract_code(&asked.reply.text) {
        Some(code) => SolutionScript::new(code, SolutionPhase::Init, asked.at),
        None => {
            ctx.warn(format!("A_init wrote no code: {}", excerpt(&asked.reply.text)))?;
            SolutionScript::placeholder(SolutionPhase::Init, asked.at)
        }
    };
    Ok(SolutionScript { source_model: Some(model.model_name.clone()), ..script })
}
