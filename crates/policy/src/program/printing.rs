//! What `echo`, `printf`, `cat` and `mktemp` print.

use crate::shell::{State, Stdin, Walk};
use crate::text::{Piece, Text};

impl<'tree> Walk<'_, 'tree> {
    /// The name of the file or folder that `mktemp` makes.
    pub(super) fn temporary(&self, words: &[&str]) -> Stdin {
        let named = |before: &str| {
            let mut name = Text::literal(before);
            name.push(Piece::Plain);
            Stdin::Lines(vec![name])
        };
        match words {
            [] | ["-d"] => {
                let folder = self.policy.variables.get("TMPDIR").map_or("/tmp", String::as_str);
                named(&format!("{}/tmp.", folder.trim_end_matches('/')))
            }
            [template] | ["-d", template] if !template.starts_with('-') => {
                match template.trim_end_matches('X') {
                    start if template.len() >= start.len() + 3 => named(start),
                    _ => Stdin::Unknown,
                }
            }
            _ => Stdin::Unknown,
        }
    }

    /// What is in these files, one after the other; nothing if one may have been written before, or
    /// may have been left as it was.
    pub(super) fn contents(&self, files: &[&str], state: &State<'tree>) -> Option<String> {
        let content = |file: &&str| {
            let disk = &self.bounds.disk;
            let is_known = !file.starts_with('-') && disk.is_as_before(file, &state.cwd);
            is_known.then(|| disk.script_in(&Text::literal(*file), &state.cwd)).flatten()
        };
        files.iter().map(content).collect()
    }
}

/// What `echo` or `printf` prints; nothing if that depends on more than line breaks and tabs.
pub(super) fn printed(name: &str, words: &[&str]) -> Option<String> {
    match (name, words) {
        ("echo", ["-n", words @ ..]) => Some(words.join(" ")).filter(|it| !it.contains('\\')),
        ("echo", ["-e" | "-ne" | "-en", words @ ..]) => unescaped(&words.join(" ")),
        ("printf", ["%s" | "%s\\n", text]) => Some((*text).to_owned()),
        ("printf", [format]) if !format.contains('%') => unescaped(format),
        _ => None,
    }
}

fn unescaped(text: &str) -> Option<String> {
    let text = text.replace("\\n", "\n").replace("\\t", "\t");
    (!text.contains('\\')).then_some(text)
}
