//! The syntax tree itself, for those who ask questions of their own.

use tree_sitter::Tree;

use crate::reading::{Reading, read};

/// The syntax tree of a source; `None` if it does not parse, or was not read to the end.
///
/// Byte offsets in the tree are offsets in the source. Its kinds and fields are those of
/// tree-sitter's grammar for Python.
pub fn tree(source: &str) -> Option<Tree> {
    match read(source) {
        Reading::Parsed(tree) => Some(tree),
        Reading::Broken(_) | Reading::Unread => None,
    }
}
