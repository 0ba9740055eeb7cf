//! What a program does with its words.
//!
//! Programs fall into five kinds: those that are denied by name, those that only read, those whose
//! targets are known (`files`, `archives`), those that run something else (`wrappers`, `shells`,
//! `pythons`, `texts`), and all others, which must be given nothing from outside.

mod abbreviations;
mod archives;
mod builtins;
mod files;
mod git;
mod links;
mod options;
mod printing;
mod pythons;
mod shells;
mod texts;
mod wrappers;

use std::path::PathBuf;

use crate::place::{Cwd, Last, Place};
use crate::shell::{Flow, IMPLIED, State, Stdin, Walk};
use crate::text::{Piece, Text, Word};
use crate::{Denial, Judged};

pub(crate) use options::Options;

/// Programs that change nothing, whatever they are given.
const READERS: &[&str] = &[
    "[",
    "arch",
    "b2sum",
    "basename",
    "base64",
    "bc",
    "break",
    "cal",
    "cat",
    "cksum",
    "clear",
    "cmp",
    "column",
    "comm",
    "continue",
    "cut",
    "df",
    "diff",
    "dir",
    "dirname",
    "dirs",
    "du",
    "echo",
    "egrep",
    "expand",
    "expr",
    "factor",
    "false",
    "fgrep",
    "file",
    "fmt",
    "fold",
    "free",
    "getconf",
    "grep",
    "groups",
    "hash",
    "head",
    "help",
    "hexdump",
    "hostname",
    "htop",
    "id",
    "iostat",
    "jobs",
    "join",
    "jq",
    "ldd",
    "let",
    "locale",
    "ls",
    "lsb_release",
    "lsblk",
    "lscpu",
    "lsmem",
    "lsof",
    "lspci",
    "md5sum",
    "nl",
    "nm",
    "nproc",
    "numfmt",
    "nvidia-smi",
    "objdump",
    "od",
    "paste",
    "pgrep",
    "pidof",
    "pmap",
    "printenv",
    "ps",
    "pwd",
    "readelf",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "size",
    "sleep",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "test",
    "times",
    "top",
    "tr",
    "true",
    "tsort",
    "tty",
    "type",
    "ulimit",
    "umask",
    "uname",
    "unexpand",
    "uptime",
    "users",
    "vmstat",
    "w",
    "wait",
    "wc",
    "whatis",
    "whereis",
    "which",
    "who",
    "whoami",
    "zcat",
    "zgrep",
    ":",
];

/// Programs of which it is known to which files they write, or which run what is looked at anyway.
const TRACKED: &[&str] = &[
    ".", "awk", "bash", "builtin", "cd", "chmod", "command", "cp", "date", "env", "eval", "exec",
    "exit", "find", "getopts", "ionice", "kill", "mkdir", "nice", "nohup", "popd", "printf",
    "pushd", "read", "return", "rm", "rmdir", "sed", "set", "sh", "shift", "shopt", "source",
    "stdbuf", "taskset", "tee", "time", "timeout", "touch", "trap", "xargs",
];

/// Readers that go through whole folders.
const RECURSIVE: &[&str] = &["grep", "egrep", "fgrep", "rg", "zgrep"];

impl<'tree> Walk<'_, 'tree> {
    /// Judges a program with its words.
    pub(crate) fn program(
        &mut self,
        name: &str,
        words: &[Word],
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let base = name.rsplit('/').next().unwrap_or_default();
        let judged = self.program_named(name, base, words, state);
        let recursive = base == "cp" && Options::read(words, "tS", &[]).has(&["-r", "-R", "-a"]);
        let in_place = base == "sed" && words.iter().any(texts::is_in_place);
        let known = (TRACKED.contains(&base) && !recursive && !in_place)
            || READERS.contains(&base)
            || changes_nothing(base, words);
        self.bounds.disk.unseen |= !known;
        judged.map_err(|Denial(reason)| {
            // The innermost program says its name, those around it keep quiet.
            if reason.starts_with('`') {
                Denial(reason)
            } else {
                Denial(format!("`{base}`: {reason}"))
            }
        })
    }

    fn program_named(
        &mut self,
        name: &str,
        base: &str,
        words: &[Word],
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        self.check_list(base, words)?;
        // What a link is to lead to is looked at where it is made.
        self.check_ups(if base == "ln" { &[] } else { words })?;
        abbreviations::check(base, words)?;
        if !["echo", "printf"].contains(&base) {
            self.check_secrets(words, state)?;
        }
        if name.contains('/') && self.is_inside(name, state) && !self.is_own_python(name, state) {
            self.execute_file(name, words, state)?;
            return Ok(Flow::PLAIN);
        }
        match base {
            "cd" | "pushd" | "popd" => return self.change_directory(base, words, state),
            "exit" | "return" => return Ok(Flow { success: None, ends: true }),
            "eval" => return self.eval(words, state),
            "command" | "builtin" | "exec" | "nohup" | "env" | "nice" | "ionice" | "timeout"
            | "time" | "stdbuf" | "setsid" | "taskset" | "numactl" | "chronic" | "unbuffer"
            | "catchsegv" => {
                return self.wrapped(base, words, state);
            }
            "source" | "." => self.source_file(words, state)?,
            "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" | "rbash" => self.shell(words, state)?,
            "trap" => self.trap(words, state)?,
            "read" | "mapfile" | "readarray" | "getopts" => {
                self.forget(words, state)?;
                self.forget(&IMPLIED.map(Word::literal), state)?;
            }
            "shift" => state.parameters = None,
            "set" => self.set(words, state)?,
            "shopt" => self.shopt(words)?,
            "printf" => self.printf(words, state)?,
            "xargs" => self.xargs(words, state)?,
            "find" => self.find(words, state)?,
            "kill" => kill(words)?,
            "sed" | "gsed" => self.sed(words, state)?,
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(words, state)?,
            "perl" | "ruby" | "node" | "php" | "lua" | "Rscript" | "julia" | "tclsh" | "deno"
            | "osascript" | "R" | "octave" | "gnuplot" | "bun" => {
                self.other_language(words, state)?
            }
            "rm" | "rmdir" | "unlink" | "shred" | "touch" | "truncate" | "mkdir" | "mkfifo"
            | "tee" | "chmod" | "chown" | "chgrp" | "setfacl" | "fallocate" | "cp" | "mv"
            | "ln" | "link" | "install" | "rsync" | "split" | "mktemp" | "sort" | "uniq"
            | "tree" | "dd" | "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "nvcc"
            | "ld" | "strip" | "dos2unix" | "unix2dos" | "date" | "yes" | "nvidia-smi" => {
                self.files(base, words, state)?;
            }
            "tar" | "bsdtar" | "unzip" | "zip" | "7z" | "7za" | "gzip" | "gunzip" | "bzip2"
            | "bunzip2" | "xz" | "unxz" | "zstd" | "unzstd" | "lz4" | "pigz" | "cpio" | "curl"
            | "wget" | "git" | "pip" | "pip3" | "uv" | "uvx" | "conda" | "mamba" | "micromamba"
            | "poetry" | "pipenv" => self.archives(base, words, state)?,
            _ if base.starts_with("pip3.") => self.archives("pip", words, state)?,
            _ if READERS.contains(&base) => self.reads(base, words, state)?,
            _ if pythons::is_python(base) => self.python(words, state)?,
            _ if pythons::RUNNERS.contains(&base) => self.python_runner(words, state)?,
            _ => {
                self.hand_over_all(words, state)?;
                self.run_by_unknown(words, state)?;
            }
        }
        Ok(Flow::PLAIN)
    }

    fn check_list(&self, base: &str, words: &[Word]) -> Judged {
        let shown: Vec<String> =
            words.iter().flat_map(|word| &word.texts).map(Text::to_string).collect();
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let reason = self.policy.denied.iter().find_map(|pattern| pattern.denies(base, &shown));
        reason.map_or(Ok(()), |reason| Err(Denial::new(reason)))
    }

    fn check_secrets(&self, words: &[Word], state: &State<'_>) -> Judged {
        for text in words.iter().flat_map(|word| &word.texts) {
            for part in path_parts(text) {
                self.policy.may_read(&part, &state.cwd)?;
            }
        }
        Ok(())
    }

    fn reads(&self, base: &str, words: &[Word], state: &State<'_>) -> Judged {
        if RECURSIVE.contains(&base) {
            for text in words.iter().flat_map(|word| &word.texts) {
                if self.policy.is_above_secrets(text, &state.cwd)
                    && text.prefix().starts_with(['/', '.', '~'])
                {
                    return Err(Denial::new(format_args!("{text} has secrets below it")));
                }
            }
        }
        Ok(())
    }

    /// All words are given to a program about which nothing is known.
    pub(crate) fn hand_over_all(&self, words: &[Word], state: &State<'_>) -> Judged {
        for text in words.iter().flat_map(|word| &word.texts) {
            for part in path_parts(text) {
                self.policy.may_hand_over(&part, &state.cwd)?;
            }
        }
        Ok(())
    }

    /// A program about which nothing is known may run what its words name.
    fn run_by_unknown(&mut self, words: &[Word], state: &State<'tree>) -> Judged {
        const KNOWN: &[&str] = &[
            "bash", "sh", "dash", "zsh", "ksh", "rm", "mv", "cp", "ln", "dd", "tee", "perl",
            "ruby", "node", "env", "eval", "find", "xargs", "sed", "awk", "git", "pip", "sudo",
            "ssh", "curl",
        ];
        for (index, word) in words.iter().enumerate() {
            let base = word.as_literal().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
            if KNOWN.contains(&base) || pythons::is_python(base) {
                let inner = words.get(index..).unwrap_or_default().to_vec();
                self.call_program(inner, &mut state.clone())?;
            }
        }
        Ok(())
    }

    /// Writes to what any of the words may be.
    pub(crate) fn write(&self, word: &Word, state: &State<'_>, last: Last) -> Judged {
        for text in &word.texts {
            self.policy.may_write(text, &state.cwd, last)?;
        }
        Ok(())
    }

    /// Writes into the directory in which the shell is.
    pub(crate) fn write_here(&self, state: &State<'_>) -> Judged {
        self.policy.may_write(&Text::literal("."), &state.cwd, Last::Followed)
    }

    pub(crate) fn is_inside(&self, name: &str, state: &State<'_>) -> bool {
        match self.policy.place(&Text::literal(name), &state.cwd, Last::Followed) {
            Place::Inside | Place::Border => true,
            Place::Device
            | Place::Readable
            | Place::Unknown(_)
            | Place::Outside(_)
            | Place::Secret(_) => false,
        }
    }

    /// What a command would print, where that can be told.
    pub(crate) fn printed(&self, words: &[Word], state: &State<'tree>) -> Stdin {
        let Some((name, words)) = words.split_first() else { return Stdin::Unknown };
        let Some(name) = name.as_literal() else { return Stdin::Unknown };
        let literals: Option<Vec<&str>> = words.iter().map(Word::as_literal).collect();
        let options = Options::read(words, "", &[]);
        let plain = |piece| Stdin::Lines(vec![Text::of(piece)]);
        match (name, literals.as_deref()) {
            ("echo", Some(words))
                if !words.iter().any(|it| it.starts_with('-') || it.contains('\\')) =>
            {
                Stdin::Text(Text::literal(words.join(" ")))
            }
            ("pwd", Some([])) => from_here(&state.cwd, PathBuf::clone),
            ("date", Some(words))
                if !words.iter().any(|it| it.contains(['/', '.', 'D', 'x', 'c'])) =>
            {
                plain(Piece::Plain)
            }
            ("nproc", Some(_)) => plain(Piece::Plain),
            ("seq", Some(words)) if words.iter().all(|it| it.parse::<f64>().is_ok()) => {
                plain(Piece::Plain)
            }
            // With files it names them.
            ("wc", Some(_)) if options.positional.is_empty() => plain(Piece::Plain),
            ("mktemp", Some(words)) => self.temporary(words),
            ("whoami" | "hostname" | "basename", _) => plain(Piece::Name),
            ("dirname", Some([path])) => Stdin::Text(Text::literal(crate::shell::folder_of(path))),
            ("realpath", Some([path])) | ("readlink", Some(["-f" | "-e" | "-m", path]))
                if !path.starts_with('-') =>
            {
                from_here(&state.cwd, |place| place.join(path))
            }
            ("ls", Some(_)) if options.positional.is_empty() => plain(Piece::Name),
            ("find", _) => wrappers::found(words),
            ("grep" | "head" | "tail" | "sort" | "uniq" | "shuf", _)
                if matches!(state.stdin, Stdin::Lines(_)) =>
            {
                state.stdin.clone()
            }
            ("cat", Some([])) => state.stdin.clone(),
            ("cat", Some(files)) => match self.contents(files, state) {
                Some(content) => Stdin::Text(Text::literal(content)),
                None => Stdin::Unknown,
            },
            ("echo" | "printf", Some(words)) => match printing::printed(name, words) {
                Some(text) => Stdin::Text(Text::literal(text)),
                None => Stdin::Unknown,
            },
            _ => Stdin::Unknown,
        }
    }
}

/// A path that depends on where the shell is, for each place where it may be.
fn from_here(cwd: &Cwd, path: impl Fn(&PathBuf) -> PathBuf) -> Stdin {
    let Cwd::Among(places) = cwd else { return Stdin::Unknown };
    let paths = places.iter().map(path);
    Stdin::Lines(paths.map(|path| Text::literal(path.to_string_lossy())).collect())
}

/// Whether a program that may change something only says something here.
fn changes_nothing(base: &str, words: &[Word]) -> bool {
    let literals: Option<Vec<&str>> = words.iter().map(Word::as_literal).collect();
    match (base, literals.as_deref()) {
        (_, Some(["--version" | "-V" | "--help"])) => true,
        ("pip" | "pip3", Some(["list" | "show" | "freeze", ..])) => true,
        ("git", Some(["status" | "log", ..])) => true,
        ("sort" | "shuf", Some(words)) => !words
            .iter()
            .any(|it| it.starts_with("-o") || it.starts_with("--o") || it.starts_with("-T")),
        ("uniq", Some(words)) => words.iter().filter(|it| !it.starts_with('-')).count() < 2,
        _ => false,
    }
}

/// The text itself, and the path in `--option=path`, `-Ipath`, `key=path` or `@path`.
fn path_parts(text: &Text) -> Vec<Text> {
    let prefix = text.prefix();
    let mut parts = Vec::new();
    if prefix.starts_with("file://") {
        parts.push(text.without_prefix("file://".len()));
    }
    if let Some(at) = prefix.find('=') {
        parts.push(text.without_prefix(at + 1));
    } else if prefix.starts_with('-') {
        parts.extend(prefix.find('/').map(|at| text.without_prefix(at)));
    } else if prefix.starts_with('@') {
        parts.push(text.without_prefix(1));
    }
    if !prefix.starts_with('-') {
        parts.push(text.clone());
    }
    parts
}

fn kill(words: &[Word]) -> Judged {
    let own = |text: &Text| {
        text.pieces() == [Piece::Job] || text.as_literal().is_some_and(|it| it.starts_with('%'))
    };
    // Only the first word is a signal; a later one with a dash is a group of processes.
    let processes = match words.first().and_then(Word::as_literal) {
        Some("-l" | "-L" | "--list" | "-0") => return Ok(()),
        Some("-s" | "-n" | "--signal") => words.get(2..),
        Some(first) if first.starts_with('-') => words.get(1..),
        Some(_) | None => Some(words),
    };
    if processes.unwrap_or_default().iter().flat_map(|word| &word.texts).all(own) {
        return Ok(());
    }
    Err(Denial::new(
        "only processes of the same command may be ended, as in `kill $!` or `kill %1`",
    ))
}
