//! Whether a reply without a code fence is a program.

use std::ops::ControlFlow;

use tree_sitter::Node;

use crate::reading::{Below, Reading, children, read, text, walk};

/// Whether an unfenced reply can be taken for a program: it parses once dedented, and at least one
/// of its top-level statements does something.
///
/// Much prose is Python by accident: `Sorry` is a name, `Note: done` an annotation, `continue` a
/// statement and `done (mostly)` a call. None of these alone makes a program.
pub fn is_plausible_program(source: &str) -> bool {
    let source = dedent(source);
    let Reading::Parsed(tree) = read(&source) else { return false };
    children(tree.root_node()).into_iter().any(|statement| does_something(&source, statement))
}

fn does_something(source: &str, statement: Node<'_>) -> bool {
    match statement.kind() {
        "expression_statement" => {
            children(statement).into_iter().any(|expression| expression_does(source, expression))
        }
        "assert_statement" | "raise_statement" => statement.named_child_count() > 0,
        "comment" | "line_continuation" | ";" | "pass_statement" | "break_statement"
        | "continue_statement" | "return_statement" | "global_statement" | "nonlocal_statement"
        | "print_statement" => false,
        // Imports, definitions, control flow, `with`, `match` and `del`.
        _ => true,
    }
}

fn expression_does(source: &str, expression: Node<'_>) -> bool {
    let mut does = false;
    walk(expression, |node, _| {
        does = match node.kind() {
            "assignment" => node.child_by_field_name("right").is_some(),
            "augmented_assignment" | "named_expression" => true,
            "call" => is_written_as_call(source, node),
            // What a string holds is text, even where a call is filled in.
            "string" => return ControlFlow::Continue(Below::Skip),
            _ => false,
        };
        if does { ControlFlow::Break(()) } else { ControlFlow::Continue(Below::Visit) }
    });
    does
}

/// Programmers put no space before a call's parenthesis, except out of habit after `print`.
fn is_written_as_call(source: &str, call: Node<'_>) -> bool {
    let function = call.child_by_field_name("function");
    let arguments = call.child_by_field_name("arguments");
    let (Some(function), Some(arguments)) = (function, arguments) else { return false };
    function.end_byte() == arguments.start_byte() || text(source, function) == "print"
}

/// The text with the common indentation of its non-blank lines removed.
///
/// As in Python's `textwrap.dedent`, indentation is common only if it is the same characters: a
/// tab is not eight spaces.
pub fn dedent(source: &str) -> String {
    let margin = source
        .split('\n')
        .filter(|line| !line.trim().is_empty())
        .map(indentation)
        .reduce(common_prefix)
        .unwrap_or_default();
    let mut dedented = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        // A blank line may be shorter than the margin; then all its white space is margin.
        let rest =
            line.strip_prefix(margin).unwrap_or_else(|| line.trim_start_matches([' ', '\t']));
        dedented.push_str(rest);
    }
    dedented
}

fn indentation(line: &str) -> &str {
    let text = line.trim_start_matches([' ', '\t']);
    line.strip_suffix(text).unwrap_or_default()
}

fn common_prefix<'a>(one: &'a str, other: &str) -> &'a str {
    let length = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.get(..length).unwrap_or_default()
}
