//! Values: variables, what is done to them in braces, and what commands print.

use std::path::Path;

use tree_sitter::Node;

use super::super::state::Separators;
use super::super::{State, Stdin, Walk, descendants, named_children};
use crate::Judged;
use crate::glob;
use crate::place::Cwd;
use crate::text::{Count, Piece, Text, Word};

impl<'tree> Walk<'_, 'tree> {
    /// The value of a variable.
    pub(super) fn lookup(&self, name: &str, state: &State<'tree>) -> Word {
        if let Some(word) = state.variables.get(name) {
            return word.clone();
        }
        if let Some(value) = self.policy.variables.get(name) {
            return Word::literal(value);
        }
        if let Ok(number) = name.parse::<usize>() {
            let Some(parameters) = &state.parameters else { return Word::any() };
            let Some(index) = number.checked_sub(1) else { return Word::any() };
            return parameters.get(index).cloned().unwrap_or_else(|| Word::literal(""));
        }
        let piece = match name {
            "HOME" => {
                let home = self.policy.home();
                return home.map_or_else(Word::any, |it| Word::literal(it.to_string_lossy()));
            }
            "PWD" => return here(state),
            "!" => Piece::Job,
            "#" | "?" | "$" | "UID" | "EUID" | "PPID" | "RANDOM" | "SECONDS" | "LINENO"
            | "EPOCHSECONDS" | "BASHPID" | "SHLVL" | "OPTIND" | "COLUMNS" | "LINES" => Piece::Plain,
            "HOSTNAME" | "USER" | "LOGNAME" => Piece::Name,
            _ => Piece::Any,
        };
        Word::one(Text::of(piece))
    }

    /// `${…}`, given what is between the braces.
    pub(super) fn expansion(&self, inner: &str, state: &State<'tree>) -> Word {
        if inner.len() > 1 && inner.starts_with('#') {
            return Word::one(Text::of(Piece::Plain));
        }
        if inner.starts_with('!') {
            return Word { count: Count::Several, ..Word::any() };
        }
        let end =
            inner.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(inner.len());
        let (name, operation) = inner.split_at(end);
        if name.is_empty() {
            return Word { count: Count::Several, ..Word::any() };
        }
        let value = self.lookup(name, state);
        if let Some(index) = operation.strip_prefix('[') {
            return match index.split_once(']') {
                // All elements are joined by the first character at which values are split.
                Some(("*", "")) if state.separators() != Separators::Blanks => Word::any(),
                Some((_, "")) => value,
                Some(_) | None => Word { count: Count::Several, ..Word::any() },
            };
        }
        modified(&value, operation)
    }

    /// `${x:=value}` anywhere below a node gives variables a value.
    pub(in super::super) fn forget_assigned_below(
        &self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged {
        for below in descendants(node).into_iter().filter(|it| it.kind() == "expansion") {
            self.forget_assigned_by(below, state)?;
        }
        Ok(())
    }

    /// The same for one expansion.
    pub(in super::super) fn forget_assigned_by(
        &self,
        expansion: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged {
        let text = self.text(expansion).trim_start().trim_start_matches("${");
        // The value of a variable is the name of the one that is set.
        if text.starts_with('!') && text.contains('=') {
            state.forget_all();
        }
        if let Some(name) = assigned_name(text) {
            self.check_variable_named(name, "any")?;
            state.variables.insert(name.to_owned(), Word::any());
        }
        Ok(())
    }

    /// What a substitution is replaced by.
    pub(super) fn substituted(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Word {
        let printed = match named_children(node).as_slice() {
            [only] => self.output(*only, &mut state.clone()),
            _ => Stdin::Unknown,
        };
        match printed {
            Stdin::Text(text) => match text.as_literal() {
                Some(literal) => Word::literal(literal.trim_end_matches('\n')),
                None => Word::one(text),
            },
            Stdin::Lines(texts) => Word::among(texts, Count::Several),
            Stdin::Inherited | Stdin::Unknown => Word { count: Count::Several, ..Word::any() },
        }
    }
}

/// The variable that `${…}` may give a value, given what is between the braces.
pub(in super::super) fn assigned_name(inner: &str) -> Option<&str> {
    let end = inner.find(|it: char| !it.is_ascii_alphanumeric() && it != '_')?;
    let (name, operation) = inner.split_at(end);
    let operation = match operation.strip_prefix('[') {
        Some(subscript) => subscript.split_once(']')?.1,
        None => operation,
    };
    [":=", "="].iter().any(|it| operation.starts_with(it)).then_some(name)
}

/// Where the shell is, as a value.
pub(crate) fn here(state: &State<'_>) -> Word {
    match &state.cwd {
        Cwd::Among(paths) => {
            Word::among(paths.iter().map(|path| Text::literal(path.to_string_lossy())), Count::One)
        }
        Cwd::Unknown => Word::any(),
    }
}

fn modified(value: &Word, operation: &str) -> Word {
    let simple = |text: &str| !text.contains(['$', '`', '"', '\'', '\\', '{', '~']);
    let known = value.texts.iter().all(|text| !text.has_any());
    let default = |prefix: &str| {
        let word = operation.strip_prefix(prefix)?;
        Some(if simple(word) { Word::literal(word) } else { Word::any() })
    };
    if operation.is_empty() {
        return value.clone();
    }
    for prefix in [":-", ":=", "-", "="] {
        if let Some(default) = default(prefix) {
            let empty = value.texts.iter().any(Text::is_empty);
            return match (known, empty) {
                (true, false) => value.clone(),
                (true, true) => value.or(&default),
                (false, _) => Word::any(),
            };
        }
    }
    for prefix in [":+", "+"] {
        if let Some(default) = default(prefix) {
            return default.or(&Word::literal(""));
        }
    }
    if operation.starts_with(":?") || operation.starts_with('?') {
        return value.clone();
    }
    if operation == "##*/" {
        return Word::among(
            value.texts.iter().map(|text| match text.as_literal() {
                Some(literal) => Text::literal(literal.rsplit('/').next().unwrap_or_default()),
                None => Text::of(Piece::Name),
            }),
            Count::One,
        );
    }
    for (operator, from_end, longest) in
        [("%%", true, true), ("%", true, false), ("##", false, true), ("#", false, false)]
    {
        let Some(pattern) = operation.strip_prefix(operator) else { continue };
        let literals: Option<Vec<&str>> = value.texts.iter().map(Text::as_literal).collect();
        return match literals.filter(|_| simple(pattern)) {
            Some(literals) => Word::among(
                literals.iter().map(|it| Text::literal(without(it, pattern, from_end, longest))),
                Count::One,
            ),
            None => Word::any(),
        };
    }
    Word::any()
}

/// A text without the part at its end or beginning that matches.
fn without<'a>(text: &'a str, pattern: &str, from_end: bool, longest: bool) -> &'a str {
    let mut cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    // The shortest match comes first.
    if from_end != longest {
        cuts.reverse();
    }
    for cut in cuts {
        let (left, right) = text.split_at(cut);
        let (kept, removed) = if from_end { (left, right) } else { (right, left) };
        if glob::matches(pattern, removed) {
            return kept;
        }
    }
    text
}

/// `'…'` after a dollar sign: the text, and how long it is in the source.
pub(super) fn ansi(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => return Some((text, at + 1)),
            '\\' => match characters.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                escaped @ ('\\' | '\'' | '"' | '?') => text.push(escaped),
                // Numbers can spell anything.
                _ => return None,
            },
            other => text.push(other),
        }
    }
    None
}

/// The folder of a path, as `dirname` has it.
pub(crate) fn folder_of(path: &str) -> String {
    match Path::new(path).parent() {
        Some(parent) if parent.as_os_str().is_empty() => String::from("."),
        Some(parent) => parent.to_string_lossy().into_owned(),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_beginnings_are_cut_off_as_in_the_shell() {
        assert_eq!(without("a.b.c", ".*", true, false), "a.b");
        assert_eq!(without("a.b.c", ".*", true, true), "a");
        assert_eq!(without("a.b.c", "*.", false, false), "b.c");
        assert_eq!(without("a.b.c", "*.", false, true), "c");
        assert_eq!(without("a.b.c", "x", true, true), "a.b.c");
    }
}
