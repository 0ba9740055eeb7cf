//! One file per role: what it is given, and what the playbook replies.

pub(crate) mod ablation;
pub(crate) mod coder;
pub(crate) mod data;
pub(crate) mod debugger;
pub(crate) mod ens_planner;
pub(crate) mod ensembler;
pub(crate) mod extractor;
pub(crate) mod init;
pub(crate) mod leakage;
pub(crate) mod merger;
pub(crate) mod planner;
pub(crate) mod retriever;
pub(crate) mod summarize;
pub(crate) mod test;

use mle_star_agent::Reply;
use serde_json::Value;

/// Code as agents send it.
fn code(code: &str) -> Reply {
    Reply::text(format!("```python\n{}\n```\n", code.trim_end()))
}

/// A structured reply, in both forms.
fn structured(value: Value) -> Reply {
    Reply { structured: Some(value.clone()), ..Reply::text(value.to_string()) }
}

#[cfg(test)]
mod tests;
