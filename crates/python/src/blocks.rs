//! The top-level pieces of a script.

use tree_sitter::Node;

use crate::reading::{Reading, children, read, unified_line_ends};

/// A piece of a script: whole lines, with the comments directly above them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'a> {
    /// The exact text, without the line end that follows it.
    pub text: &'a str,
    /// Its first line, counted from 1.
    pub first_line: usize,
    /// Its last line, counted from 1.
    pub last_line: usize,
    /// What it is made of.
    pub kind: BlockKind,
}

/// What a [`Block`] is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// Import statements that follow one another, blank lines between them included.
    Imports,
    /// One function, with its decorators.
    Function,
    /// One class, with its decorators.
    Class,
    /// Statements with no blank line and no comment line between them.
    Statements,
}

/// The top-level pieces of a script in order, split the way a reader would.
///
/// A comment directly above a piece belongs to it; a comment between blank lines belongs to none.
/// A source that does not parse, or is too large to be read, is one piece.
pub fn blocks(source: &str) -> Vec<Block<'_>> {
    let lines = Lines::of(source);
    let Reading::Parsed(tree) = read(source) else {
        return lines.whole().into_iter().collect();
    };
    let mut pieces: Vec<Piece> = Vec::new();
    // The comment lines just above, which no piece has claimed yet.
    let mut comments: Option<Rows> = None;
    for node in children(tree.root_node()) {
        let rows = Rows::of(node);
        if let Some(piece) = pieces.last_mut().filter(|piece| piece.rows.last >= rows.first) {
            // On a line that is already taken: a trailing comment, or a statement after `;`.
            piece.rows.last = piece.rows.last.max(rows.last);
            continue;
        }
        comments = comments.filter(|comments| comments.last + 1 == rows.first);
        let first = comments.map_or(rows.first, |comments| comments.first);
        let piece_rows = Rows { first, last: rows.last };
        let Some(kind) = kind(node) else {
            comments = Some(piece_rows);
            continue;
        };
        let commented = comments.take().is_some();
        match pieces.last_mut() {
            Some(piece) if piece.goes_on_with(kind, rows, commented) => piece.rows.last = rows.last,
            Some(_) | None => pieces.push(Piece { kind, rows: piece_rows }),
        }
    }
    pieces.into_iter().filter_map(|piece| lines.block(piece)).collect()
}

/// What a top-level node makes of the piece it is in; none for a comment.
fn kind(node: Node<'_>) -> Option<BlockKind> {
    match node.kind() {
        "comment" | "line_continuation" => None,
        "import_statement" | "import_from_statement" | "future_import_statement" => {
            Some(BlockKind::Imports)
        }
        "function_definition" => Some(BlockKind::Function),
        "class_definition" => Some(BlockKind::Class),
        "decorated_definition" => node.child_by_field_name("definition").and_then(kind),
        _ => Some(BlockKind::Statements),
    }
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    kind: BlockKind,
    rows: Rows,
}

impl Piece {
    fn goes_on_with(self, kind: BlockKind, rows: Rows, commented: bool) -> bool {
        match (self.kind, kind) {
            (BlockKind::Imports, BlockKind::Imports) => true,
            (BlockKind::Statements, BlockKind::Statements) => {
                self.rows.last + 1 == rows.first && !commented
            }
            (
                BlockKind::Imports | BlockKind::Function | BlockKind::Class | BlockKind::Statements,
                _,
            ) => false,
        }
    }
}

/// The rows something covers, both included, counted from 0.
#[derive(Debug, Clone, Copy)]
struct Rows {
    first: usize,
    last: usize,
}

impl Rows {
    fn of(node: Node<'_>) -> Self {
        let first = node.start_position().row;
        let end = node.end_position();
        // A node that ends at the very start of a line does not reach into it.
        let last = if end.column == 0 { end.row.saturating_sub(1) } else { end.row };
        Self { first, last: last.max(first) }
    }
}

/// A source and where its lines begin.
struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(source: &'a str) -> Self {
        let unified = unified_line_ends(source);
        let starts = unified.match_indices('\n').map(|(end, _)| end + 1);
        Self { source, starts: std::iter::once(0).chain(starts).collect() }
    }

    fn block(&self, piece: Piece) -> Option<Block<'a>> {
        let start = self.starts.get(piece.rows.first).copied()?;
        let end = self.starts.get(piece.rows.last + 1).copied().unwrap_or(self.source.len());
        let text = self.source.get(start..end)?.trim_end();
        (!text.is_empty()).then_some(Block {
            text,
            first_line: piece.rows.first + 1,
            last_line: piece.rows.last + 1,
            kind: piece.kind,
        })
    }

    /// Everything from the first line that is not blank to the last.
    fn whole(&self) -> Option<Block<'a>> {
        let text = self.source.trim_end();
        let blank = text.len() - text.trim_start().len();
        let row = |offset: usize| self.starts.partition_point(|start| *start <= offset) - 1;
        let rows = Rows { first: row(blank), last: row(text.len().saturating_sub(1)) };
        self.block(Piece { kind: BlockKind::Statements, rows })
    }
}
