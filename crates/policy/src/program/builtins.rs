//! Builtins that change the shell itself: its directory, its options, its variables.

use super::Options;
use crate::place::{Cwd, tidy};
use crate::shell::{Flow, State, Walk};
use crate::text::{Count, Text, Word};
use crate::{Denial, Judged};

/// Options of the shell that do not change how what is judged here is read. Others make `cd` go
/// elsewhere, match other names, or keep what is changed in a pipeline.
const HARMLESS: &[&str] = &[
    "checkwinsize",
    "dotglob",
    "expand_aliases",
    "failglob",
    "globstar",
    "histappend",
    "inherit_errexit",
    "nocasematch",
    "nullglob",
];

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn change_directory(
        &self,
        base: &str,
        words: &[Word],
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let options = Options::read(words, "", &[]);
        let stack = |word: &Word| word.texts.iter().any(|it| it.prefix().starts_with(['+', '-']));
        let target = match (base, options.positional.as_slice()) {
            ("cd", []) => self.policy.home().map(|home| Word::literal(home.to_string_lossy())),
            ("cd", [word]) if word.as_literal() != Some("-") => Some(word.clone()),
            ("pushd", [word]) if !stack(word) && !options.has(&["-n"]) => Some(word.clone()),
            _ => None,
        };
        let mut there = Vec::new();
        let mut exists = true;
        let texts = target.map(|word| word.texts).unwrap_or_default();
        for text in &texts {
            let (Some(name), Cwd::Among(from)) = (text.as_literal(), &state.cwd) else {
                there.clear();
                break;
            };
            for from in from {
                let path = tidy(&from.join(name));
                exists &= path.is_dir();
                there.push(path);
            }
            if options.has(&["-P"]) {
                there.extend(from.iter().filter_map(|it| it.join(name).canonicalize().ok()));
            }
        }
        let touched = self.bounds.disk.removes || self.bounds.disk.unseen;
        // Where a link leads is only known if it is there and as it was before.
        let is_known = !there.is_empty() && (!options.has(&["-P"]) || (exists && !touched));
        let there = if is_known { Cwd::Among(there) } else { Cwd::Unknown };
        let before = state.cwd.clone();
        let mut succeeded = state.clone();
        succeeded.cwd = there.clone();
        // A folder that was there may have been removed by this very command.
        state.cwd = if exists && !self.bounds.disk.removes { there } else { there.or(&before) };
        Ok(Flow { success: Some(Box::new(succeeded)), ends: false })
    }

    /// `set` with options or with parameters.
    pub(super) fn set(&self, words: &[Word], state: &mut State<'tree>) -> Judged {
        state.parameters = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            for text in &word.texts {
                if text.as_literal().is_none() && !text.prefix().starts_with(char::is_alphanumeric)
                {
                    return Err(Denial::new("its options cannot be told; put -- before values"));
                }
            }
            let text = word.as_literal().unwrap_or_default();
            match text.strip_prefix(['-', '+']) {
                None | Some("" | "-") => break,
                Some(letters) => check_letters(letters, &mut words)?,
            }
        }
        Ok(())
    }

    pub(super) fn shopt(&self, words: &[Word]) -> Judged {
        let options = Options::read(words, "", &[]);
        if !options.has(&["-s", "-u"]) {
            return Ok(());
        }
        for word in &options.positional {
            let name = word.as_literal().unwrap_or_default();
            if options.has(&["-o"]) {
                check_named(name)?;
            } else if !HARMLESS.contains(&name) {
                return Err(option_denied(name));
            }
        }
        Ok(())
    }

    pub(super) fn printf(&self, words: &[Word], state: &mut State<'tree>) -> Judged {
        // The first of several words may be an option with the name of any variable.
        let several = words.len() > 1 || words.iter().any(|it| it.count == Count::Several);
        if several && words.first().is_some_and(|it| it.texts.contains(&Text::any())) {
            state.forget_all();
        }
        let names: Vec<Word> = Options::read(words, "v", &[]).values(&["-v"]).cloned().collect();
        self.forget(&names, state)
    }

    /// The variables of these names may have any value from now on.
    pub(super) fn forget(&self, words: &[Word], state: &mut State<'_>) -> Judged {
        for text in words.iter().flat_map(|word| &word.texts) {
            match text.as_literal() {
                Some(name) if name.starts_with('-') => {}
                Some(name) => {
                    let name = name.split('[').next().unwrap_or_default().to_owned();
                    self.check_variable_named(&name, "any")?;
                    state.variables.insert(name, Word { count: Count::Several, ..Word::any() });
                }
                // Any variable at all may have been set.
                None => state.forget_all(),
            }
        }
        Ok(())
    }
}

/// Checks a cluster of options of `set` or of a shell; some take the next word.
pub(super) fn check_letters<'a>(
    letters: &str,
    words: &mut impl Iterator<Item = &'a Word>,
) -> Judged {
    for letter in letters.chars() {
        match letter {
            'P' => return Err(option_denied("physical")),
            'k' => return Err(option_denied("keyword")),
            'o' => check_named(words.next().map_or(Some(""), Word::as_literal).unwrap_or("…"))?,
            'O' => {
                let name = words.next().map_or(Some(""), Word::as_literal).unwrap_or("…");
                if !name.is_empty() && !HARMLESS.contains(&name) {
                    return Err(option_denied(name));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// `set -o name`: with one the shell goes to other places than its words say, with the other any
/// word may be an assignment.
fn check_named(name: &str) -> Judged {
    if ["physical", "keyword", "…"].contains(&name) {
        return Err(option_denied(name));
    }
    Ok(())
}

fn option_denied(name: &str) -> Denial {
    Denial::new(format_args!("the option {name} changes how commands are read"))
}
