//! A_leakage: what the parser finds, and the corrections that need no judgement.

use mle_star_agent::Reply;
use serde::Deserialize;
use serde_json::json;

use crate::leaks::{correction, leaks};
use crate::roles::{code, structured};

#[derive(Deserialize)]
pub(crate) struct Detection {
    code: String,
}

#[derive(Deserialize)]
pub(crate) struct Correction {
    code: String,
    code_block: String,
}

pub(crate) fn detect(input: &Detection) -> Reply {
    let found = leaks(&input.code);
    let mut answers: Vec<_> = found
        .iter()
        .map(|leak| json!({ "leakage_status": "Yes Data Leakage", "code_block": leak.block }))
        .collect();
    if answers.is_empty() {
        let block = preprocessing(&input.code);
        answers.push(json!({ "leakage_status": "No Data Leakage", "code_block": block }));
    }
    structured(json!({ "answers": answers }))
}

pub(crate) fn correct(input: &Correction) -> Reply {
    match correction(&input.code, &input.code_block) {
        Some(corrected) => code(&corrected),
        None => {
            let found = leaks(&input.code);
            let leak = found.iter().find(|it| it.block.trim() == input.code_block.trim());
            let why = leak.map_or("nothing known", |it| it.why);
            Reply::text(format!(
                "No rule of the playbook corrects this leak ({why}), so the block stays."
            ))
        }
    }
}

/// The first piece of the script that reads like preprocessing, else the first piece.
fn preprocessing(source: &str) -> String {
    let blocks = mle_star_python::blocks(source);
    let likely = blocks.iter().find(|it| it.text.contains(".fit") || it.text.contains("read_csv"));
    likely.or(blocks.first()).map_or_else(String::new, |it| it.text.to_owned())
}
