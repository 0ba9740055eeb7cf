//! Ways that may or may not be taken, and loops.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::variables::{IMPLIED, SPECIAL};
use super::word::assigned_name;
use super::{Flow, State, Walk, descendants, named_children};
use crate::place::Cwd;
use crate::text::{Count, Piece, Text, Word};
use crate::{Denial, Judged};

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn branches(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        // The condition stands before `then`; each later part is a branch that may be taken.
        let mut before_then = true;
        let mut condition = Flow::PLAIN;
        let mut taken = state.clone();
        let mut otherwise = None;
        for child in node.children(&mut node.walk()) {
            match child.kind() {
                "then" => {
                    before_then = false;
                    otherwise = Some(state.clone());
                    taken = state.clone();
                    if let Some(succeeded) = condition.success.take() {
                        taken = *succeeded;
                    }
                }
                "elif_clause" | "else_clause" => {
                    let mut other = otherwise.clone().unwrap_or_else(|| state.clone());
                    self.seen.insert(child.id());
                    self.run_each(child, &mut other)?;
                    otherwise = Some(otherwise.unwrap_or_else(|| state.clone()).or(other));
                }
                _ if !child.is_named() => {}
                _ if before_then => condition = self.run(child, state)?,
                _ => {
                    self.run(child, &mut taken)?;
                }
            }
        }
        *state = otherwise.unwrap_or_else(|| state.clone()).or(taken);
        Ok(Flow::PLAIN)
    }

    pub(super) fn cases(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let (items, values): (Vec<_>, Vec<_>) =
            named_children(node).into_iter().partition(|child| child.kind() == "case_item");
        for value in values {
            self.substitutions(value, state)?;
        }
        let mut after = state.clone();
        for item in items {
            self.seen.insert(item.id());
            let mut taken = state.clone();
            for part in named_children(item) {
                self.run(part, &mut taken)?;
            }
            after = after.or(taken);
        }
        *state = after;
        Ok(Flow::PLAIN)
    }

    pub(super) fn repeated(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        // A later round begins with what an earlier one assigned.
        for name in self.assigned_below(node) {
            let value = if self.is_counted(node, &name) {
                Word::one(Text::of(Piece::Plain))
            } else {
                Word::any()
            };
            state.variables.insert(name, value);
        }
        if node.kind() == "for_statement"
            && let Some(variable) = node.child_by_field_name("variable")
        {
            self.check_variable_named(self.text(variable), "any")?;
            let values = self.values_of_loop(node, state)?;
            state.variables.insert(self.text(variable).to_owned(), values);
        }
        let before = state.clone();
        for round in 0..3 {
            let start = state.clone();
            for child in named_children(node) {
                if matches!(child.kind(), "variable_name" | "word" | "string" | "concatenation") {
                    self.substitutions(child, state)?;
                } else {
                    self.run(child, state)?;
                }
            }
            *state = state.clone().or(before.clone());
            if state.cwd == start.cwd {
                break;
            }
            if round == 1 {
                state.cwd = Cwd::Unknown;
            }
        }
        // It may have ended anywhere between.
        let mut names = self.commands_below(node).map(|(_, name)| name);
        if names.any(|it| matches!(it, "break" | "continue")) && self.moves_below(node) > 1 {
            state.cwd = Cwd::Unknown;
        }
        Ok(Flow::PLAIN)
    }

    fn values_of_loop(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Word> {
        let mut cursor = node.walk();
        let values: Vec<_> = node.children_by_field_name("value", &mut cursor).collect();
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for value in values {
            match ranges.last_mut() {
                Some((_, end)) if *end == value.start_byte() => *end = value.end_byte(),
                _ => ranges.push((value.start_byte(), value.end_byte())),
            }
        }
        let mut texts = Vec::new();
        for (start, end) in ranges {
            for word in self.words(start, end, node, state)? {
                texts.extend(word.texts);
            }
        }
        Ok(Word::among(texts, Count::One))
    }

    /// Names that are given a value anywhere below a node.
    /// Whether a loop gives a variable nothing but sums.
    fn is_counted(&self, node: Node<'tree>, name: &str) -> bool {
        const OTHERWISE: &[&str] = &[
            "read", "mapfile", "printf", "getopts", ":=", "eval", "source", ". ", "declare",
            "local", "typeset", "export", "unset", "+=",
        ];
        let source = self.text(node);
        let is_sum = |it: &Node<'tree>| {
            it.child_by_field_name("value").is_some_and(|it| it.kind() == "arithmetic_expansion")
        };
        !OTHERWISE.iter().any(|it| source.contains(it))
            && !source.contains(&format!("for {name}"))
            && descendants(node)
                .into_iter()
                .filter(|it| it.kind() == "variable_assignment")
                .filter(|it| it.child_by_field_name("name").is_some_and(|it| self.text(it) == name))
                .all(|it| is_sum(&it))
    }

    pub(super) fn assigned_below(&self, node: Node<'tree>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for below in descendants(node) {
            match below.kind() {
                "variable_assignment" if !self.is_for_one_command(below) => {
                    let name = below.child_by_field_name("name").map(|it| self.text(it));
                    names.extend(name.and_then(|it| it.split('[').next()).map(str::to_owned));
                }
                "command" => {
                    let name = below.child_by_field_name("name").map(|it| self.text(it));
                    if let Some("read" | "mapfile" | "readarray" | "printf" | "getopts") = name {
                        let words = self.text(below).split_whitespace();
                        let names_only = words.map(|it| it.trim_matches(['"', '\'']));
                        names.extend(names_only.map(|it| it.trim_start_matches("-v").to_owned()));
                        names.extend(IMPLIED.iter().map(|&it| it.to_owned()));
                    }
                }
                "expansion" => {
                    let inner = self.text(below).trim_start().trim_start_matches("${");
                    names.extend(assigned_name(inner).map(str::to_owned));
                }
                "variable_name" => {
                    let of_a_loop = below.parent().is_some_and(|it| it.kind() == "for_statement");
                    names.extend(of_a_loop.then(|| self.text(below).to_owned()));
                }
                _ => {}
            }
        }
        names
    }

    /// Whether an assignment is gone after the command before which it stands.
    fn is_for_one_command(&self, assignment: Node<'tree>) -> bool {
        let command = assignment.parent().filter(|it| it.kind() == "command");
        let name = command.and_then(|it| it.child_by_field_name("name")).map(|it| self.text(it));
        name.is_some_and(|it| {
            it.chars().all(|it| it.is_ascii_alphanumeric() || it == '_') && !SPECIAL.contains(&it)
        })
    }
}

/// Checks a condition in brackets.
pub(super) fn check_test(text: &str) -> Judged {
    // To a single bracket, `>` is a redirection, whatever the grammar says.
    if !text.starts_with("[[") && text.contains('>') {
        return Err(Denial::new("`>` in brackets writes a file; use -gt or [[ ]]"));
    }
    // What stands in the subscript of a name is run, even if it is quoted.
    let is_plain = |it: &str| it.chars().all(|it| it.is_alphanumeric() || "_[]@*'\"".contains(it));
    let mut words = text.split_whitespace().skip_while(|it| *it != "-v").skip(1);
    let named = words.next().is_none_or(is_plain) && !words.any(|it| it == "-v");
    if !named || text.contains("[$(") || text.contains("[`") {
        return Err(Denial::new("the name after -v must be a plain one, and only one"));
    }
    Ok(())
}
