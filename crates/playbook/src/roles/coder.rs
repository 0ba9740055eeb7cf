//! A_coder: carries out a plan of ours on a block of ours.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;

use crate::ideas::{apply, tag_of};
use crate::roles::code;
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    code_block: String,
    plan: String,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let tag = tag_of(&input.plan).ok_or_else(|| no_answer("the plan is none of the playbook's"))?;
    let refined = apply(&playbook.catalogue, &input.code_block, tag);
    let refined = refined.ok_or_else(|| no_answer(format!("`{tag}` does not fit this block")))?;
    Ok(code(&refined))
}
