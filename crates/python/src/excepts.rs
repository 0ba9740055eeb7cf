//! Which `except` clauses of a script hide the errors it should show.

use std::ops::ControlFlow;

use tree_sitter::Node;

use crate::reading::{Below, Reading, children, line, read, text, walk};

/// One warning per bare `except:`, and per `except Exception:` or `except BaseException:` (also
/// with `as name`) that does nothing but `pass`.
///
/// Advisory: a script may have its reasons. A source that does not parse has no warnings.
pub fn error_masking(source: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let Reading::Parsed(tree) = read(source) else { return warnings };
    walk(tree.root_node(), |node, _| {
        if node.kind() == "except_clause"
            && let Some(clause) = masks(source, node)
        {
            warnings.push(format!("line {}: {clause} hides errors", line(node)));
        }
        ControlFlow::Continue(Below::Visit)
    });
    warnings
}

fn masks(source: &str, clause: Node<'_>) -> Option<String> {
    let Some(value) = clause.child_by_field_name("value") else {
        return Some(String::from("bare `except:`"));
    };
    // The grammar has two shapes for `except E as name`; in one the pattern holds the class.
    let class = if value.kind() == "as_pattern" { value.child(0)? } else { value };
    let class = text(source, class);
    let body = children(clause).into_iter().rfind(|child| child.kind() == "block")?;
    let only_pass = children(body)
        .iter()
        .filter(|child| child.is_named() && !child.is_extra())
        .all(|statement| statement.kind() == "pass_statement");
    (matches!(class, "Exception" | "BaseException") && only_pass)
        .then(|| format!("`except {class}: pass`"))
}
