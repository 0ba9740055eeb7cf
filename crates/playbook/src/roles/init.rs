//! A_init: a complete script around one recipe.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;

use crate::assembly::solution;
use crate::catalogue::{Piece, Shelf};
use crate::roles::code;
use crate::roles::retriever::model_name;
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    model_name: String,
    example_code: String,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let recipes = || playbook.catalogue.on(Shelf::Recipes);
    let named = |recipe: &&Piece| {
        model_name(recipe) == input.model_name
            || input.example_code.contains(&format!("def model_{}(", recipe.name))
    };
    // Someone else's model has no recipe here; the best one there is must do.
    let recipe = recipes().find(named).or_else(|| recipes().next());
    let recipe = recipe.ok_or_else(|| no_answer("no recipe of the playbook fits this data"))?;
    Ok(code(&solution(playbook, recipe)?.to_string()))
}
