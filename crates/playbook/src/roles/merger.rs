//! A_merger: the base with the features and models of the reference worked in.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;

use crate::ideas::{apply, ideas};
use crate::roles::code;
use crate::script::{Kind, Script, Section};
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    base_code: String,
    reference_code: String,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let mut base = Script::parse(&input.base_code);
    let reference = Script::parse(&input.reference_code);
    if !base.is_ours() || !reference.is_ours() {
        return Err(no_answer("the playbook merges only scripts that it wrote"));
    }
    let new = |section: &&Section| {
        matches!(section.kind, Kind::Features | Kind::Model)
            && section.name.as_deref().is_some_and(|name| !base.has(section.kind, name))
    };
    let added: Vec<Section> = reference.sections.iter().filter(new).cloned().collect();
    if added.is_empty() {
        return Ok(code(&varied(playbook, &base).to_string()));
    }
    for section in added {
        base.insert(section);
    }
    base.relist();
    Ok(code(&base.to_string()))
}

/// The script with another way to blend: there was nothing to add, but something can be tried.
fn varied(playbook: &Playbook, script: &Script) -> Script {
    let Some(blend) = script.first(Kind::Blend) else { return script.clone() };
    let first = ideas(playbook, blend.quoted()).into_iter().next();
    let new = first.and_then(|(tag, _)| apply(&playbook.catalogue, blend.quoted(), &tag));
    match new {
        Some(new) => Script::parse(&script.to_string().replacen(blend.quoted(), &new, 1)),
        None => script.clone(),
    }
}
