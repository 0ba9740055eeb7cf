//! Whether a source parses as Python 3, and where it first does not.

use std::fmt;
use std::ops::ControlFlow;

use tree_sitter::{Node, Tree};

use crate::lexical::{self, Problem};
use crate::reading::{Below, Reading, children, read, text, walk};

/// Whether `source` parses as Python 3; the first error's place and line if not.
///
/// A source that cannot be read within the [bounds](crate#bounds) passes: the interpreter will
/// have the last word anyway, and a wrong refusal would cost more than a failed run.
pub fn check_syntax(source: &str) -> Result<(), SyntaxError> {
    match read(source) {
        Reading::Broken(error) => Err(error),
        Reading::Parsed(_) | Reading::Unread => Ok(()),
    }
}

/// The first place where a source is not Python 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character within the line, counted from 1.
    pub column: usize,
    /// The line's text; a very long one is cut, and ends in `…`.
    pub text: String,
    /// What is wrong, in CPython's words where they fit.
    pub message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.message)?;
        match self.text.trim() {
            "" => Ok(()),
            text => write!(formatter, ": `{text}`"),
        }
    }
}

impl std::error::Error for SyntaxError {}

impl SyntaxError {
    pub(crate) fn at(source: &str, problem: &Problem) -> Self {
        /// How much of a line a message can carry and still be read.
        const LONGEST_TEXT: usize = 200;
        let before = source.get(..problem.offset).unwrap_or(source);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let full = source.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let mut text: String = full.chars().take(LONGEST_TEXT).collect();
        if text.len() < full.len() {
            text.push('…');
        }
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(start..).unwrap_or_default().chars().count() + 1,
            text,
            message: problem.message.clone(),
        }
    }
}

/// The first thing in a tree that Python would refuse: what the parser could not place, and what
/// tree-sitter's grammar allows although Python does not. `lines` is where the code of each logical
/// line begins.
pub(crate) fn first_refusal(source: &str, tree: &Tree, lines: &[usize]) -> Option<Problem> {
    let mut first = None;
    walk(tree.root_node(), |node, ancestors| {
        let found = if node.is_error() || node.is_missing() {
            Some((node.start_byte(), "invalid syntax"))
        } else {
            refusal(source, node, ancestors)
                .or_else(|| broken_line(node, ancestors, lines))
                .or_else(|| missing_line_end(node))
        };
        match found {
            Some((offset, message)) => {
                first = Some(Problem { offset, message: message.to_owned() });
                ControlFlow::Break(())
            }
            None => ControlFlow::Continue(Below::Visit),
        }
    });
    first
}

/// Where something is wrong, and what.
type Refusal = (usize, &'static str);

fn refusal(source: &str, node: Node<'_>, ancestors: &[Node<'_>]) -> Option<Refusal> {
    let parent = ancestors.last().map_or("", |node| node.kind());
    let has = |kinds: &[&str]| children(node).iter().any(|child| kinds.contains(&child.kind()));
    let message = match node.kind() {
        // `print >> file, x` is a tuple to Python 3, odd but sound.
        "print_statement" if !has(&["chevron"]) => "missing parentheses in call to 'print'",
        "exec_statement" => "missing parentheses in call to 'exec'",
        "<>" => "invalid syntax",
        "block" if children(node).iter().all(Node::is_extra) => "expected an indented block",
        "try_statement" if !has(&["except_clause", "finally_clause"]) => {
            "expected 'except' or 'finally' block"
        }
        "except_clause" if has(&[","]) => "multiple exception types must be parenthesized",
        "raise_statement" if has(&["expression_list"]) => "invalid syntax",
        "import_statement" | "import_from_statement" | "future_import_statement"
            if children(node).last().is_some_and(|child| child.kind() == ",") =>
        {
            "trailing comma not allowed without surrounding parentheses"
        }
        "tuple_pattern"
            if matches!(parent, "parameters" | "lambda_parameters" | "default_parameter") =>
        {
            "parameters cannot be parenthesized"
        }
        "parameters" | "lambda_parameters" => return parameter_order(node),
        "argument_list" => return argument_order(node),
        "named_expression" if !may_hold_walrus(parent) => "invalid syntax",
        "as_pattern" if !may_hold_as(ancestors) => "invalid syntax",
        "identifier" if is_keyword(text(source, node)) => "invalid syntax",
        "integer" | "float" => number(text(source, node))?,
        "string_start" if !is_string_start(text(source, node)) => "invalid string prefix",
        _ => return None,
    };
    Some((node.start_byte(), message))
}

fn is_string_start(text: &str) -> bool {
    let prefix = text.trim_end_matches(['"', '\'']);
    prefix.is_empty() || lexical::is_string_prefix(prefix)
}

/// A line end in the middle of a statement. Where a line end means nothing to it, tree-sitter's
/// grammar skips it, and reads `x =` and the line below as one.
fn broken_line(node: Node<'_>, ancestors: &[Node<'_>], lines: &[usize]) -> Option<Refusal> {
    let start = node.start_byte();
    // Only what is read first on a line counts, and the root of an empty tree is not read.
    if ancestors.is_empty() || node.child_count() > 0 || node.is_extra() {
        return None;
    }
    let line = lines.binary_search(&start).ok()?;
    let begins = ancestors
        .iter()
        .rev()
        .take_while(|ancestor| ancestor.start_byte() == start)
        .chain([&node])
        .any(|node| begins_line(node.kind()));
    // The line above is the one that breaks off.
    let above = line.checked_sub(1).and_then(|line| lines.get(line)).copied().unwrap_or(start);
    (!begins).then_some((above, "invalid syntax"))
}

/// Two statements on one line with nothing between them. tree-sitter mends this with a line end of
/// its own, which is no node: it shows only as an error that no child accounts for.
fn missing_line_end(node: Node<'_>) -> Option<Refusal> {
    let children = if node.has_error() { children(node) } else { return None };
    if children.iter().any(Node::has_error) {
        return None;
    }
    let second = children.windows(2).find_map(|pair| match pair {
        [one, two] if one.end_position().row == two.start_position().row && !two.is_extra() => {
            (one.is_named() && two.is_named()).then_some(*two)
        }
        _ => None,
    });
    Some((second.unwrap_or(node).start_byte(), "invalid syntax"))
}

fn begins_line(kind: &str) -> bool {
    kind.ends_with("_statement")
        || kind.ends_with("_definition")
        || matches!(
            kind,
            "elif_clause"
                | "else_clause"
                | "except_clause"
                | "finally_clause"
                | "case_clause"
                | "decorator"
        )
}

fn parameter_order(node: Node<'_>) -> Option<Refusal> {
    let mut defaulted = false;
    for parameter in children(node) {
        match parameter.kind() {
            "default_parameter" | "typed_default_parameter" => defaulted = true,
            // After a star, parameters are passed by name and may come in any order.
            "list_splat_pattern" | "keyword_separator" | "dictionary_splat_pattern" => return None,
            "typed_parameter"
                if parameter.child(0).is_none_or(|name| name.kind() != "identifier") =>
            {
                return None;
            }
            "identifier" | "typed_parameter" if defaulted => {
                let message = "parameter without a default follows parameter with a default";
                return Some((parameter.start_byte(), message));
            }
            _ => {}
        }
    }
    None
}

fn argument_order(node: Node<'_>) -> Option<Refusal> {
    let (mut named, mut unpacked) = (false, false);
    for argument in children(node) {
        match argument.kind() {
            "keyword_argument" => named = true,
            "dictionary_splat" => unpacked = true,
            "list_splat" if unpacked => {
                let message = "iterable argument unpacking follows keyword argument unpacking";
                return Some((argument.start_byte(), message));
            }
            "(" | ")" | "," | "comment" | "line_continuation" | "list_splat" => {}
            _ if named || unpacked => {
                return Some((
                    argument.start_byte(),
                    "positional argument follows keyword argument",
                ));
            }
            _ => {}
        }
    }
    None
}

fn may_hold_walrus(parent: &str) -> bool {
    matches!(
        parent,
        "parenthesized_expression"
            | "if_statement"
            | "elif_clause"
            | "while_statement"
            | "match_statement"
            | "if_clause"
            | "argument_list"
            | "list"
            | "set"
            | "tuple"
            | "subscript"
            | "list_comprehension"
            | "set_comprehension"
            | "generator_expression"
            // `f"{x:=10}"` is `x` in a format; tree-sitter reads a walrus there.
            | "interpolation"
            | "decorator"
    )
}

fn may_hold_as(ancestors: &[Node<'_>]) -> bool {
    let mut kinds = ancestors.iter().rev().map(|node| node.kind());
    match kinds.next() {
        Some("with_item" | "except_clause" | "case_pattern") => true,
        Some("parenthesized_expression" | "tuple") => kinds.next() == Some("with_item"),
        _ => false,
    }
}

/// What tree-sitter takes for a number and Python 3 does not: `10L`, `0777`, `1__0`, `1_`.
fn number(text: &str) -> Option<&'static str> {
    let plain = text.replace('_', "");
    let octal = plain.bytes().all(|byte| byte.is_ascii_digit())
        && plain.starts_with('0')
        && plain.bytes().any(|byte| byte != b'0');
    let lone_underscore = text.contains("__")
        || text.split(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_').any(|digits| {
            digits.starts_with('_') || digits.ends_with('_') || digits.contains("_e")
        });
    if octal {
        Some("leading zeros in decimal integer literals are not permitted")
    } else if lone_underscore || text.ends_with(['l', 'L']) {
        Some("invalid decimal literal")
    } else {
        None
    }
}

fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "False"
            | "None"
            | "True"
            | "and"
            | "as"
            | "assert"
            | "async"
            | "await"
            | "break"
            | "class"
            | "continue"
            | "def"
            | "del"
            | "elif"
            | "else"
            | "except"
            | "finally"
            | "for"
            | "from"
            | "global"
            | "if"
            | "import"
            | "in"
            | "is"
            | "lambda"
            | "nonlocal"
            | "not"
            | "or"
            | "pass"
            | "raise"
            | "return"
            | "try"
            | "while"
            | "with"
            | "yield"
    )
}
