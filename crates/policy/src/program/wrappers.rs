//! Programs that run another one, named in their own words.

use super::Options;
use crate::place::Last;
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
            "numactl" => ("NmCpl", &["--cpunodebind", "--membind", "--physcpubind"], 0),
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
            if let (true, Some((name, value))) =
                (base == "env" && !text.starts_with('-'), text.split_once('='))
            {
                self.check_variable_named(name, value)?;
                index += 1;
                continue;
            }
            if !text.starts_with('-') || text.len() < 2 {
                break;
            }
            let takes_next = match text.strip_prefix("--") {
                Some(_) => long.contains(&text.as_str()),
                None => text.len() == 2 && text.chars().nth(1).is_some_and(|it| short.contains(it)),
            };
            let options = Options::read(words.get(index..).unwrap_or_default(), short, long);
            if base == "command" && options.has(&["-v", "-V"]) {
                return Ok(Flow::PLAIN);
            }
            if base == "env"
                && (text.starts_with("-C")
                    || text.starts_with("--chdir")
                    || text.starts_with("-S")
                    || text.starts_with("--split"))
            {
                return Err(Denial::new(format_args!("{text} is not allowed here; use cd")));
            }
            if base == "time" && (text.starts_with("-o") || text.starts_with("--output")) {
                for file in options.values(&["-o", "--output"]) {
                    self.write(file, state, Last::Followed)?;
                }
            }
            index += if takes_next { 2 } else { 1 };
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
        if matches!(base, "command" | "builtin" | "time") {
            return self.call_program(rest, state);
        }
        self.call_program(rest, &mut inner)?;
        Ok(Flow { success: None, ends: base == "exec" })
    }

    /// Calls a program even if a function has its name.
    pub(super) fn call_program(
        &mut self,
        words: Vec<Word>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        self.call(words, state)
    }

    /// `xargs program`: more words come from what is read.
    pub(super) fn xargs(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let long =
            ["--max-args", "--max-procs", "--max-lines", "--replace", "--delimiter", "--arg-file"];
        let (mut index, mut replaced) = (0, None);
        while let Some(word) = words.get(index) {
            let Some(text) = word.as_literal().filter(|it| it.starts_with('-')) else { break };
            let option = text.get(..2).unwrap_or_default();
            let takes_next = (text.len() == 2
                && "IndPLsEa".contains(text.get(1..).unwrap_or_default()))
                || long.contains(&text);
            if ["-I", "-i"].contains(&option) {
                let value = if takes_next { words.get(index + 1).cloned() } else { None };
                let glued = text.get(2..).filter(|it| !it.is_empty()).map(Word::literal);
                replaced = value.or(glued).or_else(|| Some(Word::literal("{}")));
            }
            index += if takes_next { 2 } else { 1 };
        }
        let lines = match &state.stdin {
            Stdin::Lines(texts) => Word::among(texts.clone(), Count::Several),
            Stdin::Inherited | Stdin::Text(_) | Stdin::Unknown => {
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

    pub(super) fn find(&mut self, base: &str, words: &[Word], state: &mut State<'tree>) -> Judged {
        if base != "find" {
            let runs = ["-x", "-X", "--exec", "--exec-batch"];
            if words.iter().filter_map(Word::as_literal).any(|word| runs.contains(&word)) {
                return Err(Denial::new("what it would run cannot be seen beforehand; use find"));
            }
            return Ok(());
        }
        let Stdin::Lines(found) = found(words) else {
            return Err(Denial::new("its words could not be understood"));
        };
        let follows = words.iter().any(|word| word.as_literal() == Some("-L"));
        let found = if follows { Word::any() } else { Word::among(found, Count::One) };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_literal().unwrap_or_default() {
                "-delete" => self.write(&found, state, Last::Kept)?,
                "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                    if let Some(file) = words.next() {
                        self.write(file, state, Last::Followed)?;
                    }
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let ends = |word: &&Word| matches!(word.as_literal(), Some(";" | "+"));
                    let inner: Vec<Word> = words
                        .by_ref()
                        .take_while(|word| !ends(word))
                        .map(|word| put_in(word, "{}", &found))
                        .collect();
                    self.call_program(inner, &mut state.clone())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What `find` would print.
pub(super) fn found(words: &[Word]) -> Stdin {
    let expression = |word: &&Word| {
        let begins = |text: &Text| text.prefix().starts_with(['-', '(', '!']);
        word.texts.iter().any(begins) && word.as_literal() != Some("-L")
    };
    let mut starts: Vec<Text> = words
        .iter()
        .take_while(|word| !expression(word))
        .filter(|word| word.as_literal() != Some("-L"))
        .flat_map(|word| word.texts.clone())
        .collect();
    if starts.is_empty() {
        starts.push(Text::literal("."));
    }
    let below = starts.iter().map(|start| {
        let mut below = start.clone();
        below.push(Piece::Literal("/".to_owned()));
        below.push(Piece::Beneath);
        below
    });
    Stdin::Lines(below.collect())
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
