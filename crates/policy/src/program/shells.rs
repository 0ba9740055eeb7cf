//! Shells in shells, and files that are run.

use super::builtins::check_letters;
use super::{Options, pythons};
use crate::shell::{Flow, State, Stdin, Walk, run_source};
use crate::text::{Text, Word};
use crate::{Denial, Judged};

impl<'tree> Walk<'_, 'tree> {
    /// Runs a source in a shell of its own.
    pub(crate) fn run_apart(&mut self, source: &str, state: &State<'tree>) -> Judged {
        run_source(self.policy, source, &mut state.clone(), self.bounds)
    }

    pub(super) fn eval(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged<Flow<'tree>> {
        let literals: Option<Vec<&str>> = words.iter().map(Word::as_literal).collect();
        let source = literals.ok_or_else(unseen)?.join(" ");
        self.check_functions_in(&source, state)?;
        self.run_inner(&source, &state.clone(), state)?;
        Ok(Flow::PLAIN)
    }

    pub(super) fn source_file(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let Some([text]) = words.first().map(|word| word.texts.as_slice()) else {
            return Err(unseen());
        };
        // Environments are activated by scripts of their makers, which set variables.
        if text.to_string().ends_with("bin/activate") && !self.is_inside(&text.to_string(), state) {
            return Ok(());
        }
        let source =
            self.bounds.disk.script_in(text, &state.cwd).ok_or_else(|| unreadable(text))?;
        self.check_functions_in(&source, state)?;
        self.run_inner(&source, &state.clone(), state)
    }

    pub(super) fn trap(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(words, "", &[]);
        let Some((code, signals)) = options.positional.split_first() else { return Ok(()) };
        let source = code.as_literal().ok_or_else(unseen)?;
        self.bounds.traps.set(source, state);
        for name in functions_in(source, state) {
            let bodies = state.functions.get(name).map(|it| it.bodies.clone()).unwrap_or_default();
            for body in bodies {
                let body = self.text(body).to_owned();
                self.bounds.traps.set(&body, state);
            }
        }
        let mut inner = state.clone();
        run_source(self.policy, source, &mut inner, self.bounds)?;
        let at_the_end = |it: &Word| matches!(it.as_literal(), Some("EXIT" | "0"));
        if signals.iter().all(at_the_end) {
            return Ok(());
        }
        self.check_functions_in(source, state)?;
        check_unchanged(&inner, state)
    }

    /// Runs another source, which does not know the functions of this one. If it calls them, neither
    /// they nor it must change what the other relies on.
    fn run_inner(&mut self, source: &str, outer: &State<'_>, inner: &mut State<'_>) -> Judged {
        let before = inner.clone();
        run_source(self.policy, source, inner, self.bounds)?;
        if functions_in(source, outer).is_empty() {
            return Ok(());
        }
        check_unchanged(inner, &before)
    }

    fn check_functions_in(&mut self, source: &str, state: &State<'tree>) -> Judged {
        for name in functions_in(source, state) {
            let mut inner = State { parameters: None, ..state.clone() };
            self.call(vec![Word::literal(name)], &mut inner)?;
            check_unchanged(&inner, state)?;
        }
        Ok(())
    }

    pub(super) fn shell(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let mut inner = state.for_other_shell();
        let mut rest = words.iter();
        let (mut is_code, mut is_stdin) = (false, false);
        let mut first = None;
        // Options end at the first word that is none.
        while let Some(word) = rest.next() {
            let text = word.as_literal().ok_or_else(unseen)?;
            match text.strip_prefix(['-', '+']) {
                Some("-init-file" | "-rcfile") => return Err(unseen()),
                Some("" | "-") => {
                    first = rest.next();
                    break;
                }
                Some(long) if long.starts_with('-') => {}
                Some(letters) => {
                    is_code |= letters.contains('c');
                    is_stdin |= letters.contains('s');
                    check_letters(letters, &mut rest)?;
                }
                None => {
                    first = Some(word);
                    break;
                }
            }
        }
        let source = match first {
            Some(code) if is_code => {
                rest.next();
                code.as_literal().ok_or_else(unseen)?.to_owned()
            }
            None if is_code => return Ok(()),
            Some(script) if !is_stdin => {
                let [text] = script.texts.as_slice() else { return Err(unseen()) };
                self.bounds.disk.script_in(text, &state.cwd).ok_or_else(|| unreadable(text))?
            }
            Some(_) | None => match &state.stdin {
                Stdin::Inherited => return Ok(()),
                Stdin::Text(text) => text.as_literal().ok_or_else(unseen)?.to_owned(),
                Stdin::Lines(_) | Stdin::Unknown => return Err(unseen()),
            },
        };
        inner.parameters = Some(rest.cloned().collect());
        self.check_functions_in(&source, state)?;
        self.run_inner(&source, state, &mut inner)
    }

    /// A file of the working directory is run by its name.
    pub(super) fn execute_file(
        &mut self,
        name: &str,
        words: &[Word],
        state: &mut State<'tree>,
    ) -> Judged {
        let file = Text::literal(name);
        let Some(content) = self.bounds.disk.script_in(&file, &state.cwd) else {
            return if self.bounds.disk.is_as_before(name, &state.cwd) {
                self.hand_over_all(words, state)
            } else {
                Err(unreadable(&file))
            };
        };
        let first = content.lines().next().unwrap_or_default();
        let program = first.strip_prefix("#!").map(|line| {
            let mut words = line.split(['/', ' ']).filter(|word| !word.is_empty());
            words.rfind(|word| !word.starts_with('-')).unwrap_or_default().to_owned()
        });
        match program.as_deref() {
            Some(python) if pythons::is_python(python) => {
                self.python_source(&content, state)?;
                self.python_words(words, state)
            }
            None | Some("sh" | "bash" | "dash" | "zsh" | "ksh") => {
                let mut inner = state.for_other_shell();
                inner.parameters = Some(words.to_vec());
                run_source(self.policy, &content, &mut inner, self.bounds)
            }
            Some(other) => {
                let reason = format_args!("{name} is run by {other}, which cannot be looked into");
                Err(Denial::new(reason))
            }
        }
    }
}

/// Code that is run at any time must leave variables and the directory as they are.
/// The names of functions that stand in another source.
fn functions_in<'a>(source: &'a str, state: &State<'_>) -> Vec<&'a str> {
    let separates = |it: char| !it.is_ascii_alphanumeric() && !"_-.".contains(it);
    source.split(separates).filter(|word| state.functions.contains_key(*word)).collect()
}

fn check_unchanged(after: &State<'_>, before: &State<'_>) -> Judged {
    if after.variables == before.variables && after.cwd == before.cwd {
        return Ok(());
    }
    Err(Denial::new("it would change variables or the directory where that cannot be followed"))
}

fn unseen() -> Denial {
    Denial::new("what it would run cannot be seen beforehand")
}

fn unreadable(text: &Text) -> Denial {
    Denial::new(format_args!(
        "{text} cannot be looked into beforehand; write it first, and run it in a command of its own"
    ))
}
