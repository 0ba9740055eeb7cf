//! Options and positional words, as most programs read them.

use crate::text::{Text, Word};

#[derive(Debug, Default)]
pub(crate) struct Options {
    flags: Vec<(String, Option<Word>)>,
    pub(crate) positional: Vec<Word>,
}

impl Options {
    /// Reads words. `short` has the letters, `long` the names with dashes of the options that take
    /// a value.
    pub(crate) fn read(words: &[Word], short: &str, long: &[&str]) -> Self {
        let mut options = Self::default();
        let mut words = words.iter();
        let mut only_positional = false;
        while let Some(word) = words.next() {
            let [text] = word.texts.as_slice() else {
                options.positional.push(word.clone());
                continue;
            };
            let prefix = text.prefix();
            if only_positional || !prefix.starts_with('-') || text.as_literal() == Some("-") {
                options.positional.push(word.clone());
            } else if text.as_literal() == Some("--") {
                only_positional = true;
            } else if prefix.starts_with("--") {
                match prefix.split_once('=') {
                    Some((name, _)) => {
                        let value = Word::one(text.without_prefix(name.len() + 1));
                        options.flags.push((name.to_owned(), Some(value)));
                    }
                    None => {
                        let value =
                            if long.contains(&prefix) { words.next().cloned() } else { None };
                        options.flags.push((prefix.to_owned(), value));
                    }
                }
            } else {
                let rest = options.cluster(text, short);
                if let Some(name) = rest {
                    options.flags.push((name, words.next().cloned()));
                }
            }
        }
        options
    }

    /// `-abc`: says the option that takes the next word as its value, if the last one does.
    fn cluster(&mut self, text: &Text, short: &str) -> Option<String> {
        for (at, letter) in text.prefix().char_indices().skip(1) {
            let name = format!("-{letter}");
            if !short.contains(letter) {
                self.flags.push((name, None));
                continue;
            }
            let value = text.without_prefix(at + letter.len_utf8());
            if value.is_empty() {
                return Some(name);
            }
            self.flags.push((name, Some(Word::one(value))));
            return None;
        }
        None
    }

    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    pub(crate) fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Word> {
        self.flags
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_ref())
    }

    /// The positional words that are known, for subcommands.
    pub(crate) fn subcommands(&self) -> Vec<&str> {
        self.positional.iter().map_while(Word::as_literal).collect()
    }
}
