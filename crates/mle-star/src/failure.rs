//! Why a command failed, for a person.

use std::process::ExitCode;

use mle_star::RunError;
use mle_star::secrets::mask;
use mle_star::task_file::TaskFileError;
use mle_star_search::models::ConfigError;

/// The command was used wrongly.
pub(crate) const USAGE: u8 = 2;

/// A budget or the deadline ended the run early, but it has a result.
pub(crate) const CUT_SHORT: u8 = 3;

/// The command was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// The command was told to end by the system.
pub(crate) const TERMINATED: u8 = 143;

const CHECK_PATH: &str = "check the path and its permissions";

/// What is wrong, what to do about it, and the exit code that says so.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// The command was used wrongly.
    pub(crate) fn usage(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: Some(hint.into()), code: USAGE }
    }

    /// A file that was named on the command line cannot be read. The error names it.
    pub(crate) fn unreadable(error: std::io::Error) -> Self {
        Self::usage(error, CHECK_PATH)
    }

    /// Says what is wrong on standard error.
    #[expect(clippy::print_stderr, reason = "the one place that says why a command failed")]
    pub(crate) fn report(self) -> ExitCode {
        // A line for the whole chain of causes; a cause may bring line breaks of its own.
        let shown = |text: &str| mask(&mle_star_view::plain(text));
        eprintln!("error: {}", shown(&format!("{:#}", self.error)));
        if let Some(hint) = self.hint {
            eprintln!("hint: {}", shown(&hint));
        }
        ExitCode::from(self.code)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let code = if error.is_usage() { USAGE } else { 1 };
        Self { hint: error.hint(), code, error: error.into() }
    }
}

impl From<TaskFileError> for Failure {
    fn from(error: TaskFileError) -> Self {
        let hint = match &error {
            TaskFileError::NotFound(_) => "name a task.yaml, or a folder with one",
            TaskFileError::Incomplete { .. } => {
                "write a task.yaml, or add what is missing, such as --goal \"…\" --metric rmse"
            }
            TaskFileError::Unusable { .. } => {
                "correct it; --metric, --minimize and --maximize take precedence over a task file"
            }
            TaskFileError::UnknownKey { .. } | TaskFileError::NotYaml { .. } => {
                "a task file has competition_id, task_type, data_modality, evaluation_metric, \
                 metric_direction, description or description_file, and data_dir"
            }
            TaskFileError::Read(_) => CHECK_PATH,
        };
        Self::usage(error, hint)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error, "`mle-star run --help` lists the settings")
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self { error: error.into(), hint: Some(CHECK_PATH.to_owned()), code: 1 }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { error, hint: None, code: 1 }
    }
}
