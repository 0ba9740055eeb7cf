//! Compilers and linkers: they read from anywhere, and write here and where their options say.

use crate::place::Last;
use crate::shell::{State, Walk};
use crate::text::{Text, Word};
use crate::{Denial, Judged};

/// Options whose value, the next word or the rest of this one, is written.
const WRITTEN: &[&str] = &[
    "-o",
    "-MF",
    "-Map",
    "-aux-info",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-keep-dir",
    "-odir",
    "-object-directory",
    "--dependency-file",
    "--dependency-output",
    "--keep-dir",
    "--object-directory",
    "--output",
    "--output-directory",
    "--output-file",
];

/// Beginnings of words by which something else is run, or other options are read from a file.
const RUN: &[&str] = &["-wrapper", "-fplugin", "-fpass-plugin", "@"];

/// Beginnings of options whose values are only read, or not even paths.
const READ: &[&str] = &["-fuse-ld", "-fmodule", "-fsanitize"];

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn compiler(&self, words: &[Word], state: &State<'tree>) -> Judged {
        for option in WRITTEN {
            self.write_after(option, words, state)?;
        }
        for text in words.iter().flat_map(|word| &word.texts) {
            let prefix = text.prefix();
            if RUN.iter().any(|it| prefix.starts_with(it)) {
                return Err(Denial::new("options that run something else are not allowed"));
            }
            let value = prefix.find('=').map(|at| text.without_prefix(at + 1));
            let names_file = WRITTEN.iter().any(|it| prefix.starts_with(&format!("{it}=")))
                || (prefix.starts_with("-f")
                    && !prefix.contains("-map=")
                    && !READ.iter().any(|it| prefix.starts_with(it)));
            if let Some(value) = value.filter(|_| names_file) {
                self.policy.may_write(&value, &state.cwd, Last::Followed)?;
            }
            self.passed_on(text, state)?;
        }
        self.write_here(state)
    }

    /// `-Wl,-Map,file`, `-Wa,-ahl=file`: options for the linker and the assembler.
    fn passed_on(&self, text: &Text, state: &State<'tree>) -> Judged {
        let shown = text.to_string();
        if !["-Wl,", "-Wa,", "-Wp,", "-Xlinker="].iter().any(|it| shown.starts_with(it)) {
            return Ok(());
        }
        let mut parts = shown.split([',', '=']).skip(1).peekable();
        while let Some(part) = parts.next() {
            let writes = WRITTEN.contains(&part)
                || ["-M", "-MD", "-MMD", "-a"].iter().any(|it| part.starts_with(it));
            if let Some(file) = parts.peek().filter(|_| writes) {
                self.policy.may_write(&Text::literal(*file), &state.cwd, Last::Followed)?;
            }
        }
        Ok(())
    }
}
