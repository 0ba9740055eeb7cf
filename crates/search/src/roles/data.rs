use serde::Serialize;

use crate::error::Error;
use crate::event::Event;
use crate::models::{AgentType, SolutionScript};
use crate::prompt::Variables;
use crate::reply::try_extract_code;
use crate::roles::{Role, coding_variables, excerpt};
use crate::step::{Asked, RunCtx};

/// What the agent says when nothing is left unused.
const ALL_USED: &str = "all the provided information is used.";

/// A_data: makes the first solution use all the data there is.
#[derive(Debug, Serialize)]
pub(crate) struct Data<'a> {
    pub(crate) initial_solution: &'a str,
    pub(crate) task_description: &'a str,
}

impl Role for Data<'_> {
    const AGENT: AgentType = AgentType::Data;
    const STEP: &'static str = "data";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("initial_solution", self.initial_solution.to_owned());
        variables.insert("task_description", self.task_description.to_owned());
        variables
    }
}

/// The script, or one that also uses what it left unused.
pub async fn check_data_usage(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
) -> Result<SolutionScript, Error> {
    if script.content.trim().is_empty() {
        return Err(Error::Precondition("A_data requires a non-empty script"));
    }
    if ctx.task().description.trim().is_empty() {
        return Err(Error::Precondition("A_data requires a task description"));
    }
    let role =
        Data { initial_solution: &script.content, task_description: &ctx.task().description };
    let Asked { reply, at, .. } = ctx.ask(&role).await?;
    let revised = parse_data_agent_response(&reply.text, script);
    if revised.is_none() {
        ctx.warn(format!("the reply of A_data could not be read: {}", excerpt(&reply.text)))?;
    }
    let mut revised = revised.unwrap_or_else(|| script.clone());
    let changed = revised.content != script.content;
    if changed {
        revised.created_at = at;
    }
    ctx.tell(Event::DataUsageChecked { changed })?;
    Ok(revised)
}

/// Reads the reply: the original, a revised script, or `None` if it is neither.
pub fn parse_data_agent_response(reply: &str, original: &SolutionScript) -> Option<SolutionScript> {
    if reply.to_lowercase().contains(ALL_USED) {
        return Some(original.clone());
    }
    try_extract_code(reply).map(|code| original.with_content(code, original.created_at))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::models::SolutionPhase;

    /// REQ-SF-028, REQ-SF-039
    #[test]
    fn a_confirmation_keeps_the_script_and_code_replaces_it() {
        let original = SolutionScript::new("x = 1", SolutionPhase::Merged, Timestamp::UNIX_EPOCH);
        let parse = |reply| parse_data_agent_response(reply, &original);
        assert_eq!(parse("ALL the provided information is used."), Some(original.clone()));
        assert_eq!(
            parse("```python\nx = 2\n```"),
            Some(SolutionScript { content: "x = 2".to_owned(), ..original.clone() })
        );
        assert_eq!(parse("Looks good to me!"), None);
    }
}
