//! Python as a program: `-c`, `-m`, scripts, standard input.

use super::Options;
use crate::place::{Cwd, Last, Place};
use crate::python::{self, Effect};
use crate::shell::{State, Stdin, Walk};
use crate::text::{Piece, Text, Word};
use crate::{Denial, Judged};

/// Programs that run a Python script with options of their own before it.
pub(super) const RUNNERS: &[&str] = &[
    "torchrun",
    "accelerate",
    "pytest",
    "py.test",
    "ipython",
    "streamlit",
    "deepspeed",
    "coverage",
];

/// Modules that look at scripts without running them.
const READ_SCRIPTS: &[&str] = &[
    "ast",
    "black",
    "dis",
    "flake8",
    "isort",
    "mypy",
    "py_compile",
    "pyclbr",
    "pyflakes",
    "pylint",
    "ruff",
    "tabnanny",
    "tokenize",
];

/// Options that say where something is written.
const OUTPUTS: &[&str] = &["out", "output", "save", "dest", "target", "log", "export", "write"];

pub(super) fn is_python(base: &str) -> bool {
    let rest = base.strip_prefix("python").or_else(|| base.strip_prefix("pypy"));
    rest.is_some_and(|rest| rest.chars().all(|it| it.is_ascii_digit() || it == '.'))
}

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn python(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let mut index = 0;
        while let Some(word) = words.get(index) {
            let text = match word.texts.as_slice() {
                [text] => text.clone(),
                _ => return Err(unseen()),
            };
            let rest = words.get(index + 1..).unwrap_or_default();
            match text.as_literal() {
                None if text.prefix().starts_with('-') => return Err(unseen()),
                Some("--check-hash-based-pycs") => index += 2,
                Some("-V" | "--version" | "-h" | "--help") => return Ok(()),
                Some("-") => {
                    self.python_stdin(state)?;
                    return self.python_words(rest, state);
                }
                Some(option) if option.starts_with('-') && !option.starts_with("--") => {
                    // Letters may stand together; the first that takes a value ends them.
                    let Some(at) = option.find(['c', 'm', 'W', 'X']) else {
                        index += 1;
                        continue;
                    };
                    let (letter, glued) = option.split_at(at).1.split_at(1);
                    let (value, after) = match glued {
                        "" => (rest.first().cloned(), rest.get(1..).unwrap_or_default()),
                        glued => (Some(Word::literal(glued)), rest),
                    };
                    let Some(value) = value else { return Ok(()) };
                    match letter {
                        "c" => {
                            let code = value.as_literal().ok_or_else(unseen)?;
                            self.python_source(code, state)?;
                            return self.python_words(after, state);
                        }
                        "m" => {
                            let module = value.as_literal().ok_or_else(unseen)?;
                            return self.python_module(module, after, state);
                        }
                        _ => {
                            for text in &value.texts {
                                if text.prefix().starts_with("pycache_prefix=") {
                                    let folder = text.without_prefix("pycache_prefix=".len());
                                    self.policy.may_write(&folder, &state.cwd, Last::Followed)?;
                                }
                            }
                            index = words.len() - after.len();
                        }
                    }
                }
                Some(option) if option.starts_with("--") => index += 1,
                Some(_) | None => return self.python_script(&text, rest, state),
            }
        }
        self.python_stdin(state)
    }

    /// Whether a program of the working directory is a Python, as in an environment that was copied
    /// there. A script of that name is a script.
    pub(super) fn is_own_python(&self, name: &str, state: &State<'tree>) -> bool {
        let disk = &self.bounds.disk;
        is_python(name.rsplit('/').next().unwrap_or_default())
            && disk.is_as_before(name, &state.cwd)
            && disk.content_of(&Text::literal(name), &state.cwd).is_none()
    }

    fn python_stdin(&mut self, state: &mut State<'tree>) -> Judged {
        match state.stdin.clone() {
            Stdin::Inherited => Ok(()),
            // What a variable brings into a text for Python is a value far more often than code;
            // the text is read with a name in its place.
            Stdin::Text(text) => match text.as_literal() {
                Some(code) => self.python_source(code, state),
                None if text.has_any() => Err(unseen()),
                None => self.python_source(&text.to_string().replace('…', "0"), state),
            },
            Stdin::Lines(_) | Stdin::Unknown => Err(unseen()),
        }
    }

    fn python_script(&mut self, script: &Text, words: &[Word], state: &mut State<'tree>) -> Judged {
        // A script that is not there, or that is not to be read, is left to Python.
        if !self.python_file(script, state)? && script.has_any() {
            return Err(unseen());
        }
        self.python_words(words, state)
    }

    /// Judges what is in a file, or in the file that is run in place of a folder; says whether there
    /// was anything to judge.
    fn python_file(&mut self, file: &Text, state: &mut State<'tree>) -> Judged<bool> {
        if self.bounds.disk.may_be_linked(file, &state.cwd) {
            return Err(unseen());
        }
        let mut main = file.clone();
        main.push(Piece::Literal("/__main__.py".to_owned()));
        for file in [file, &main] {
            if let Some(content) = self.bounds.disk.said_in(file, &state.cwd) {
                self.python_source(&content, state)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn python_module(&mut self, module: &str, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(words, "o", &[]);
        match module.split('.').next().unwrap_or_default() {
            "pip" => return self.program("pip", words, state).map(|_| ()),
            "venv" | "virtualenv" => {
                for folder in &options.positional {
                    self.write(folder, state, Last::Followed)?;
                }
                return Ok(());
            }
            "json" => {
                if let Some(output) = options.positional.get(1) {
                    self.write(output, state, Last::Followed)?;
                }
                return Ok(());
            }
            "zipfile" | "tarfile" | "compileall" | "gzip" | "shutil" | "base64" => {
                return self.hand_over_all(words, state);
            }
            "http" | "twine" | "smtpd" | "ensurepip" | "webbrowser" | "pty" | "code" => {
                return Err(Denial::new(format_args!("the module {module} is not allowed")));
            }
            "timeit" => return self.timeit(words, state),
            "cProfile" | "profile" | "pdb" | "trace" | "runpy" | "doctest" => {
                return self.script_runner(words, state);
            }
            _ => {}
        }
        for file in options.values(&["-o"]) {
            self.write(file, state, Last::Followed)?;
        }
        // A module of the working directory is a script by another name.
        let path = module.replace('.', "/");
        if !self.python_file(&Text::literal(format!("{path}.py")), state)? {
            self.python_file(&Text::literal(path), state)?;
        }
        if READ_SCRIPTS.contains(&module) {
            return self.python_words(words, state);
        }
        self.python_runner(words, state)
    }

    /// `python -m timeit -s setup statement`.
    fn timeit(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let long = ["--number", "--repeat", "--setup", "--unit"];
        let options = Options::read(words, "nrsu", &long);
        for code in options.values(&["-s", "--setup"]).chain(&options.positional) {
            self.python_source(code.as_literal().ok_or_else(unseen)?, state)?;
        }
        Ok(())
    }

    /// Modules that run the script, or the module, that their words name.
    fn script_runner(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let long = ["--outfile", "--sort", "--file", "--coverdir", "--ignore-module", "--command"];
        let options = Options::read(words, "oscmfC", &long);
        if options.has(&["-c", "--command"]) {
            return Err(unseen());
        }
        for file in options.values(&["-o", "--outfile", "-f", "--file", "-C", "--coverdir"]) {
            self.write(file, state, Last::Followed)?;
        }
        for module in options.values(&["-m"]) {
            let module = module.as_literal().ok_or_else(unseen)?;
            self.python_module(module, &options.positional, state)?;
        }
        // Which of them is the script depends on options that are not known here.
        for text in options.positional.iter().flat_map(|word| &word.texts) {
            let is_script = options.positional.len() == 1 || text.to_string().ends_with(".py");
            if is_script {
                self.python_file(text, state)?;
            }
        }
        self.python_words(words, state)
    }

    pub(super) fn python_runner(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let script = words.iter().position(|word| {
            word.as_literal()
                .is_some_and(|it| it.split("::").next().is_some_and(|it| it.ends_with(".py")))
        });
        if let Some(script) = script.and_then(|at| words.get(at)).and_then(Word::as_literal) {
            let file = script.split("::").next().unwrap_or_default();
            self.python_file(&Text::literal(file), state)?;
        }
        self.python_words(words, state)
    }

    /// What a script is given: it may read what is readable, and write inside.
    pub(super) fn python_words(&self, words: &[Word], state: &State<'tree>) -> Judged {
        let mut writes = false;
        for word in words {
            for text in &word.texts {
                let prefix = text.prefix();
                let (name, value) = match prefix.split_once('=') {
                    Some((name, _)) if prefix.starts_with('-') => {
                        (name, Some(text.without_prefix(name.len() + 1)))
                    }
                    _ if prefix.starts_with('-') => (prefix, None),
                    _ => ("", Some(text.clone())),
                };
                let is_output = OUTPUTS.iter().any(|it| name.contains(it)) || name == "-o";
                if let Some(value) = value {
                    if is_output || writes {
                        self.policy.may_write(&value, &state.cwd, Last::Followed)?;
                    }
                    self.may_be_named(&value, state)?;
                    writes = false;
                } else {
                    writes = is_output;
                }
            }
        }
        Ok(())
    }

    /// Judges what a piece of Python says it will do.
    pub(crate) fn python_source(&mut self, source: &str, state: &mut State<'tree>) -> Judged {
        self.bounds.enter()?;
        let in_python = |Denial(reason)| Denial(format!("in Python: {reason}"));
        for effect in python::effects(source, self.policy.home())? {
            match effect {
                Effect::Writes(text) => {
                    let place = self.policy.place(&text, &state.cwd, Last::Followed);
                    if place == Place::Readable {
                        let write = self.policy.may_write(&text, &state.cwd, Last::Followed);
                        write.map_err(in_python)?;
                    }
                    self.may_be_named(&text, state).map_err(in_python)?;
                }
                Effect::Names(text) => {
                    self.policy.may_read(&text, &state.cwd).map_err(in_python)?;
                }
                Effect::Keeps(text) => self.may_be_named(&text, state).map_err(in_python)?,
                Effect::RunsShell(text, folder) => {
                    let code = text.as_literal().ok_or_else(unseen)?.to_owned();
                    self.run_apart(&code, &in_folder(state, folder))?;
                }
                Effect::Runs(words, folder) => {
                    let mut apart = in_folder(state, folder);
                    apart.functions.clear();
                    let words = words.into_iter().map(Word::one).collect();
                    self.call_program(words, &mut apart)?;
                }
                Effect::RunsPython(text) => {
                    let code = text.as_literal().ok_or_else(unseen)?.to_owned();
                    self.python_source(&code, state)?;
                }
            }
        }
        self.bounds.leave();
        Ok(())
    }

    /// A path may be written if it is not known to lead outside.
    fn may_be_named(&self, text: &Text, state: &State<'_>) -> Judged {
        match self.policy.place(text, &state.cwd, Last::Followed) {
            Place::Inside | Place::Device | Place::Border | Place::Readable => Ok(()),
            Place::Unknown(_)
                if !text.prefix().starts_with('/') && !text.prefix().starts_with("..") =>
            {
                Ok(())
            }
            Place::Unknown(so_far)
                if matches!(
                    self.policy.place(
                        &Text::literal(so_far.to_string_lossy()),
                        &state.cwd,
                        Last::Followed
                    ),
                    Place::Inside | Place::Border | Place::Readable
                ) =>
            {
                Ok(())
            }
            Place::Unknown(_) | Place::Outside(_) | Place::Secret(_) => {
                self.policy.may_write(text, &state.cwd, Last::Followed)
            }
        }
    }
}

/// The state of a program that is started in a folder, if one is named.
fn in_folder<'tree>(state: &State<'tree>, folder: Option<Text>) -> State<'tree> {
    let mut apart = state.clone();
    if let (Some(folder), Cwd::Among(places)) = (folder, &state.cwd) {
        let name = folder.to_string();
        apart.cwd = Cwd::Among(places.iter().map(|place| place.join(&name)).collect());
    }
    apart
}

fn unseen() -> Denial {
    Denial::new("what it would run cannot be seen beforehand")
}
