//! Programs with a language of their own: sed, awk, and those that cannot be looked into.

mod awk;
mod sed;

use super::Options;
use crate::place::Last;
use crate::shell::{State, Stdin, Walk};
use crate::text::{Text, Word};
use crate::{Denial, Judged};

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn sed(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let mut without_suffix = Vec::new();
        for word in words {
            let (word, suffix) = cut_suffix(word);
            // `*` in it stands for the name, so that a backup may be anywhere.
            if suffix.is_some_and(|it| it.has_any() || it.to_string().contains('/')) {
                return Err(Denial::new("its backups would lie in another folder"));
            }
            without_suffix.push(word);
        }
        let options =
            Options::read(&without_suffix, "efl", &["--expression", "--file", "--line-length"]);
        if options.has(&["-f", "--file"]) {
            return Err(Denial::new("what is in its script cannot be seen; give it with -e"));
        }
        let given: Vec<&Word> = options.values(&["-e", "--expression"]).collect();
        let from_words = given.is_empty();
        let scripts =
            if from_words { options.positional.first().into_iter().collect() } else { given };
        for text in scripts.iter().flat_map(|word| &word.texts) {
            self.sed_script(text, state)?;
        }
        if options.has(&["-i", "--in-place"]) || words.iter().any(is_in_place) {
            for file in options.positional.iter().skip(usize::from(from_words)) {
                self.write(file, state, Last::Followed)?;
            }
        }
        Ok(())
    }

    /// `w file` writes, `e` runs, also as flags of `s`.
    fn sed_script(&self, text: &Text, state: &State<'tree>) -> Judged {
        let unseen = || Denial::new("its script cannot be seen beforehand");
        let script = text.sample().ok_or_else(unseen)?;
        let files = sed::files(&script)
            .ok_or_else(|| Denial::new("its script runs programs, or cannot be understood"))?;
        for file in files {
            self.policy.may_write(&Text::literal(file), &state.cwd, Last::Followed)?;
        }
        Ok(())
    }

    pub(super) fn awk(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(
            words,
            "Fvfieo",
            &["--file", "--include", "--field-separator", "--assign", "--source"],
        );
        if options.has(AWK_UNSEEN) {
            return Err(Denial::new("what is in its program cannot be seen; give it as a word"));
        }
        let mut programs: Vec<&Word> = options.values(&["-e", "--source"]).collect();
        if programs.is_empty() {
            programs.extend(options.positional.first());
        }
        for text in programs.iter().flat_map(|word| &word.texts) {
            let unseen = || Denial::new("its program cannot be seen beforehand");
            self.awk_program(&text.sample().ok_or_else(unseen)?, state)?;
        }
        Ok(())
    }

    fn awk_program(&mut self, program: &str, state: &mut State<'tree>) -> Judged {
        let unseen =
            || Denial::new("its program runs programs or writes files that cannot be told");
        if program.contains("system") || program.contains('@') {
            return Err(unseen());
        }
        let (code, strings) = awk::without_strings(program).ok_or_else(unseen)?;
        let mut strings = strings.into_iter();
        for statement in code.split([';', '\n', '{', '}']) {
            let prints = statement.contains("print");
            let pipes = statement.replace("||", "").contains('|');
            if pipes {
                return Err(unseen());
            }
            let redirect = statement.rfind('>').filter(|_| prints);
            let own: Vec<String> =
                strings.by_ref().take(statement.matches('\u{1}').count()).collect();
            if let Some(at) = redirect {
                let target = statement.get(at + 1..).unwrap_or_default().trim();
                let in_condition = statement
                    .get(..at)
                    .is_some_and(|it| it.matches('(').count() > it.matches(')').count());
                match (target, own.last()) {
                    _ if in_condition => {}
                    ("\u{1}", Some(file)) => {
                        self.policy.may_write(&Text::literal(file), &state.cwd, Last::Followed)?;
                    }
                    _ => return Err(unseen()),
                }
            }
        }
        Ok(())
    }

    /// Languages without a parser here: files may be run, code in words may not.
    pub(super) fn other_language(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let code = |it: &str| {
            let short = it.strip_prefix('-').unwrap_or_default();
            let long = it.split('=').next().unwrap_or_default();
            ["--eval", "--print", "--run", "--expression", "--execute"].contains(&long)
                || (!short.starts_with('-') && short.contains(['e', 'E', 'p', 'r', 'R', 'B', 'i']))
        };
        let first = words.first().and_then(Word::as_literal).unwrap_or_default();
        // What these install lies outside, and what they run is in a word.
        if ["eval", "repl", "task", "install", "upgrade", "CMD"].contains(&first) {
            return Err(Denial::new(format_args!("{first} is not allowed; use Python")));
        }
        if words.iter().filter_map(Word::as_literal).any(code) {
            return Err(Denial::new(
                "its code cannot be looked into; use Python or the editing tools",
            ));
        }
        let options = |word: &Word| word.as_literal().is_some_and(|it| it.starts_with('-'));
        if words.iter().all(options) && !matches!(state.stdin, Stdin::Inherited) {
            return Err(Denial::new("its code cannot be looked into; use Python"));
        }
        self.hand_over_all(words, state)
    }
}

/// Options by which awk reads its program from a file, or writes one that they name.
const AWK_UNSEEN: &[&str] = &[
    "-f",
    "--file",
    "-i",
    "--include",
    "-l",
    "--load",
    "-E",
    "--exec",
    "-o",
    "--pretty-print",
    "-p",
    "--profile",
    "-d",
    "--dump-variables",
    "-D",
    "--debug",
];

/// `-i.bak` or `--in-place=.bak` without its suffix, and the suffix.
fn cut_suffix(word: &Word) -> (Word, Option<Text>) {
    let [text] = word.texts.as_slice() else { return (word.clone(), None) };
    let prefix = text.prefix();
    let at = if prefix.starts_with("--in-place") {
        prefix.find('=').map(|at| (at, at + 1))
    } else if prefix.starts_with('-') && !prefix.starts_with("--") {
        // The first letter that takes a value takes the rest.
        let at = prefix.find(['i', 'e', 'f', 'l']).filter(|at| prefix.get(*at..=*at) == Some("i"));
        at.map(|at| (at + 1, at + 1))
    } else {
        None
    };
    match at {
        Some((end, begin)) => {
            let option = Word::literal(prefix.get(..end).unwrap_or_default());
            (option, Some(text.without_prefix(begin)))
        }
        None => (word.clone(), None),
    }
}

/// `-i`, also with a suffix and among other letters: `-i.bak`, `-ni`.
pub(super) fn is_in_place(word: &Word) -> bool {
    word.texts.iter().any(|text| {
        let prefix = text.prefix();
        prefix.starts_with("--in-place")
            || (prefix.starts_with('-') && !prefix.starts_with("--") && prefix.contains('i'))
    })
}
