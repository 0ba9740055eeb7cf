//! Why a command failed, for a person.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use mle_star::RunError;
use mle_star::dotenv::DotenvError;
use mle_star::secrets::mask;
use mle_star::task_file::TaskFileError;
use mle_star::unpack::UnpackError;
use mle_star_search::models::{ConfigError, nearest};

/// The command was used wrongly.
pub(crate) const USAGE: u8 = 2;

/// A budget or the deadline ended the run early, but it has a result.
pub(crate) const CUT_SHORT: u8 = 3;

/// The command was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// The command was told to end by the system.
pub(crate) const TERMINATED: u8 = 143;

const CHECK_PATH: &str = "check the path and its permissions";

/// Says what is wrong with the arguments, in the form of all other errors; help and version, which
/// arrive the same way, are printed as they are.
#[expect(clippy::print_stderr, reason = "before there is a command, nothing else says it")]
pub(crate) fn misused(error: clap::Error, commands: &clap::Command) -> ExitCode {
    if !error.use_stderr() {
        // A reader that went away, such as `head`, has seen enough.
        error.print().ok();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let help = text.lines().find_map(|line| line.strip_prefix("Usage: "));
    let command: Vec<&str> = help
        .unwrap_or("mle-star")
        .split_whitespace()
        .take_while(|word| word.starts_with(|it: char| it.is_ascii_lowercase()))
        .collect();
    let mut hints = Vec::new();
    let mut said = Vec::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix("tip: ") {
            // Nobody who misspells an option wants it to be taken for a file.
            Some(tip) if tip.starts_with("to pass ") => {}
            Some(tip) => hints.push(format!("hint: {tip}")),
            None if line.starts_with("For more information") => {}
            None => said.push(line),
        }
    }
    if hints.is_empty()
        && let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(near) = nearest(name, commands.get_subcommands().map(clap::Command::get_name))
    {
        hints.push(format!("hint: a similar subcommand exists: '{near}'"));
    }
    if hints.is_empty() {
        hints.push(format!("hint: `{} --help` says what there is", command.join(" ")));
    }
    let said = said.join("\n").trim_end().replace("\n\n\n", "\n\n");
    eprintln!("{}\n{}", mask(&said), mask(&hints.join("\n")));
    ExitCode::from(USAGE)
}

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
            TaskFileError::NotFound { nearest: Some(nearest), .. } => {
                return Self::usage(
                    anyhow::anyhow!("{error}"),
                    format!("did you mean `{nearest}`?"),
                );
            }
            TaskFileError::NotFound { nearest: None, .. } => {
                "name a task.yaml, or a folder with one"
            }
            TaskFileError::Packed { .. } => "`mle-star init` unpacks them",
            TaskFileError::Incomplete { .. } => {
                "`mle-star init` writes a task.yaml; or add what is missing, such as --goal \"…\" \
                 --metric rmse"
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

impl From<UnpackError> for Failure {
    fn from(error: UnpackError) -> Self {
        let hint = error.hint();
        Self::usage(error, hint)
    }
}

impl From<DotenvError> for Failure {
    fn from(error: DotenvError) -> Self {
        let hint = match &error {
            DotenvError::Read(_) => CHECK_PATH,
            DotenvError::NotText { .. } | DotenvError::Value { .. } => {
                "a line is NAME=value; a value that has spaces stands between quotes"
            }
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
        let hint = "`mle-star doctor` says what works here".to_owned();
        Self { error, hint: Some(hint), code: 1 }
    }
}
