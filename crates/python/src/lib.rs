//! What a piece of Python source says, read with a parser.
//!
//! Agents write Python scripts; before a script is run, these functions answer the questions that
//! need no interpreter: does it parse ([`check_syntax`]), would it end the process early
//! ([`exit_calls`]), does it swallow its own errors ([`error_masking`]), is a reply a program at
//! all ([`is_plausible_program`]), and which pieces is a script made of ([`blocks`]). For other
//! questions there is the syntax tree ([`tree()`]).
//!
//! Reading order: `lexical` (strings, brackets, indentation), `reading` (the one way from text to
//! syntax tree), `syntax` (what the tree must not hold), then one module per question.
//!
//! # What is deliberately absent
//!
//! Nothing here runs Python, and no regular expression reads it. The one place where patterns are
//! looked for is [`exit_calls`] on a source that does not parse, after its strings and comments
//! have been blanked.
//!
//! # Bounds
//!
//! A source above [`MAX_SOURCE_BYTES`], one with hundreds of different indentation widths, or one
//! that takes the parser longer than five seconds is *not read*: [`check_syntax`] lets it pass,
//! and leaves the verdict to the interpreter that will run it. No walk here recurses, so depth of
//! nesting costs memory, never stack.
//!
//! # Where this and CPython disagree
//!
//! The grammar is tree-sitter's, which accepts more than Python. The common gaps (Python 2
//! statements, missing or stray indentation, misplaced walruses, argument order and so on) are
//! closed by `lexical` and `syntax`. Known to remain:
//!
//! - Accepted although CPython refuses: targets that cannot be assigned or deleted in rare places
//!   (`del f()`), unknown f-string conversions (`f"{x!z}"`), bytes literals with non-ASCII
//!   characters or next to a plain string, malformed escapes (`"\x"`), a stray `*` before an
//!   operand (`a + *b`), exotic `match` patterns, repeated keyword names, and all that CPython
//!   finds only after parsing (`return` outside a function, repeated parameter names).
//! - Refused although CPython accepts: brackets whose inner lines are indented less than the
//!   statement they stand in, in rare shapes (`(a.` and `b)` on the line below).
//! - Accepted although older Pythons refuse: whatever a newer version allows, such as `except*`
//!   (3.11), same-quote nesting in f-strings, `type X = int` (3.12) and template strings (3.14).
//! - Refused although Python 3.14 accepts: `except A, B:` without parentheses. In a model's reply
//!   it is Python 2's `except A, name:` far more often.

mod blocks;
mod excepts;
mod exits;
mod lexical;
mod program;
mod reading;
mod syntax;
mod tree;

pub use blocks::{Block, BlockKind, blocks};
pub use excepts::error_masking;
pub use exits::{ExitCall, exit_calls};
pub use program::{dedent, is_plausible_program};
pub use reading::MAX_SOURCE_BYTES;
pub use syntax::{SyntaxError, check_syntax};
pub use tree::tree;
