//! A_test: the script that writes the submission, on all training rows.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;
use serde_json::json;

use crate::assembly::{submitting, subsampling};
use crate::roles::{code, structured};
use crate::script::Script;
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    final_solution: String,
}

#[derive(Deserialize)]
pub(crate) struct Block {
    code_block_with_subsampling: String,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let script = Script::parse(&input.final_solution);
    if !script.is_ours() {
        return Err(no_answer("the playbook submits only what it wrote"));
    }
    Ok(code(&submitting(playbook, &script)?.to_string()))
}

pub(crate) fn extract_subsampling(input: &Input) -> Reply {
    match subsampling(&input.final_solution) {
        Some(block) => code(block),
        None => Reply::text("None"),
    }
}

pub(crate) fn remove_subsampling(input: &Block) -> Reply {
    // The block does nothing else, so nothing takes its place.
    match subsampling(&input.code_block_with_subsampling) {
        Some(_) => Reply::text("```python\n\n```"),
        None => code(&input.code_block_with_subsampling),
    }
}

/// The playbook has read no discussion, so it cannot have copied one.
pub(crate) fn contamination() -> Reply {
    structured(json!({ "verdict": "Novel" }))
}
