use serde::Serialize;

use crate::error::Error;
use crate::models::{AgentType, ExtractorOutput, SolutionScript};
use crate::prompt::Variables;
use crate::reply::parse_structured;
use crate::roles::{Role, excerpt, metric_variables, numbered};
use crate::step::RunCtx;

const NOT_FOUND: &str = "The previously extracted code block was not found in the solution. \
                         Please extract the code block exactly as it appears in the script.";

/// A_extractor: picks the block to refine and the first plan for it.
#[derive(Debug, Serialize)]
pub(crate) struct Extractor<'a> {
    pub(crate) solution_script: &'a str,
    pub(crate) ablation_summary: &'a str,
    pub(crate) previous_code_blocks: &'a [String],
    pub(crate) block_was_not_found: bool,
}

impl Role for Extractor<'_> {
    const AGENT: AgentType = AgentType::Extractor;
    const STEP: &'static str = "extractor";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = metric_variables(ctx);
        variables.insert("solution_script", self.solution_script.to_owned());
        variables.insert("ablation_summary", self.ablation_summary.to_owned());
        variables.insert(
            "previous_code_blocks",
            numbered(
                "Code blocks improved before",
                "Code block",
                self.previous_code_blocks,
                "code_block",
            ),
        );
        let note = if self.block_was_not_found { NOT_FOUND } else { "" };
        variables.insert("retry_note", note.to_owned());
        variables
    }
}

/// What the extractor is told about its earlier tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractorReply {
    /// This is the first, or the last could not be read.
    Fresh,
    /// The last quoted a block that is not in the script.
    NotFound,
}

/// Proposes blocks with plans; `None` if the reply could not be read.
pub async fn invoke_extractor(
    ctx: &RunCtx<'_>,
    summary: &str,
    solution: &SolutionScript,
    previous_blocks: &[String],
    last: ExtractorReply,
) -> Result<Option<ExtractorOutput>, Error> {
    if summary.trim().is_empty() || solution.content.trim().is_empty() {
        return Err(Error::Precondition("A_extractor requires a summary and a solution"));
    }
    let reply = ctx
        .ask(&Extractor {
            solution_script: &solution.content,
            ablation_summary: summary,
            previous_code_blocks: previous_blocks,
            block_was_not_found: last == ExtractorReply::NotFound,
        })
        .await?
        .reply;
    let output = parse_structured(&reply, Some("plans"));
    if output.is_none() {
        ctx.warn(format!("the reply of A_extractor could not be read: {}", excerpt(&reply.text)))?;
    }
    Ok(output)
}
