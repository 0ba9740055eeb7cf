//! A_data: says which tables the solution leaves unused.

use mle_star_agent::Reply;
use serde::Deserialize;

use crate::Playbook;

#[derive(Deserialize)]
pub(crate) struct Input {
    initial_solution: String,
}

const ALL_USED: &str = "All the provided information is used.";

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Reply {
    let unused = playbook.shape.others.iter();
    let unused = unused.filter(|path| !input.initial_solution.contains(path.as_str()));
    let unused: Vec<String> = unused.map(|path| format!("`{path}`")).collect();
    if unused.is_empty() {
        return Reply::text(ALL_USED);
    }
    // The search keeps a script only for this sentence, and there is no other script to offer.
    Reply::text(format!(
        "The playbook has no rule for using {}. Of what it can use: {ALL_USED}",
        unused.join(", ")
    ))
}
