//! A_retriever: the first M recipes that fit.

use mle_star_agent::Reply;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Playbook;
use crate::catalogue::{Piece, Shelf};
use crate::roles::structured;

#[derive(Deserialize)]
pub(crate) struct Input {
    #[serde(rename = "M")]
    models_wanted: usize,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Reply {
    let recipes = playbook.catalogue.on(Shelf::Recipes).take(input.models_wanted);
    let models: Vec<Value> = recipes
        .map(|recipe| {
            json!({ "model_name": model_name(recipe), "example_code": recipe.as_section().quoted() })
        })
        .collect();
    structured(json!({ "models": models }))
}

/// What people see, and how the recipe is found again.
pub(crate) fn model_name(recipe: &Piece) -> &str {
    if recipe.title.is_empty() { &recipe.name } else { &recipe.title }
}
