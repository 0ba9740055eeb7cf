//! Programs whose targets are known.

mod compilers;

use super::Options;
use super::links::Link;
use crate::place::{Cwd, Last, Place};
use crate::shell::{State, Stdin, Walk};
use crate::text::{Count, Piece, Text, Word};
use crate::{Denial, Judged};

/// Options of rsync whose value may be the next word.
const RSYNC_VALUES: &[&str] = &[
    "--rsh",
    "--exclude",
    "--include",
    "--filter",
    "--exclude-from",
    "--include-from",
    "--files-from",
    "--log-file",
    "--backup-dir",
    "--temp-dir",
    "--partial-dir",
    "--write-batch",
    "--only-write-batch",
    "--rsync-path",
    "--remote-option",
];

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn files(&mut self, base: &str, words: &[Word], state: &mut State<'tree>) -> Judged {
        let read = |short, long| Options::read(words, short, long);
        match base {
            "rm" | "rmdir" | "unlink" | "shred" => {
                for word in &read("", &[]).positional {
                    self.remove(word, state)?;
                }
            }
            "touch" => {
                self.touch_all(&read("drt", &["--date", "--reference"]).positional, state)?
            }
            "truncate" => {
                self.write_all(&read("sr", &["--size", "--reference"]).positional, state)?
            }
            "fallocate" => {
                self.write_all(&read("lo", &["--length", "--offset"]).positional, state)?
            }
            "mkdir" | "mkfifo" => {
                let targets = read("m", &["--mode"]).positional;
                self.touch_all(&targets, state)?;
                for text in targets.iter().flat_map(|word| &word.texts) {
                    self.bounds.disk.make_folder(text, &state.cwd);
                }
            }
            "tee" | "dos2unix" | "unix2dos" | "strip" => {
                let targets = read("", &[]).positional;
                self.write_all(&targets, state)?;
                if let (Stdin::Text(text), "tee") = (&state.stdin, base) {
                    for target in targets.iter().flat_map(|word| &word.texts) {
                        self.bounds.disk.say(target, &state.cwd, &text.to_string());
                    }
                }
            }
            "chmod" | "chown" | "chgrp" => {
                let options = read("", &["--reference", "--from"]);
                // A mode such as `-x` looks like an option.
                let takes_mode = !options.has(&["--reference"])
                    && !words.iter().any(|word| is_negative_mode(base, word));
                let targets = options.positional.get(usize::from(takes_mode)..);
                self.touch_all(targets.unwrap_or_default(), state)?;
            }
            "setfacl" => self.touch_all(&read("mx", &[]).positional, state)?,
            "cp" | "install" => self.copy(base, words, state)?,
            "mv" => self.copy(base, words, state)?,
            "ln" | "link" => self.link(words, state)?,
            "rsync" => self.rsync(words, state)?,
            "split" => {
                let options =
                    read("abClnt", &["--lines", "--bytes", "--number", "--suffix-length"]);
                if options.has(&["--filter"]) {
                    return Err(Denial::new("--filter is not allowed"));
                }
                // What is taken for a file here may be the value of an option before it.
                match options.positional.get(1..) {
                    Some(prefixes @ [_, ..]) => self.touch_all(prefixes, state)?,
                    Some([]) | None => self.write_here(state)?,
                }
            }
            "mktemp" => self.mktemp(words, state)?,
            "sort" => {
                let options = read("okStT", &["--output", "--key", "--temporary-directory"]);
                for file in options.values(&["-o", "--output", "-T", "--temporary-directory"]) {
                    self.write(file, state, Last::Followed)?;
                }
                if options.has(&["--compress-program"]) {
                    return Err(Denial::new("--compress-program is not allowed"));
                }
            }
            "uniq" => {
                let options = read("fsw", &["--skip-fields", "--skip-chars", "--check-chars"]);
                self.touch_all(options.positional.get(1..).unwrap_or_default(), state)?;
            }
            "tree" => self.write_after("-o", words, state)?,
            "dd" => {
                for text in words.iter().flat_map(|word| &word.texts) {
                    if text.prefix().starts_with("of=") || text.prefix().is_empty() {
                        let target = text.without_prefix("of=".len());
                        self.policy.may_write(&target, &state.cwd, Last::Followed)?;
                    }
                }
            }
            "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "nvcc" | "ld" => {
                self.compiler(words, state)?;
            }
            "nvidia-smi" => {
                self.write_after("-f", words, state)?;
                for file in read("f", &["--filename"]).values(&["--filename"]) {
                    self.write(file, state, Last::Followed)?;
                }
            }
            // `date` and `yes` change nothing; what sets the clock is on the list.
            _ => {}
        }
        Ok(())
    }

    /// The word after an option, or the rest of the option itself, is written. For programs whose
    /// other options may look like clusters with this one in them.
    pub(in crate::program) fn write_after(
        &self,
        option: &str,
        words: &[Word],
        state: &State<'tree>,
    ) -> Judged {
        let mut takes_next = false;
        for word in words {
            if takes_next {
                self.write(word, state, Last::Followed)?;
            }
            takes_next = word.as_literal() == Some(option);
            for text in word.texts.iter().filter(|it| it.prefix().starts_with(option)) {
                let glued = text.without_prefix(option.len());
                if !glued.is_empty() {
                    self.policy.may_write(&glued, &state.cwd, Last::Followed)?;
                }
            }
        }
        Ok(())
    }

    fn write_all(&mut self, targets: &[Word], state: &State<'tree>) -> Judged {
        self.touch_all(targets, state)?;
        for text in targets.iter().flat_map(|word| &word.texts) {
            self.bounds.disk.write(text, &state.cwd, None);
        }
        Ok(())
    }

    /// Files are made or marked, but what is in them stays.
    fn touch_all(&self, targets: &[Word], state: &State<'tree>) -> Judged {
        targets.iter().try_for_each(|word| self.write(word, state, Last::Followed))
    }

    /// Removing keeps to the link itself, but must leave the working directory.
    fn remove(&mut self, word: &Word, state: &State<'tree>) -> Judged {
        self.bounds.disk.removes = true;
        self.write(word, state, Last::Kept)?;
        for text in &word.texts {
            if self.policy.place(text, &state.cwd, Last::Kept) == Place::Border {
                let reason = format_args!("{text} is the working directory itself");
                return Err(Denial::new(reason));
            }
        }
        Ok(())
    }

    fn copy(&mut self, base: &str, words: &[Word], state: &mut State<'tree>) -> Judged {
        let long = ["--target-directory", "--suffix", "--mode", "--owner", "--group", "--backup"];
        let options = Options::read(words, if base == "install" { "tSmog" } else { "tS" }, &long);
        let into: Vec<&Word> = options.values(&["-t", "--target-directory"]).collect();
        let creates = base == "install" && options.has(&["-d", "--directory"]);
        let (sources, targets): (&[Word], Vec<&Word>) = match options.positional.split_last() {
            _ if creates => (&[], options.positional.iter().collect()),
            _ if !into.is_empty() => (&options.positional, into),
            Some((last, sources)) if last.count == Count::One => (sources, vec![last]),
            Some(_) => (&options.positional, options.positional.iter().collect()),
            None => return Ok(()),
        };
        let links = base == "cp"
            && options.has(&["-s", "-l", "--symbolic-link", "--link"])
            && !sources.is_empty();
        let keeping =
            ["-a", "-d", "-P", "-r", "-R", "--archive", "--no-dereference", "--recursive"];
        let keeps_links = links || base == "mv" || options.has(&keeping);
        for source in sources {
            if base == "mv" {
                self.remove(source, state)?;
            }
            for text in &source.texts {
                if keeps_links {
                    for target in &targets {
                        self.move_links(text, target, state)?;
                    }
                }
                // Without a path of its own, the link leads to what is beside it.
                let symbolic = options.has(&["-s", "--symbolic-link"]);
                for target in targets.iter().filter(|_| links) {
                    let kind = if symbolic { Link::Symbolic } else { Link::Hard };
                    self.may_link(text, target, kind, state)?;
                }
                // What is not known may be the option that names the target.
                if text.prefix().is_empty() && !text.is_empty() {
                    let others: Vec<Word> =
                        sources.iter().filter(|it| *it != source).cloned().collect();
                    self.hand_over_all(&others, state)?;
                }
                if self.policy.is_above_secrets(text, &state.cwd) {
                    return Err(Denial::new(format_args!("{text} has secrets below it")));
                }
            }
        }
        for target in targets {
            self.write(target, state, Last::Followed)?;
            // In a folder, the file with the name of the source is written.
            for (target, source) in target.texts.iter().flat_map(|target| {
                sources.iter().flat_map(|source| &source.texts).map(move |source| (target, source))
            }) {
                let content = self.bounds.disk.content_of(source, &state.cwd);
                let content = content.as_deref();
                if let Some(name) = source.as_literal().and_then(|it| it.rsplit('/').next())
                    && !name.is_empty()
                    && !["*", ".", ".."].contains(&name)
                {
                    let mut file = target.clone();
                    file.push(Piece::Literal(format!("/{name}")));
                    self.policy.may_write(&file, &state.cwd, Last::Followed)?;
                    self.copied(&file, content, state);
                }
                self.copied(target, content, state);
            }
        }
        Ok(())
    }

    /// What was copied is known, unless the copy failed.
    fn copied(&mut self, target: &Text, content: Option<&str>, state: &State<'tree>) {
        if let Some(content) = content {
            self.bounds.disk.say(target, &state.cwd, content);
        }
        self.bounds.disk.write(target, &state.cwd, None);
    }

    fn rsync(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(words, "efBMT", RSYNC_VALUES);
        if options.has(&["-e", "--rsh", "--rsync-path", "-M", "--remote-option"]) {
            return Err(Denial::new("other machines must not be reached"));
        }
        for text in options.positional.iter().flat_map(|word| &word.texts) {
            if text.to_string().split('/').next().unwrap_or_default().contains(':') {
                return Err(Denial::new("other machines must not be reached"));
            }
            if self.policy.is_above_secrets(text, &state.cwd) {
                return Err(Denial::new(format_args!("{text} has secrets below it")));
            }
        }
        if options.has(&["--remove-source-files"]) {
            self.write_all(&options.positional, state)?;
        }
        let written = [
            "--log-file",
            "--backup-dir",
            "--temp-dir",
            "-T",
            "--partial-dir",
            "--write-batch",
            "--only-write-batch",
        ];
        for file in options.values(&written) {
            self.write(file, state, Last::Followed)?;
        }
        if let (true, Some((target, sources))) =
            (options.has(&["-a", "-l", "--archive", "--links"]), options.positional.split_last())
        {
            for text in sources.iter().flat_map(|word| &word.texts) {
                self.move_links(text, target, state)?;
            }
        }
        match options.positional.last() {
            Some(target) => self.write(target, state, Last::Followed),
            None => Ok(()),
        }
    }

    fn mktemp(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(words, "p", &["--tmpdir", "--suffix"]);
        let folder = options.values(&["-p", "--tmpdir"]).next();
        match (folder, options.positional.first()) {
            (Some(folder), _) => self.write(folder, state, Last::Followed),
            (None, Some(template)) if !options.has(&["-t", "--tmpdir"]) => {
                self.write(template, state, Last::Followed)
            }
            (None, _) => {
                let place = self.policy.variables.get("TMPDIR").map_or("/tmp", String::as_str);
                self.policy.may_write(&Text::literal(place), &Cwd::Unknown, Last::Followed)
            }
        }
    }
}

/// `chmod -x file`.
fn is_negative_mode(base: &str, word: &Word) -> bool {
    base == "chmod"
        && word.as_literal().is_some_and(|it| {
            it.strip_prefix('-')
                .is_some_and(|it| !it.is_empty() && it.chars().all(|it| "rwxXst".contains(it)))
        })
}
