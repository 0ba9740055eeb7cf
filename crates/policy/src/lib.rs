//! Says which uses of tools an agent may make, before it makes them.
//!
//! An agent that writes code gets a shell and an editor. [`Policy::judge`] looks at each use of a
//! tool *before* it happens and allows it or says why not. It is pure and synchronous: it reads the
//! file system (to see where links lead, and what a script says) and changes nothing.
//!
//! The rule is one sentence: **nothing outside the working directory is changed, no secret is read,
//! and no program that could get around that is started**. What cannot be understood is denied where
//! it could be outside.
//!
//! ```
//! use mle_star_policy::{Policy, Verdict};
//! use serde_json::json;
//! use std::path::Path;
//!
//! let policy = Policy::new("/srv/run/work");
//! let here = Path::new("/srv/run/work");
//! let judge = |command: &str| policy.judge("Bash", &json!({"command": command}), here);
//!
//! assert_eq!(judge("python train.py 2>&1 | tail -5 > log.txt"), Verdict::Allow);
//! assert!(matches!(judge("rm -rf ../other"), Verdict::Deny { .. }));
//! ```
//!
//! Reading order: `tools` (one use of a tool), `text` (what a word may turn out to be), `place` (where
//! a path leads), `shell` (a walk through a command line in the order in which it would run),
//! `shell/word` (from source to words), `program` and below (what each program does with its words),
//! `python` (what a piece of Python would change), `denied` (the lists).
//!
//! # What is covered
//!
//! Redirections; programs that write, move, link, unpack and delete; programs that start programs,
//! shells in shells; variables, `cd`, `~`, globs, braces, loops, functions and substitutions as far
//! as their values can be told; links on disk; scripts that a shell is to run, if they can be read;
//! Python on the command line, on standard input and in files, as far as it names its paths.
//!
//! # What is not covered
//!
//! What a compiled program does with what it is given, what Python does with paths that it computes,
//! files that change between the verdict and the use, and hard links. This is a fence for agents that
//! err; the sandbox of the kernel beneath it is the wall. Programs that are on no list are allowed as
//! long as all their words stay inside.

mod denied;
mod glob;
mod place;
mod program;
mod python;
mod shell;
mod text;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use denied::Pattern;

/// What an agent may do. Made once per working directory, asked as often as needed.
#[derive(Debug, Clone)]
pub struct Policy {
    working_dir: PathBuf,
    writable: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    home: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    denied: Vec<Pattern>,
    secrets: Vec<PathBuf>,
    tools: BTreeSet<String>,
}

/// The answer to one use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on.
    Allow,
    /// It must not happen.
    Deny {
        /// Why, in words that help the agent to do otherwise.
        reason: String,
    },
}

/// Why something is denied; the way in which every judge of this crate says no.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Denial(String);

type Judged<T = ()> = Result<T, Denial>;

impl Policy {
    /// Writing is allowed in this directory and below; the default lists of programs and secrets
    /// apply.
    pub fn new(working_dir: impl Into<PathBuf>) -> Self {
        Self {
            working_dir: working_dir.into(),
            writable: Vec::new(),
            readable: Vec::new(),
            home: None,
            variables: BTreeMap::new(),
            denied: denied::defaults(),
            secrets: Vec::new(),
            tools: tools::HARMLESS.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// A further folder in which writing is allowed, such as one for temporary files.
    pub fn also_writing(mut self, folder: impl Into<PathBuf>) -> Self {
        self.writable.push(folder.into());
        self
    }

    /// A folder whose files may be given to any program, such as the task's data. Programs that are
    /// known only to read may be given others too.
    pub fn also_reading(mut self, folder: impl Into<PathBuf>) -> Self {
        self.readable.push(folder.into());
        self
    }

    /// What `~` means, and where the usual secrets are.
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// A variable of the environment in which commands will run. The value of others is not known.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// A program to deny, as words: the first is its name, the others must be among its arguments,
    /// in this order. `*` stands for anything within a word.
    ///
    /// ```
    /// # use mle_star_policy::Policy;
    /// Policy::new("/work").denying("terraform apply").denying("dd of=/dev/*");
    /// ```
    pub fn denying(mut self, words: &str) -> Self {
        self.denied
            .extend(Pattern::parse(words, "is on the list of commands that are not allowed"));
        self
    }

    /// Only what is told by [`Policy::denying`] from here on is on the list of denied programs. That
    /// nothing outside may be changed still holds.
    pub fn without_default_list(mut self) -> Self {
        self.denied.clear();
        self
    }

    /// A file or folder that must not be read.
    pub fn hiding(mut self, path: impl Into<PathBuf>) -> Self {
        self.secrets.push(path.into());
        self
    }

    /// A tool that is allowed whatever it is given. Only the shell and the tools for files are
    /// looked into; others must be on this list. A name may end in `*`.
    pub fn allowing_tool(mut self, name: impl Into<String>) -> Self {
        self.tools.insert(name.into());
        self
    }

    /// Judges one use of a tool.
    ///
    /// `input` is what the agent gives the tool, `cwd` the directory in which the tool would run.
    pub fn judge(&self, tool: &str, input: &Value, cwd: &Path) -> Verdict {
        match tools::judge(self, tool, input, cwd) {
            Ok(()) => Verdict::Allow,
            Err(Denial(reason)) => Verdict::Deny { reason },
        }
    }
}

impl Denial {
    fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}
