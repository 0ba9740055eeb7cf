use mle_star_agent::Reply;
use serde::Serialize;

use crate::error::Error;
use crate::event::Event;
use crate::models::{AgentType, RetrievedModel, RetrieverOutput, WebSearch};
use crate::prompt::Variables;
use crate::reply::{json_values, parse_structured};
use crate::roles::{Role, metric_variables};
use crate::step::{Asked, RunCtx};

/// A_retriever: searches the web for models that suit the task.
#[derive(Debug, Serialize)]
pub(crate) struct Retriever<'a> {
    pub(crate) task_description: &'a str,
    #[serde(rename = "M")]
    pub(crate) models_wanted: usize,
}

impl Role for Retriever<'_> {
    const AGENT: AgentType = AgentType::Retriever;
    const STEP: &'static str = "retriever";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = metric_variables(ctx);
        variables.insert("task_description", self.task_description.to_owned());
        variables.insert("M", self.models_wanted.to_string());
        variables
    }
}

/// Finds at most M models, at least one.
pub async fn retrieve_models(ctx: &RunCtx<'_>) -> Result<Vec<RetrievedModel>, Error> {
    let models_wanted = ctx.config().num_retrieved_models;
    let role = Retriever { task_description: &ctx.task().description, models_wanted };
    if ctx.config().web_search == WebSearch::Off {
        ctx.warn("web_search is off: A_retriever names models from its own knowledge")?;
    }
    let Asked { reply, no_answer, .. } = ctx.ask(&role).await?;
    if let Some(reason) = no_answer {
        return Err(Error::NoAnswer { agent: AgentType::Retriever, reason });
    }

    let (mut models, blank): (Vec<_>, Vec<_>) = parse_retriever_output(&reply)?
        .into_iter()
        .partition(|it| !it.model_name.trim().is_empty() && !it.example_code.trim().is_empty());
    if !blank.is_empty() {
        ctx.warn(format!("dropped {} retrieved models without name or code", blank.len()))?;
    }
    if models.is_empty() {
        return Err(Error::NoModels);
    }
    if models.len() < models_wanted {
        ctx.warn(format!("A_retriever found {} models of {models_wanted}", models.len()))?;
    }
    models.truncate(models_wanted);
    ctx.tell(Event::Retrieved {
        models: models.iter().map(|model| model.model_name.clone()).collect(),
    })?;
    Ok(models)
}

/// Reads the models out of a reply.
pub fn parse_retriever_output(reply: &Reply) -> Result<Vec<RetrievedModel>, Error> {
    if let Some(output) = parse_structured::<RetrieverOutput>(reply, Some("models")) {
        return Ok(output.models);
    }
    // An empty list fails the schema, but it is an answer: there are no models.
    let empty = |value: serde_json::Value| {
        value.get("models").unwrap_or(&value).as_array().is_some_and(Vec::is_empty)
    };
    if reply.structured.clone().into_iter().chain(json_values(&reply.text)).any(empty) {
        return Err(Error::NoModels);
    }
    Err(Error::Retriever { excerpt: reply.text.chars().take(500).collect() })
}
