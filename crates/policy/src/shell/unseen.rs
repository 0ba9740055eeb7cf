//! What the walk did not come by.

use tree_sitter::Node;

use super::{State, Walk, descendants};
use crate::{Denial, Judged};

/// Parts that change something.
const EFFECTS: &[&str] =
    &["command", "file_redirect", "declaration_command", "variable_assignment", "pipeline"];
/// Parts of an expansion that the grammar takes apart, and the walk with it.
const TAKEN_APART: &[&str] =
    &["command_substitution", "process_substitution", "arithmetic_expansion", "expansion"];

impl<'tree> Walk<'_, 'tree> {
    /// Functions that nothing called might still be, by a trap or another shell.
    pub(super) fn check_uncalled(&mut self, root: Node<'tree>, state: &State<'tree>) -> Judged {
        for node in descendants(root) {
            if node.kind() == "function_definition"
                && self.seen.contains(&node.id())
                && let Some(body) = node.child_by_field_name("body")
                && !self.called.contains(&body.id())
            {
                self.run(body, &mut State { parameters: None, ..state.clone() })?;
            }
        }
        Ok(())
    }

    pub(super) fn check_unseen(&self, root: Node<'tree>) -> Judged {
        let hidden = |node: &Node<'tree>| match node.kind() {
            "expansion" => self.hides_command(*node),
            "word" | "regex" | "extglob_pattern" => has_command(self.text(*node)),
            kind => EFFECTS.contains(&kind) && !self.seen.contains(&node.id()),
        };
        match descendants(root).into_iter().find(hidden) {
            Some(node) => {
                let part = self.text(node);
                Err(Denial::new(format_args!("the part `{part}` could not be understood")))
            }
            None => Ok(()),
        }
    }

    /// The grammar takes much of what stands in `${…}` for mere text, where a shell runs what is
    /// between backquotes.
    fn hides_command(&self, node: Node<'tree>) -> bool {
        let mut at = node.start_byte();
        let mut inside: Vec<_> = descendants(node)
            .into_iter()
            .filter(|it| it.id() != node.id() && TAKEN_APART.contains(&it.kind()))
            .collect();
        inside.sort_by_key(Node::start_byte);
        for part in inside {
            if self.source.get(at..part.start_byte()).is_some_and(has_command) {
                return true;
            }
            at = at.max(part.end_byte());
        }
        self.source.get(at..node.end_byte()).is_some_and(has_command)
    }
}

/// Whether something in a text would be run.
fn has_command(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '`', '$', '<', '>']) {
        let from = rest.get(at..).unwrap_or_default();
        if ["`", "$(", "<(", ">("].iter().any(|it| from.starts_with(it)) {
            return true;
        }
        let mut characters = from.chars();
        if characters.next() == Some('\\') {
            characters.next();
        }
        rest = characters.as_str();
    }
    false
}
