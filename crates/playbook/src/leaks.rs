//! Finds data leakage in any script, with the parser.
//!
//! `rows` follows the rows of the data through the script: which names hold all labelled rows,
//! which the training part of a split, which the held-out part, which the test rows. A leak is a
//! place where something is learnt from rows that it must not know:
//!
//! - a scaler, imputer, encoder, selector or resampler fitted on all rows, before they are split;
//! - a statistic or an aggregate of all rows that becomes a feature before they are split;
//! - anything fitted on held-out or test rows, or on training and test rows together;
//! - a function of the script that does so with a parameter, and is given such rows;
//! - rows that are repeated before they are split;
//! - a model that is fitted on rows it is then judged by;
//! - the target, or something computed from it, among the features.
//!
//! What cannot be followed is not reported: a clean script must never be called leaky. Absent on
//! purpose: groups that a split divides, and leaks across files.

mod correct;
mod rows;
mod syntax;

pub(crate) use correct::correction;
use rows::{Culprit, Flow};

/// A place where data leaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The statements, whole lines, exactly as they stand in the script.
    pub block: String,
    /// What is wrong with them, in a few words.
    pub why: &'static str,
}

/// The leaks of a script, in its order; none for a script that does not parse.
pub fn leaks(source: &str) -> Vec<Leak> {
    culprits(source).into_iter().map(|it| it.leak).collect()
}

fn culprits(source: &str) -> Vec<Culprit> {
    let Some(tree) = mle_star_python::tree(source) else { return Vec::new() };
    walked(source, &tree).found()
}

/// A script that was walked through twice: the first pass finds out where rows are split and what
/// the target is, the second judges.
fn walked<'a>(source: &'a str, tree: &'a tree_sitter::Tree) -> Flow<'a> {
    let mut flow = Flow::new(source);
    flow.visit(tree.root_node());
    let mut flow = flow.again();
    flow.visit(tree.root_node());
    flow
}
