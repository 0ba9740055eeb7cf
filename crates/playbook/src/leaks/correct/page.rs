//! Questions to a script, and edits of it.

use std::ops::Range;

use tree_sitter::{Node, Tree};

use crate::leaks::syntax::{all, called, children, names, positional, text};

/// A piece of the script, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Self { range, text: text.into() }
    }
}

/// The script after its edits; `None` if they overlap.
pub(super) fn edited(script: &str, edits: &[Edit]) -> Option<String> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|it| (it.range.start, it.range.end));
    let (mut edited, mut done) = (String::new(), 0);
    for edit in edits {
        edited += script.get(done..edit.range.start)?;
        edited += &edit.text;
        done = edit.range.end;
    }
    Some(edited + script.get(done..)?)
}

/// A script and its tree.
pub(super) struct Page<'a> {
    pub(super) source: &'a str,
    pub(super) root: Node<'a>,
}

/// `a, b, c, d = train_test_split(x, y, random_state=0)` at the outermost level.
pub(super) struct Split<'a> {
    pub(super) statement: Node<'a>,
    pub(super) call: Node<'a>,
    pub(super) targets: Vec<&'a str>,
    pub(super) arguments: Vec<&'a str>,
}

/// How rows of a value are chosen by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Frame,
    Array,
}

impl Container {
    pub(super) fn rows(self, name: &str, rows: &str) -> String {
        match self {
            Self::Frame => format!("{name}.iloc[{rows}]"),
            Self::Array => format!("{name}[{rows}]"),
        }
    }
}

impl<'a> Page<'a> {
    pub(super) fn new(source: &'a str, tree: &'a Tree) -> Self {
        Self { source, root: tree.root_node() }
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        text(self.source, node)
    }

    /// The node that stands exactly there.
    pub(super) fn at(&self, range: &Range<usize>) -> Option<Node<'a>> {
        self.root.named_descendant_for_byte_range(range.start, range.end)
    }

    /// The outermost statement that holds a place.
    pub(super) fn statement(&self, at: usize) -> Option<Node<'a>> {
        children(self.root).into_iter().find(|it| it.byte_range().contains(&at))
    }

    /// All names between two places.
    pub(super) fn names_in(&self, range: Range<usize>) -> Vec<Node<'a>> {
        let within = |it: &Node<'a>| {
            it.kind() == "identifier"
                && range.start <= it.start_byte()
                && it.end_byte() <= range.end
        };
        all(self.root).into_iter().filter(within).collect()
    }

    /// The blanks before a statement.
    pub(super) fn indent(&self, node: Node<'_>) -> String {
        " ".repeat(node.start_position().column)
    }

    /// The lines of a statement, with the line break.
    pub(super) fn lines(&self, node: Node<'_>) -> Range<usize> {
        let start = node.start_byte() - node.start_position().column;
        let rest = self.source.get(node.end_byte()..).unwrap_or_default();
        start..node.end_byte() + rest.find('\n').map_or(rest.len(), |it| it + 1)
    }

    /// The assignments at the outermost level, in order.
    pub(super) fn assignments(&self) -> impl Iterator<Item = (Node<'a>, Node<'a>, Node<'a>)> {
        children(self.root).into_iter().filter_map(|statement| {
            let inner = children(statement).into_iter().find(|it| it.kind() == "assignment")?;
            let left = inner.child_by_field_name("left")?;
            Some((statement, left, inner.child_by_field_name("right")?))
        })
    }

    /// What a name was last assigned before a place.
    pub(super) fn assigned(&self, name: &str, before: usize) -> Option<Node<'a>> {
        let same = |left: Node<'a>| left.kind() == "identifier" && self.text(left) == name;
        let mut all = self.assignments().filter(|it| it.0.end_byte() <= before && same(it.1));
        let mut last = all.next()?;
        for next in all {
            last = next;
        }
        Some(last.2)
    }

    /// Whether a name has a value before a place.
    pub(super) fn is_bound(&self, name: &str, before: usize) -> bool {
        self.assignments().any(|(statement, left, _)| {
            statement.end_byte() <= before && names(self.source, left).contains(&name)
        })
    }

    /// The one split of the script, if it is by `train_test_split`.
    pub(super) fn split(&self) -> Option<Split<'a>> {
        let splits: Vec<Node<'a>> = all(self.root)
            .into_iter()
            .filter(|it| it.kind() == "call" && called(self.source, *it) == "train_test_split")
            .filter(|it| it.parent().is_some_and(|it| it.kind() != "subscript"))
            .collect();
        let [call] = splits.as_slice() else { return None };
        let (statement, left, _) = self.assignments().find(|it| it.2 == *call)?;
        let arguments: Vec<&str> = positional(*call).iter().map(|it| self.text(*it)).collect();
        let targets = names(self.source, left);
        let fits = targets.len() == arguments.len() * 2;
        fits.then_some(Split { statement, call: *call, targets, arguments })
    }

    /// Whether rows may come or go between two places.
    pub(super) fn changes_rows(&self, range: Range<usize>) -> bool {
        all(self.root).into_iter().any(|node| {
            let within = range.start <= node.start_byte() && node.end_byte() <= range.end;
            let filters = match node.kind() {
                "call" => matches!(
                    called(self.source, node),
                    "dropna"
                        | "drop_duplicates"
                        | "sample"
                        | "query"
                        | "head"
                        | "tail"
                        | "fit_resample"
                        | "explode"
                        | "merge"
                ),
                "subscript" => node
                    .child_by_field_name("subscript")
                    .is_some_and(|it| matches!(it.kind(), "comparison_operator" | "slice")),
                _ => false,
            };
            within && filters
        })
    }

    /// Whether a name holds a table of pandas or an array, by what it was assigned.
    pub(super) fn container(&self, name: &str, before: usize) -> Option<Container> {
        let right = self.assigned(name, before)?;
        if right.kind() == "identifier" {
            return self.container(self.text(right), right.start_byte());
        }
        let written = self.text(right);
        let array = [".values", ".to_numpy()", ".toarray()", ".to_numpy(dtype=float)"];
        if array.iter().any(|it| written.ends_with(it)) || written.starts_with("np.") {
            return Some(Container::Array);
        }
        let frame = ["drop", "read_csv", "select_dtypes", "fillna", "pop", "copy", "astype"];
        let last = right.kind() == "call" && frame.contains(&called(self.source, right));
        let column = right.kind() == "subscript";
        (last || column || called(self.source, right) == "get_dummies").then_some(Container::Frame)
    }
}
