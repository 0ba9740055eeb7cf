//! A_data: takes in the tables that the solution leaves unused, and names those that nobody knows
//! how to use.

use mle_star_agent::Reply;
use serde::Deserialize;

use crate::Playbook;
use crate::data_section::with_joins;
use crate::roles::code;
use crate::script::{Kind, Script};
use crate::shape::Join;

#[derive(Deserialize)]
pub(crate) struct Input {
    initial_solution: String,
}

const ALL_USED: &str = "All the provided information is used.";

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Reply {
    let is_unused = |path: &str| !input.initial_solution.contains(path);
    let joins: Vec<&Join> =
        playbook.shape.joins.iter().filter(|join| is_unused(&join.source.path)).collect();
    if let Some(script) = taking_in(&input.initial_solution, &joins) {
        return code(&script.to_string());
    }
    let others = playbook.shape.others.iter().map(String::as_str);
    let others = joins.iter().map(|join| join.source.path.as_str()).chain(others);
    let unused: Vec<String> =
        others.filter(|path| is_unused(path)).map(|path| format!("`{path}`")).collect();
    if unused.is_empty() {
        return Reply::text(ALL_USED);
    }
    // The search keeps a script only for this sentence, and there is no other script to offer.
    Reply::text(format!(
        "The playbook has no rule for using {}. Of what it can use: {ALL_USED}",
        unused.join(", ")
    ))
}

/// The script with further tables in its data section, if it is one of ours.
fn taking_in(solution: &str, joins: &[&Join]) -> Option<Script> {
    let mut script = Script::parse(solution);
    if joins.is_empty() || !script.is_ours() {
        return None;
    }
    let section = script.sections.iter_mut().find(|it| it.kind == Kind::Data)?;
    section.text = with_joins(&section.text, joins)?;
    Some(script)
}
