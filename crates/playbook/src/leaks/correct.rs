//! Corrections that need no judgement.

use tree_sitter::Node;

use super::syntax::{all, called, children, names, positional, receiver, text};

/// The block without its leak, if there is a rule for it.
///
/// There is one: a held-out or test table is transformed with what was learnt before, instead of
/// being fitted again. Everything else would have to move statements of the script.
pub(crate) fn correction(script: &str, block: &str) -> Option<String> {
    let tree = mle_star_python::tree(block.trim())?;
    let source = block.trim();
    let assignment = all(tree.root_node()).into_iter().find(|it| it.kind() == "assignment")?;
    let call = assignment.child_by_field_name("right").filter(|it| it.kind() == "call")?;
    if called(source, call) != "fit_transform" {
        return None;
    }
    let object = receiver(call).filter(|it| it.kind() == "identifier")?;
    let object = text(source, object);
    // Only if the same object was fitted on something else before.
    let before = script.get(..script.find(source)?)?;
    let fitted = format!("{object}.fit");
    if !before.contains(&fitted) {
        return refit(script, source, assignment, call, object);
    }
    Some(block.replacen(".fit_transform(", ".transform(", 1))
}

/// `x = scaler.fit_transform(x)` before `a, b, c, d = train_test_split(x, y)`: the statement alone
/// cannot be corrected, but the scaler can be fitted on the rows that the split will choose.
fn refit(
    script: &str,
    source: &str,
    assignment: Node<'_>,
    call: Node<'_>,
    object: &str,
) -> Option<String> {
    let left = assignment.child_by_field_name("left")?;
    let [name] = names(source, left).try_into().ok()?;
    let argument = text(source, *positional(call).first()?);
    let tree = mle_star_python::tree(script)?;
    let split = children(tree.root_node()).into_iter().find_map(|statement| {
        let inner = children(statement).into_iter().find(|it| it.kind() == "assignment")?;
        let right = inner.child_by_field_name("right")?;
        let splits = right.kind() == "call" && called(script, right) == "train_test_split";
        splits.then_some(right)
    })?;
    if text(script, *positional(split).first()?) != name {
        return None;
    }
    // The same options give the same rows: `random_state` must be among them.
    let options = children(split.child_by_field_name("arguments")?);
    let options: Vec<&str> = options
        .into_iter()
        .filter(|it| it.kind() == "keyword_argument")
        .map(|it| text(script, it))
        .collect();
    let known = |it: &&str| {
        it.starts_with("random_state=")
            || it.starts_with("test_size=")
            || it.starts_with("shuffle=")
    };
    if !options.iter().any(|it| it.starts_with("random_state=")) || !options.iter().all(known) {
        return None;
    }
    Some(format!(
        "{object}.fit(train_test_split({argument}, {})[0])\n{name} = {object}.transform({argument})",
        options.join(", ")
    ))
}
