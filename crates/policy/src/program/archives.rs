//! Programs that unpack, fetch, install, and keep versions.

use super::Options;
use crate::place::Last;
use crate::shell::{State, Walk};
use crate::text::Word;
use crate::{Denial, Judged};

/// Letters of tar that take a value.
const TAR_VALUES: &str = "fCTXIFHbgKLNV";

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn archives(
        &mut self,
        base: &str,
        words: &[Word],
        state: &mut State<'tree>,
    ) -> Judged {
        match base {
            "tar" | "bsdtar" => self.tar(words, state),
            "unzip" => {
                let options = Options::read(words, "dxP", &[]);
                if options.has(&["-:"]) {
                    return Err(Denial::new("-: lets an archive write outside"));
                }
                if options.has(&["-l", "-t", "-p", "-v", "-Z"]) {
                    return Ok(());
                }
                self.write_into(options.values(&["-d"]), state)
            }
            "zip" => {
                let long = ["--out", "--temp-path", "--logfile-path"];
                let options = Options::read(words, "bixntPO", &long);
                if options.has(&["-T", "--unzip-command"]) {
                    return Err(Denial::new("it would run programs unseen"));
                }
                let written = ["-O", "--out", "-b", "--temp-path", "--logfile-path"];
                for archive in options.values(&written).chain(options.positional.first()) {
                    self.write(archive, state, Last::Followed)?;
                }
                // What has been moved into the archive is removed.
                let moves = options.has(&["-m", "--move"]);
                if moves && options.has(&["-@", "--names-stdin"]) {
                    return Err(Denial::new("it cannot be told what it would remove"));
                }
                for file in options.positional.iter().filter(|_| moves) {
                    self.write(file, state, Last::Kept)?;
                }
                self.write_after("-lf", words, state)
            }
            "7z" | "7za" => self.seven_zip(words, state),
            "cpio" => Err(Denial::new("it writes what its input names; use tar")),
            "curl" => self.curl(words, state),
            "wget" => self.wget(words, state),
            "git" => self.git(words, state),
            "pip" | "pip3" => self.pip(words, state),
            "uv" => match words.split_first() {
                Some((first, rest)) if first.as_literal() == Some("pip") => self.pip(rest, state),
                Some((first, rest)) if first.as_literal() == Some("run") => self.inner(rest, state),
                _ => self.only(words, &["version", "--version", "help", "tree"]),
            },
            "uvx" => Err(Denial::new("it installs outside the working directory")),
            "conda" | "mamba" | "micromamba" => match words.split_first() {
                Some((first, rest)) if first.as_literal() == Some("run") => {
                    let options = Options::read(rest, "np", &["--name", "--prefix", "--cwd"]);
                    self.inner(&options.positional, state)
                }
                _ => self.only(words, &["list", "info", "env", "--version", "search"]),
            },
            "poetry" | "pipenv" => match words.split_first() {
                Some((first, rest)) if first.as_literal() == Some("run") => self.inner(rest, state),
                _ => self.only(words, &["show", "check", "env", "--version", "graph"]),
            },
            // gzip and its like replace files by others beside them.
            _ => {
                let zstd = matches!(base, "zstd" | "unzstd");
                let options = Options::read(words, if zstd { "o" } else { "S" }, &["--suffix"]);
                for file in options.values(&["-o"]) {
                    self.write(file, state, Last::Followed)?;
                }
                if options.has(&["-c", "-l", "-t", "--stdout", "--list", "--test"]) {
                    return Ok(());
                }
                for file in &options.positional {
                    self.write(file, state, Last::Followed)?;
                }
                Ok(())
            }
        }
    }

    fn inner(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        self.call_program(words.to_vec(), &mut state.clone())?;
        Ok(())
    }

    fn only(&self, words: &[Word], allowed: &[&str]) -> Judged {
        match words.first().map(Word::as_literal) {
            None => Ok(()),
            Some(Some(first)) if allowed.contains(&first) => Ok(()),
            Some(_) => Err(Denial::new("it would change what lies outside the working directory")),
        }
    }

    /// Files appear in these folders, or here if there are none.
    pub(super) fn write_into<'a>(
        &self,
        folders: impl Iterator<Item = &'a Word>,
        state: &State<'_>,
    ) -> Judged {
        let mut named = false;
        for folder in folders {
            named = true;
            self.write(folder, state, Last::Followed)?;
        }
        if named { Ok(()) } else { self.write_here(state) }
    }

    fn tar(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let words = with_dashes(words);
        let long = [
            "--file",
            "--directory",
            "--exclude",
            "--transform",
            "--files-from",
            "--exclude-from",
            "--index-file",
            "--listed-incremental",
            "--volno-file",
        ];
        let options = Options::read(&words, TAR_VALUES, &long);
        let runs = [
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ];
        if options.has(&runs) {
            return Err(Denial::new("it would run programs unseen"));
        }
        if options.has(&["-P", "--absolute-names", "--transform", "--xform", "--one-top-level"]) {
            return Err(Denial::new("names in the archive may lead outside"));
        }
        for file in options.values(&["--index-file", "--volno-file"]) {
            self.write(file, state, Last::Followed)?;
        }
        if options.has(&["-t", "--list", "-d", "--diff", "--compare"]) {
            return Ok(());
        }
        if options.has(&["-x", "--extract", "--get"]) {
            return self.write_into(options.values(&["-C", "--directory"]), state);
        }
        for text in options.positional.iter().flat_map(|word| &word.texts) {
            if self.policy.is_above_secrets(text, &state.cwd) {
                return Err(Denial::new(format_args!("{text} has secrets below it")));
            }
        }
        if options.has(&["--remove-files"]) {
            return Err(Denial::new("--remove-files is not allowed"));
        }
        for archive in options.values(&["-f", "--file", "-g", "--listed-incremental"]) {
            if archive.as_literal() != Some("-") {
                self.write(archive, state, Last::Followed)?;
            }
        }
        Ok(())
    }

    fn seven_zip(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(words, "o", &[]);
        match options.subcommands().first() {
            Some(&"l" | &"t" | &"i" | &"h") => Ok(()),
            Some(&"x" | &"e") => self.write_into(options.values(&["-o"]), state),
            _ => match options.positional.get(1) {
                Some(archive) => self.write(archive, state, Last::Followed),
                None => Ok(()),
            },
        }
    }

    fn curl(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let sends = [
            "-T",
            "--upload-file",
            "-d",
            "--data",
            "--data-ascii",
            "--data-binary",
            "--data-raw",
            "--data-urlencode",
            "-F",
            "--form",
            "--form-string",
            "--json",
            "-K",
            "--config",
        ];
        let long = [
            "--output",
            "--output-dir",
            "--header",
            "--user-agent",
            "--max-time",
            "--url",
            "--connect-timeout",
            "--request",
            "--user",
            "--proxy",
            "--retry",
            "--dump-header",
            "--cookie-jar",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--libcurl",
            "--etag-save",
            "--hsts",
            "--alt-svc",
            "--write-out",
        ];
        let options = Options::read(words, "oTdFKHAmXuxDcebwrtUyYzC", &long);
        if options.has(&sends) {
            return Err(Denial::new("nothing must be sent away from this machine"));
        }
        let method = options.values(&["-X", "--request"]).filter_map(Word::as_literal).next();
        if method.is_some_and(|method| !["GET", "HEAD"].contains(&method)) {
            return Err(Denial::new("nothing must be sent away from this machine"));
        }
        let files = [
            "-o",
            "--output",
            "--output-dir",
            "-D",
            "--dump-header",
            "-c",
            "--cookie-jar",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--libcurl",
            "--etag-save",
            "--hsts",
            "--alt-svc",
        ];
        for file in options.values(&files) {
            if file.as_literal() != Some("-") {
                self.write(file, state, Last::Followed)?;
            }
        }
        for format in options.values(&["-w", "--write-out"]).flat_map(|word| &word.texts) {
            let shown = format.to_string();
            if format.has_any() || shown.contains("%output") || shown.starts_with('@') {
                return Err(Denial::new("what it writes must be named with -o"));
            }
        }
        if options.has(&["-O", "--remote-name", "--remote-name-all"]) {
            return self.write_into(options.values(&["--output-dir"]), state);
        }
        Ok(())
    }

    fn wget(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(
            words,
            "OPoaietTQUABDIXl",
            &["--output-document", "--directory-prefix", "--output-file", "--timeout", "--tries"],
        );
        if options.has(&[
            "--post-data",
            "--post-file",
            "--body-file",
            "--body-data",
            "-e",
            "--execute",
            "--use-askpass",
        ]) {
            return Err(Denial::new("nothing must be sent away from this machine"));
        }
        for file in options.values(&["-O", "--output-document", "-o", "--output-file", "-a"]) {
            if file.as_literal() != Some("-") {
                self.write(file, state, Last::Followed)?;
            }
        }
        if options.has(&["-O", "--output-document", "--spider"]) {
            return Ok(());
        }
        self.write_into(options.values(&["-P", "--directory-prefix"]), state)
    }

    fn pip(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(
            words,
            "rtdficw",
            &[
                "--cache-dir",
                "--src",
                "--wheel-dir",
                "--target",
                "--dest",
                "--requirement",
                "--index-url",
                "--prefix",
                "--root",
                "--report",
                "--log",
            ],
        );
        for file in options.values(&["--report", "--log", "--cache-dir", "--src"]) {
            self.write(file, state, Last::Followed)?;
        }
        match options.subcommands().first() {
            None => Ok(()),
            Some(
                &"list" | &"show" | &"freeze" | &"check" | &"help" | &"index" | &"debug"
                | &"inspect" | &"hash" | &"search",
            ) => Ok(()),
            Some(&"download" | &"wheel") => {
                self.write_into(options.values(&["-d", "--dest", "-w", "--wheel-dir"]), state)
            }
            Some(&"install") if options.values(&["-t", "--target"]).next().is_some() => {
                self.write_into(options.values(&["-t", "--target"]), state)
            }
            Some(_) => Err(Denial::new(
                "the Python environment must not be changed; use the packages that are installed",
            )),
        }
    }
}

/// The first word of tar may be letters without a dash, whose values come after it one by one.
fn with_dashes(words: &[Word]) -> Vec<Word> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let Some(letters) = first.as_literal().filter(|it| !it.starts_with('-')) else {
        return words.to_vec();
    };
    let mut rest = rest.iter().cloned();
    let mut dashed = Vec::new();
    for letter in letters.chars() {
        dashed.push(Word::literal(format!("-{letter}")));
        if TAR_VALUES.contains(letter) {
            dashed.extend(rest.next());
        }
    }
    dashed.extend(rest);
    dashed
}
