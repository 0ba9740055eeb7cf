//! Runs one untrusted Python script and says how it ended.
//!
//! A script that fails is not an error: it is an [`Outcome`]. [`ExecError`] means that *we* could
//! not run it. A [`Job`] goes in through the port [`Executor`]; [`Local`] is the place to run.
//!
//! In reading order: [`workspace`] is the folder a script starts in, [`local`] gives it a share of
//! the machine and starts its supervisor, [`shim`] is that supervisor, [`sandbox`] holds the script
//! and lists what is covered and what is not, [`limits`] bound it, `environment` says which
//! variables it sees, `capture` and `spool` keep what it prints, [`submission`] looks at the file it
//! was asked for, and [`machine`] finds the interpreter and what there is to compute with, which
//! [`slots`] share out; [`venv`] makes an environment with the packages that scripts import. `room`
//! waits where a process cannot be started at the moment. [`bash`] is another way to run a script,
//! without a sandbox; [`mod@hold`] holds other programs than scripts in the same way. All unsafe code is
//! in `sys`.
//!
//! Deliberately absent: scores and tracebacks (text for the caller to read), retries, and any
//! state between two runs.

pub mod bash;
mod capture;
pub mod desktop;
mod environment;
pub mod hold;
pub mod limits;
pub mod local;
pub mod machine;
mod room;
pub mod sandbox;
pub mod scratch;
pub mod shim;
pub mod slots;
mod spool;
pub mod submission;
mod sys;
mod trace;
pub mod venv;
pub mod workspace;

use std::time::Duration;

use camino::Utf8PathBuf;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::limits::{Limits, Resource, Usage};
use crate::sandbox::{Containment, Tier};
pub use bash::ViaBash;
pub use hold::{Hold, hold};
pub use local::{Local, Setup, Supervisor};
pub use shim::supervise;

pub use submission::{SubmissionInfo, inspect_submission};

/// A place where scripts run.
pub trait Executor: std::fmt::Debug + Send + Sync {
    /// Runs `job` to its end. Dropping the future stops the script.
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>>;

    /// How many scripts can run at the same time.
    fn slots(&self) -> usize {
        1
    }

    /// What holds the scripts, if anything does.
    fn containment(&self) -> Option<&Containment> {
        None
    }
}

/// One script to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// The Python source.
    pub script: String,
    /// The name of the script inside the workspace, such as `solution.py`.
    pub filename: String,
    /// The absolute folder that the script starts in. **Everything inside is removed first.**
    pub workspace: Utf8PathBuf,
    /// The absolute folder that the script sees as `./input`.
    pub data_dir: Utf8PathBuf,
    /// How long the script may run.
    pub time_limit: Duration,
    /// An absolute folder outside the workspace, for what is known of the job. The same folder is
    /// the same job: it is not run a second time, but its result is looked up there.
    pub records: Utf8PathBuf,
}

/// How a script ended and what it left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// What it printed.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// Wall time from its start to its end.
    pub duration_seconds: f64,
    /// The submission file, as the script left it.
    pub submission: SubmissionInfo,
    /// What it used at most.
    #[serde(default)]
    pub usage: Usage,
    /// What it could have used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// How tightly it was held.
    #[serde(default = "not_at_all")]
    pub tier: Tier,
}

/// Journals from before there was a sandbox do not say.
fn not_at_all() -> Tier {
    Tier::Off
}

/// How the interpreter ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ended {
    /// It exited on its own.
    Exited {
        /// Zero means success.
        code: i32,
    },
    /// A signal killed it, for example for want of memory.
    Signaled {
        /// The number of the signal.
        signal: i32,
    },
    /// It ran past its limit and was stopped.
    TimedOut {
        /// The limit.
        after_seconds: f64,
    },
    /// It used more than it may and was stopped.
    Exceeded {
        /// What of.
        resource: Resource,
        /// How much; of the disk, how little was left.
        used: u64,
        /// The limit.
        limit: u64,
    },
}

/// What one stream carried: everything if that was little, else its two ends with a line between
/// them that says how many bytes are missing.
///
/// Bytes that are not UTF-8 became replacement characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The text; its end is always the true end of the stream.
    pub text: String,
    /// How many bytes the script wrote, kept or not.
    pub total_bytes: u64,
    /// Whether bytes are missing from `text`.
    pub truncated: bool,
    /// A file with far more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Utf8PathBuf>,
}

/// Why a script could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// A program could not be started.
    #[error("failed to start `{program}`")]
    Spawn {
        /// The program, usually the interpreter.
        program: Utf8PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The job could not be carried out.
    #[error("the script could not be run: {reason}")]
    NotRun {
        /// Why.
        reason: String,
    },
    /// The supervisor of a script ended without a word about it.
    #[error("the supervisor of the script failed: {detail}")]
    Supervisor {
        /// What is known.
        detail: String,
    },
    /// The disk is too full to run scripts, and that is no script's fault.
    #[error("the disk is full: {} are free, at least {} must be", limits::size(*free), limits::size(*needed))]
    NoRoom {
        /// The bytes that are free.
        free: u64,
        /// The bytes that must be.
        needed: u64,
    },
    /// There is no sandbox here as tight as was asked for.
    #[error("the sandbox that was asked for does not work here: {}", refused.join("; "))]
    Sandbox {
        /// Each tier that was tried, with what went wrong.
        refused: Vec<String>,
    },
    /// A file of the job could not be written, read or removed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// No interpreter answered.
    #[error("no usable python interpreter: {}", tried.join("; "))]
    NoPython {
        /// Each name that was tried, with what went wrong.
        tried: Vec<String>,
    },
    /// The interpreter is older than the scripts need.
    #[error("python {version} at `{path}` is older than 3.10")]
    PythonTooOld {
        /// The interpreter.
        path: Utf8PathBuf,
        /// Its version.
        version: String,
    },
    /// The interpreter starts but cannot list its packages.
    #[error("`{path}` could not list its packages: {detail}")]
    PythonBroken {
        /// The interpreter.
        path: Utf8PathBuf,
        /// The last line of its complaint.
        detail: String,
    },
    /// The script's name is a path, or one of the names that a workspace needs itself.
    #[error("`{filename}` cannot be the name of a script")]
    Filename {
        /// The refused name.
        filename: String,
    },
    /// The folder must not be emptied.
    #[error("`{path}` cannot be a workspace: {reason}")]
    Workspace {
        /// The refused folder.
        path: Utf8PathBuf,
        /// What speaks against it.
        reason: &'static str,
    },
    /// There is no folder of data to link.
    #[error("`{path}` cannot be the data folder: {reason}")]
    DataDir {
        /// The refused folder.
        path: Utf8PathBuf,
        /// What speaks against it.
        reason: &'static str,
    },
}

impl ExecError {
    /// Whether there was no room for another process, and still none after a while. Nothing is
    /// wrong with the program that was to be started.
    pub fn is_want_of_room(&self) -> bool {
        matches!(self, Self::Spawn { source, .. } if room::is_passing(source))
    }
}

/// An error with all its causes, on one line.
pub fn in_full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
