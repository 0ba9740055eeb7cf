//! Runs one untrusted Python script and says how it ended.
//!
//! A script that fails is not an error: it is an [`Outcome`]. [`ExecError`] means that *we* could
//! not run it. A [`Job`] goes in through the port [`Executor`]; [`Local`] is the only place to run
//! so far. In reading order: [`workspace`] is the folder a script starts in, `local` supervises
//! the process, `environment` says which variables it sees, `capture` keeps the two ends of what it prints, `submission` looks at the file it
//! was asked for, and [`machine`] finds the interpreter and what there is to compute with.
//!
//! Deliberately absent: scores and tracebacks (text for the caller to read), retries, and any
//! state between two runs.

mod capture;
mod environment;
mod local;
pub mod machine;
pub mod submission;
pub mod workspace;

use std::time::Duration;

use camino::Utf8PathBuf;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use local::Local;
pub use submission::{SubmissionInfo, inspect_submission};

/// A place where scripts run.
pub trait Executor: std::fmt::Debug + Send + Sync {
    /// Runs `job` to its end. Dropping the future stops the script.
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>>;
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
    /// The devices the script may see: `None` leaves that as it is here, an empty list hides all.
    pub gpus: Option<Vec<u32>>,
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
