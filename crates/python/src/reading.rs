//! The one way from text to syntax tree, and its bounds.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use crate::lexical::{self, Lexical, Problem};
use crate::syntax::{self, SyntaxError};

/// The largest source that is read: 2 MiB. A script an agent wrote is a hundredth of it.
pub const MAX_SOURCE_BYTES: usize = 2 * 1024 * 1024;

/// How long the parser may take. Scripts take milliseconds; only a source made to be slow takes
/// longer.
const PARSE_TIME: Duration = Duration::from_secs(5);

/// How many lines of a comment are shown to the parser, up to the code below it.
const MAX_COMMENT_LINES: usize = 20;

/// How many different indentation widths a source may hold to be parsed. tree-sitter-python keeps
/// its open indentations in a buffer of 1,024 bytes and can write one byte past it at 383 of them.
const MAX_INDENT_WIDTHS: usize = 256;

/// What became of a source.
pub(crate) enum Reading {
    /// It parses as Python 3. Byte offsets in the tree are offsets in the source.
    Parsed(Tree),
    /// It does not parse.
    Broken(SyntaxError),
    /// It was not read to the end: too large, too slow, or no parser could be made. This is no
    /// verdict, and callers treat it as "cannot tell".
    Unread,
}

pub(crate) fn read(source: &str) -> Reading {
    if source.len() > MAX_SOURCE_BYTES {
        return Reading::Unread;
    }
    let text = unified_line_ends(source);
    if let Some(offset) = text.find('\0') {
        let message = String::from("source code cannot contain null bytes");
        return Reading::Broken(SyntaxError::at(&text, &Problem { offset, message }));
    }
    let scan = lexical::scan(&text);
    // What the tokenizer refuses is never shown to the parser, only the whole statements before
    // it: those may hold an earlier error. This also bounds how deeply the parser can be nested.
    let sound = match &scan.problem {
        Some(_) => text.get(..scan.statements.last().copied().unwrap_or(0)).unwrap_or_default(),
        None => &text,
    };
    let sound = &*with_comments_short(sound, &scan.comments);
    let deadline = Instant::now() + PARSE_TIME;
    let tree = parse(sound, deadline);
    let problem =
        tree.as_ref().and_then(|tree| first_problem(sound, tree, &scan, deadline)).or(scan.problem);
    match (problem, tree) {
        (Some(problem), _) => Reading::Broken(SyntaxError::at(&text, &problem)),
        (None, Some(tree)) => Reading::Parsed(tree),
        (None, None) => Reading::Unread,
    }
}

/// The source with lone carriage returns as line feeds, as Python reads them. Offsets stay.
pub(crate) fn unified_line_ends(source: &str) -> Cow<'_, str> {
    let mut pieces = source.split_inclusive('\r').peekable();
    let mut unified = String::new();
    let mut changed = false;
    while let Some(piece) = pieces.next() {
        let lone =
            piece.ends_with('\r') && !pieces.peek().is_some_and(|next| next.starts_with('\n'));
        match piece.strip_suffix('\r') {
            Some(line) if lone => {
                changed = true;
                unified.push_str(line);
                unified.push('\n');
            }
            Some(_) | None => unified.push_str(piece),
        }
    }
    if changed { Cow::Owned(unified) } else { Cow::Borrowed(source) }
}

/// The source with spaces in place of all but the last lines of each long comment. Offsets stay.
///
/// After every line of a comment, tree-sitter's scanner reads on to the next line of code to learn
/// its indentation: it would read a comment of a thousand lines five hundred times.
fn with_comments_short<'a>(source: &'a str, comments: &[Range<usize>]) -> Cow<'a, str> {
    let mut short = Cow::Borrowed(source);
    let mut below: Option<&Range<usize>> = None;
    let mut lines_below = 0;
    for comment in comments.iter().rev().filter(|it| it.end <= source.len()) {
        let between = below.and_then(|below| source.get(comment.end..below.start));
        let goes_on = between.is_some_and(|it| it.trim().is_empty());
        lines_below = if goes_on { lines_below + 1 } else { 0 };
        if lines_below >= MAX_COMMENT_LINES {
            short.to_mut().replace_range(comment.clone(), &" ".repeat(comment.len()));
        }
        below = Some(comment);
    }
    short
}

/// Where the source first goes wrong.
///
/// A parser made for editors mends what it can, and its mark may lie far from the mistake. Each
/// top-level statement is therefore parsed alone, and the first that fails holds the mistake.
fn first_problem(source: &str, tree: &Tree, scan: &Lexical, deadline: Instant) -> Option<Problem> {
    let whole = syntax::first_refusal(source, tree, &scan.lines)?;
    let ends = scan.statements.iter().skip(1).copied().chain([source.len()]);
    for (start, end) in scan.statements.iter().copied().zip(ends) {
        // The parser looks at the clock only now and then, and in a small statement never.
        let in_time = Instant::now() < deadline;
        let Some(statement) = source.get(start..end).filter(|_| in_time) else { break };
        let Some(tree) = parse(statement, deadline) else { break };
        let before = |bound: usize| scan.lines.partition_point(|line| *line < bound);
        let lines = scan.lines.get(before(start)..before(end)).unwrap_or_default();
        let lines: Vec<usize> = lines.iter().map(|line| line - start).collect();
        if let Some(problem) = syntax::first_refusal(statement, &tree, &lines) {
            return Some(Problem { offset: start + problem.offset, ..problem });
        }
    }
    Some(whole)
}

fn parse(source: &str, deadline: Instant) -> Option<Tree> {
    if indent_widths(source) > MAX_INDENT_WIDTHS {
        return None;
    }
    let mut parser = Parser::new();
    // Fails only when the grammar and the library were built for different versions of each
    // other. Nothing can be read then, and nothing is refused.
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
    let mut progress = |_: &tree_sitter::ParseState| {
        if Instant::now() < deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let bytes = source.as_bytes();
    parser.parse_with_options(
        &mut |offset, _| bytes.get(offset..).unwrap_or_default(),
        None,
        Some(options),
    )
}

/// How many different widths tree-sitter's scanner could take for an indentation.
fn indent_widths(source: &str) -> usize {
    let mut widths = HashSet::new();
    let mut width = 0_usize;
    let mut bytes = source.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' => width += 1,
            b'\t' => width += 8,
            // To the scanner, the width runs on across a continued line.
            b'\\' if matches!(bytes.peek(), Some(b'\r' | b'\n')) => {
                while bytes.next_if(|byte| matches!(byte, b'\r' | b'\n')).is_some() {}
            }
            b'\n' | b'\r' | b'\x0c' => width = 0,
            _ => {
                if width > 0 {
                    widths.insert(width);
                }
                width = 0;
            }
        }
    }
    widths.len()
}

/// Whether a walk goes on below a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    Visit,
    Skip,
}

/// Visits a node and all below it, parents first, with each one's ancestors (outermost first).
///
/// A cursor and a list instead of recursion, so that no depth overflows the stack; the list also
/// because tree-sitter finds a node's parent by searching down from the root.
pub(crate) fn walk<'tree>(
    root: Node<'tree>,
    mut visit: impl FnMut(Node<'tree>, &[Node<'tree>]) -> ControlFlow<(), Below>,
) {
    let mut cursor = root.walk();
    let mut ancestors = Vec::new();
    loop {
        let node = cursor.node();
        match visit(node, &ancestors) {
            ControlFlow::Break(()) => return,
            ControlFlow::Continue(Below::Visit) if cursor.goto_first_child() => {
                ancestors.push(node);
                continue;
            }
            ControlFlow::Continue(Below::Visit | Below::Skip) => {}
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() || ancestors.pop().is_none() {
                return;
            }
        }
    }
}

pub(crate) fn text<'a>(source: &'a str, node: Node<'_>) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
}

pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

pub(crate) fn line(node: Node<'_>) -> usize {
    node.start_position().row + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_of_a_long_comment_stay_and_nothing_moves() {
        let comment = "# é\n\n".repeat(MAX_COMMENT_LINES);
        let text = format!("y = '''\n{comment}{comment}'''\n");
        let source = format!("x = 1  # one\n# two\n{comment}{text}{comment}");
        let comments = lexical::scan(&source).comments;
        let short = with_comments_short(&source, &comments);
        assert_eq!(short, format!("x = 1       \n     \n{comment}{text}{comment}"));
        assert_eq!(with_comments_short(&comment, &comments[..2]), comment, "a part of the source");
    }
}
