//! A_extractor: the block with the largest effect that was not refined before, and a first plan.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;
use serde_json::json;

use crate::ideas::{Block, blocks, ideas, key_of};
use crate::roles::structured;
use crate::roles::summarize::effects;
use crate::script::Script;
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    solution_script: String,
    ablation_summary: String,
    previous_code_blocks: Vec<String>,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input, path: usize) -> Result<Reply, AgentError> {
    let script = Script::parse(&input.solution_script);
    let before: Vec<String> =
        input.previous_code_blocks.iter().filter_map(|text| key_of(text)).collect();
    let effects = effects(&input.ablation_summary);
    let effect = |block: &Block| {
        // What one model is worth is worth knowing for the list of models, too: where it is much,
        // another one may be.
        let of_block = |title: &str| match block.key.as_str() {
            "features" => title.starts_with("features: "),
            "members" => title.starts_with("model: "),
            key => title == key,
        };
        let sizes = effects.iter().filter(|(title, _)| of_block(title)).map(|(_, it)| it.abs());
        sizes.fold(0.0, f64::max)
    };
    let possible = blocks(&script).into_iter().filter_map(|block| {
        let plan = ideas(playbook, &block.text).into_iter().next()?.1;
        Some((block, plan))
    });
    let mut possible: Vec<(Block, String)> = possible.collect();
    if possible.is_empty() {
        return Err(no_answer("the playbook has no idea for any block of this script"));
    }
    // The sort is stable: where nothing was measured, the order of `blocks` stays.
    possible.sort_by(|a, b| effect(&b.0).total_cmp(&effect(&a.0)));
    let (old, mut new): (Vec<_>, Vec<_>) =
        possible.into_iter().partition(|(block, _)| before.contains(&block.key));
    if !new.is_empty() {
        // Paths begin with the same solution; they are to end with different ones.
        let turn = path % new.len();
        new.rotate_left(turn);
    }
    new.extend(old);
    let plans: Vec<_> = new
        .into_iter()
        .take(1)
        .map(|(block, plan)| json!({ "code_block": block.text, "plan": plan }))
        .collect();
    Ok(structured(json!({ "plans": plans })))
}
