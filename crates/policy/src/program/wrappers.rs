//! Programs that run another one, named in their own words.

use std::path::PathBuf;

use super::Options;
use crate::place::{Cwd, Last};
use crate::shell::{Flow, State, Stdin, Walk};
use crate::text::{Count, Piece, Text, Word};
use crate::{Denial, Judged};

impl<'tree> Walk<'_, 'tree> {
    /// `nohup`, `timeout`, `env` and their like.
    pub(super) fn wrapped(
        &mut self,
        base: &str,
        words: &[Word],
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let (short, long, before): (&str, &[&str], usize) = match base {
            "exec" => ("a", &[], 0),
            "nice" => ("n", &["--adjustment"], 0),
            "ionice" => ("cnp", &["--class", "--classdata"], 0),
            "timeout" => ("sk", &["--signal", "--kill-after"], 1),
            "time" => ("fo", &["--format", "--output"], 0),
            "stdbuf" => ("ioe", &["--input", "--output", "--error"], 0),
            "taskset" => ("", &[], 1),
            "numactl" => ("NmCpiP", &["--cpunodebind", "--membind", "--physcpubind"], 0),
            "env" => ("uCS", &["--unset", "--chdir", "--split-string"], 0),
            _ => ("", &[], 0),
        };
        let mut index = 0;
        let mut inner = state.clone();
        while let Some(word) = words.get(index) {
            let text = word.texts.first().map(Text::to_string).unwrap_or_default();
            if text == "--" {
                index += 1;
                break;
            }
            if base == "env" && !text.starts_with('-') && text.contains('=') {
                self.bind_in_environment(word, &mut inner)?;
                index += 1;
                continue;
            }
            if !text.starts_with('-') || (text.len() < 2 && base != "env") {
                break;
            }
            let has =
                |letters: &str| !text.starts_with("--") && text.contains(|it| letters.contains(it));
            if base == "command" && has("vV") {
                return Ok(Flow::PLAIN);
            }
            if base == "env"
                && (has("CS") || text.starts_with("--chdir") || text.starts_with("--split"))
            {
                return Err(Denial::new(format_args!("{text} is not allowed here; use cd")));
            }
            if base == "env" && (has("iu") || text == "-" || text.starts_with("--")) {
                inner.variables.values_mut().for_each(|it| *it = it.or(&Word::literal("")));
            }
            if base == "time" {
                let options = Options::read(words.get(index..).unwrap_or_default(), short, long);
                for file in options.values(&["-o", "--output"]) {
                    self.write(file, state, Last::Followed)?;
                }
            }
            index += if takes_next(&text, short, long) { 2 } else { 1 };
        }
        index += before;
        let rest = words.get(index..).unwrap_or_default().to_vec();
        if rest.is_empty() {
            return Ok(Flow::PLAIN);
        }
        if base == "nohup" {
            self.write_here(state)?;
        }
        // Builtins act on this shell; everything else gets a process of its own.
        if matches!(base, "command" | "builtin") {
            return self.call_program(rest, state);
        }
        // The word of the shell calls functions, the program of the same name does not.
        if base == "time" {
            let name = rest.first().and_then(Word::as_literal).unwrap_or_default();
            if state.functions.contains_key(name) {
                self.call_program(rest.clone(), &mut inner)?;
            }
            return self.call(rest, state);
        }
        self.call_program(rest, &mut inner)?;
        Ok(Flow { success: None, ends: base == "exec" })
    }

    /// `name=value` before the program that `env` runs.
    fn bind_in_environment(&self, word: &Word, state: &mut State<'tree>) -> Judged {
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        for text in &word.texts {
            let name = text.prefix().split_once('=').map(|(name, _)| name.to_owned());
            // Other names are those of functions, whose bodies would be their values.
            let name = name.filter(|it| it.chars().all(is_name)).ok_or_else(|| {
                Denial::new(format_args!("it cannot be told which variable {text} would set"))
            })?;
            let value = text.without_prefix(name.len() + 1);
            self.check_variable_named(&name, &value.to_string())?;
            let value = match word.texts.as_slice() {
                [_] => Word { texts: vec![value], count: word.count },
                _ => state.value_or_unknown(&name).or(&Word::one(value)),
            };
            state.exported.insert(name.clone());
            state.variables.insert(name, value);
        }
        Ok(())
    }

    /// `xargs program`: more words come from what is read.
    pub(super) fn xargs(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let long = ["--max-args", "--max-procs", "--max-chars", "--delimiter", "--arg-file"];
        let (mut index, mut replaced, mut from_file) = (0, None, false);
        while let Some(word) = words.get(index) {
            let Some(text) = word.as_literal().filter(|it| it.starts_with('-')) else { break };
            let takes_next = takes_next(text, "IndPLsEa", &long);
            let is_short = !text.starts_with("--");
            from_file |= (is_short && text.contains('a')) || text.starts_with("--arg-file");
            let mark = match text.split_once(['I', 'i']).filter(|_| is_short) {
                Some((_, mark)) => Some(mark),
                None => text.strip_prefix("--replace="),
            };
            match mark {
                Some("") if takes_next => replaced = words.get(index + 1).cloned(),
                Some("") => replaced = Some(Word::literal("{}")),
                Some(mark) => replaced = Some(Word::literal(mark)),
                None if text == "--replace" => replaced = Some(Word::literal("{}")),
                None => {}
            }
            index += if takes_next { 2 } else { 1 };
        }
        let lines = match &state.stdin {
            Stdin::Lines(texts) if !from_file => Word::among(texts.clone(), Count::Several),
            Stdin::Inherited | Stdin::Text(_) | Stdin::Lines(_) | Stdin::Unknown => {
                Word { count: Count::Several, ..Word::any() }
            }
        };
        let own = words.get(index..).unwrap_or_default();
        let called = match replaced.as_ref().and_then(Word::as_literal) {
            Some(mark) => own.iter().map(|word| put_in(word, mark, &lines)).collect(),
            None => own.iter().cloned().chain([lines]).collect(),
        };
        let mut inner = state.clone();
        inner.stdin = Stdin::Inherited;
        self.call_program(called, &mut inner)?;
        Ok(())
    }

    pub(super) fn find(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        if words.iter().any(|word| word.as_literal() == Some("-files0-from")) {
            return Err(Denial::new("it cannot be told where it begins"));
        }
        let below = below_starts(words);
        let found = Word::among(below.clone(), Count::One);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let action = word.as_literal().unwrap_or_default();
            match action {
                "-delete" => self.write(&found, state, Last::Kept)?,
                "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                    if let Some(file) = words.next() {
                        self.write(file, state, Last::Followed)?;
                    }
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let mut apart = state.clone();
                    let mut found = found.clone();
                    // Each file is met in its own folder, which for the first is the one above.
                    if action.ends_with("dir") {
                        let from_root = below.iter().flat_map(|it| from_root(it, &state.cwd));
                        found = Word::among(from_root, Count::One);
                        apart.cwd = Cwd::Unknown;
                    }
                    let mut inner = Vec::new();
                    let mut after_mark = false;
                    for word in words.by_ref() {
                        let literal = word.as_literal();
                        if literal == Some(";") || (literal == Some("+") && after_mark) {
                            break;
                        }
                        after_mark = literal == Some("{}");
                        inner.push(put_in(word, "{}", &found));
                    }
                    self.call_program(inner, &mut apart)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What `find` would print.
pub(super) fn found(words: &[Word]) -> Stdin {
    let actions = ["-printf", "-fprintf", "-ls", "-fls", "-exec", "-ok", "-files0-from"];
    let prints_otherwise = |text: &Text| match text.as_literal() {
        Some(literal) => actions.iter().any(|it| literal.starts_with(it)),
        None => text.has_any() && (text.prefix().is_empty() || text.prefix().starts_with('-')),
    };
    if words.iter().flat_map(|word| &word.texts).any(prints_otherwise) {
        return Stdin::Unknown;
    }
    Stdin::Lines(below_starts(words))
}

/// All that `find` may come by.
fn below_starts(words: &[Word]) -> Vec<Text> {
    let follows = |word: &Word| matches!(word.as_literal(), Some("-L" | "-follow"));
    if words.iter().any(follows) {
        return vec![Text::any()];
    }
    let mut starts: Vec<Text> = Vec::new();
    let mut rest = words.iter().peekable();
    // Options come first; some finds know more letters than others.
    while let Some(option) = rest.next_if(|word| word.as_literal().is_some_and(is_leading)) {
        match option.as_literal() {
            Some("--") => break,
            Some("-D") => drop(rest.next()),
            Some("-f") => starts.extend(rest.next().map(|it| it.texts.clone()).unwrap_or_default()),
            Some(_) | None => {}
        }
    }
    // A lone dash is a name, and so is what only begins like an operator.
    let is_expression = |text: &Text| match text.prefix() {
        "(" | "!" => text.as_literal().is_some(),
        prefix => prefix.starts_with('-') && text.as_literal() != Some("-"),
    };
    for word in rest.take_while(|word| !word.texts.iter().all(is_expression)) {
        starts.extend(word.texts.iter().filter(|it| !is_expression(it)).cloned());
    }
    if starts.is_empty() {
        starts.push(Text::literal("."));
    }
    let below = starts.iter().map(|start| {
        let mut below = start.clone();
        below.push(Piece::Literal("/".to_owned()));
        below.push(Piece::Beneath);
        below
    });
    below.collect()
}

/// Whether a word is an option of `find` that stands before the places where it begins.
fn is_leading(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    matches!(word, "--" | "-D" | "-f")
        || letters.starts_with('O')
        || (!letters.is_empty() && letters.chars().all(|it| "EHLPXdsx".contains(it)))
}

/// A path by names that mean the same in every folder.
fn from_root(path: &Text, cwd: &Cwd) -> Vec<Text> {
    match cwd {
        Cwd::Among(places) if !path.prefix().starts_with('/') && !path.prefix().is_empty() => {
            let join = |place: &PathBuf| {
                let mut whole = Text::literal(format!("{}/", place.display()));
                whole.extend(path);
                whole
            };
            places.iter().map(join).collect()
        }
        Cwd::Among(_) | Cwd::Unknown => vec![path.clone()],
    }
}

/// A word with every mark replaced.
fn put_in(word: &Word, mark: &str, value: &Word) -> Word {
    match word.as_literal() {
        Some(literal) if literal == mark => value.clone(),
        Some(literal) => match literal.split_once(mark) {
            Some((before, after)) if !after.contains(mark) => Word::among(
                value.texts.iter().map(|text| {
                    let mut whole = Text::literal(before);
                    whole.extend(text);
                    whole.push(Piece::Literal(after.to_owned()));
                    whole
                }),
                value.count,
            ),
            Some(_) => Word::any(),
            None => word.clone(),
        },
        None => word.clone(),
    }
}

/// Whether an option takes the next word as its value. In a cluster, the first letter that takes a
/// value takes the rest of the word, if there is any.
fn takes_next(text: &str, short: &str, long: &[&str]) -> bool {
    if text.starts_with("--") {
        return long.contains(&text);
    }
    text.char_indices()
        .skip(1)
        .find(|(_, it)| short.contains(*it))
        .is_some_and(|(at, it)| at + it.len_utf8() == text.len())
}
