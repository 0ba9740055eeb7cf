//! Why there is no run, or no result of one, and what to do about it.

use std::io::ErrorKind;

use camino::Utf8PathBuf;
use mle_star_agent::scripted::ScriptError;
use mle_star_exec::ExecError;
use mle_star_exec::venv::VenvError;
use mle_star_profile::ProfileError;
use mle_star_search::event::Lack;
use mle_star_search::models::{ConfigError, TaskError, nearest};
use mle_star_search::prompt::PromptError;
use mle_star_search::{Error, PipelineError};
use mle_star_view::shell_word;

use crate::agents::AgentsError;
use crate::{look, python};

/// Why a run did not begin, or ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The task makes no sense.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The settings make no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data cannot be used.
    #[error("the data of the task cannot be used")]
    Data(#[from] ProfileError),
    /// The data is not what the run began with.
    #[error("the data is not what the run began with: {}", .0.join("; "))]
    DataChanged(Vec<String>),
    /// The prompts that replace the built-in ones cannot be used.
    #[error("the prompts in `{folder}` cannot be used")]
    Prompts {
        /// The folder.
        folder: Utf8PathBuf,
        /// Why.
        source: PromptError,
    },
    /// The task needs packages that are not installed.
    #[error("the task needs Python packages that are not installed: {}", .packages.join(", "))]
    Packages {
        /// The interpreter.
        python: String,
        /// What is missing.
        packages: Vec<String>,
    },
    /// There is no environment with the packages that scripts need.
    #[error("the Python environment for the scripts cannot be made")]
    Venv(#[from] VenvError),
    /// There is no program that could supervise scripts.
    #[error("there is no program to supervise the scripts")]
    NoSupervisor,
    /// The machine cannot run scripts.
    #[error("this machine cannot run the scripts")]
    Machine(#[from] ExecError),
    /// The agents cannot be had.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// A file cannot be read or written. The message names it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// There is no run at this place.
    #[error("there is no run at `{0}`")]
    NoRun(Utf8PathBuf),
    /// The run cannot be opened.
    #[error("the run at `{run}` cannot be opened")]
    Open {
        /// The run directory.
        run: Utf8PathBuf,
        /// Why.
        source: Error,
    },
    /// The run ended without a result.
    #[error("the run at `{run}` has no result")]
    Pipeline {
        /// The run directory.
        run: Utf8PathBuf,
        /// Why.
        source: PipelineError,
    },
}

impl RunError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Task(TaskError::Direction { .. }) => {
                Some("correct `metric_direction`, or leave it out".to_owned())
            }
            Self::Task(TaskError::Blank { .. }) => {
                Some("a task needs a name, a metric and a description".to_owned())
            }
            Self::Config(_) => Some("`mle-star run --help` lists the settings".to_owned()),
            Self::Prompts { .. } => Some(
                "`prompts_dir` is a folder of files that replace prompts of the same name"
                    .to_owned(),
            ),
            Self::Io(_) | Self::Agents(AgentsError::Script(ScriptError::Read(_))) => {
                Some("check the path and its permissions".to_owned())
            }
            Self::Data(_) => Some("`data_dir` must be a folder with at least one file".to_owned()),
            Self::DataChanged(_) => {
                Some("restore the data, or name its folder with --data".to_owned())
            }
            Self::Packages { python, packages } => {
                let packages: Vec<String> = packages.iter().map(|it| shell_word(it)).collect();
                Some(format!("{} -m pip install {}", shell_word(python), packages.join(" ")))
            }
            Self::NoSupervisor => Some(
                "put `mle-star` on the path, or call `supervise_if_asked` first in `main`"
                    .to_owned(),
            ),
            Self::Machine(error) | Self::Venv(VenvError::Interpreter(error))
                if error.is_want_of_room() =>
            {
                Some(python::MAKE_ROOM.to_owned())
            }
            Self::Agents(error) if error.is_want_of_room() => Some(python::MAKE_ROOM.to_owned()),
            Self::Machine(
                ExecError::NoPython { .. }
                | ExecError::PythonTooOld { .. }
                | ExecError::PythonBroken { .. },
            ) => Some(
                "install Python 3.10 or later (apt install python3 python3-venv), or use --python"
                    .to_owned(),
            ),
            Self::Venv(error) => Some(python::hint(error)),
            Self::Machine(ExecError::Sandbox { .. }) => {
                Some("`mle-star doctor` says what is missing; --sandbox takes less".to_owned())
            }
            Self::Machine(_) => Some("`mle-star doctor` says what works here".to_owned()),
            Self::Agents(AgentsError::NoKey) => {
                Some("set it, or use --agents playbook, which needs no key".to_owned())
            }
            Self::Agents(AgentsError::Playbook(error)) => error.hint().map(str::to_owned),
            Self::Agents(AgentsError::Claude(error)) => {
                let names_it = "--claude-path names the program";
                match (error.remedy(), error.is_about_the_program()) {
                    (Some(remedy), true) => Some(format!("{remedy}; {names_it}")),
                    (None, true) => Some(names_it.to_owned()),
                    (remedy, false) => remedy.map(str::to_owned),
                }
            }
            Self::Agents(AgentsError::Unknown(name)) => {
                let all = "agents are claude, playbook, scripted:<file> or replay:<run>";
                Some(match nearest(name, ["claude", "playbook"]) {
                    Some(near) => format!("did you mean `{near}`? {all}"),
                    None => all.to_owned(),
                })
            }
            Self::Agents(AgentsError::Script(_)) => Some(
                "scripted:<file> is YAML: `replies:` with a `role` and a `reply` each".to_owned(),
            ),
            Self::Agents(AgentsError::Replay { .. }) => {
                Some("replay:<run> is a run directory; `mle-star list` shows the runs".to_owned())
            }
            Self::NoRun(run) => Some(match look::nearest_run(run) {
                Some(nearest) => {
                    format!("did you mean `{nearest}`? `mle-star list` shows the runs")
                }
                None => "`mle-star list` shows the runs".to_owned(),
            }),
            Self::Open { run, source: Error::Journal(journal) } => match journal {
                mle_star_journal::JournalError::Locked { .. } => Some(format!(
                    "wait for the other process, or stop it: mle-star stop {}",
                    shell_word(run.as_str())
                )),
                mle_star_journal::JournalError::Damaged { .. } => Some(
                    "the line can be mended by hand, or it and all later ones removed".to_owned(),
                ),
                mle_star_journal::JournalError::Io(error) => {
                    let is_ours = [ErrorKind::NotFound, ErrorKind::PermissionDenied];
                    Some(match is_ours.contains(&error.kind()) {
                        true => "check the path and its permissions".to_owned(),
                        // As of a disk that is full or broken.
                        false => format!(
                            "when that is mended: mle-star resume {}",
                            shell_word(run.as_str())
                        ),
                    })
                }
                mle_star_journal::JournalError::Exists { .. }
                | mle_star_journal::JournalError::Encode(_)
                | mle_star_journal::JournalError::Stopped { .. } => None,
            },
            Self::Open { run, source: Error::Diverged { .. } } => {
                Some(format!("mle-star resume {} --rerun-changed", shell_word(run.as_str())))
            }
            Self::Pipeline { run, source: PipelineError::Exhausted { lack, .. } } => {
                let resume = format!("mle-star resume {}", shell_word(run.as_str()));
                Some(match lack {
                    Lack::Time => format!("with a larger limit: {resume} -s time_limit_seconds=…"),
                    Lack::Money => format!("with a larger limit: {resume} -s max_budget_usd=…"),
                    Lack::Agents { .. } | Lack::Patience | Lack::Executor { .. } => {
                        format!("when that is mended: {resume}")
                    }
                })
            }
            Self::Pipeline { run, source } => match source.cause() {
                Error::NoCandidate { .. }
                | Error::NoModels
                | Error::NoAnswer { .. }
                | Error::Retriever { .. } => {
                    Some(format!("mle-star show {}", shell_word(run.as_str())))
                }
                Error::Agent { .. }
                | Error::Exec { .. }
                | Error::NotDone { .. }
                | Error::Journal(_)
                | Error::Io(_)
                | Error::Prompt(_)
                | Error::Diverged { .. }
                | Error::NotRecorded { .. }
                | Error::Format { .. }
                | Error::Headless
                | Error::Precondition(_) => Some(format!(
                    "when that is mended: mle-star resume {}",
                    shell_word(run.as_str())
                )),
            },
            Self::Open { source: Error::Format { .. }, .. } => {
                Some("use the version of mle-star that began the run".to_owned())
            }
            Self::Open { source: Error::Headless, .. } => {
                Some("without its first line a run cannot go on; begin a new one".to_owned())
            }
            Self::Open { .. } => None,
        }
    }

    /// Whether the caller asked for something that cannot be done, rather than something failing.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Task(_)
                | Self::Config(_)
                | Self::Prompts { .. }
                | Self::Data(_)
                | Self::NoRun(_)
                | Self::Venv(VenvError::Requirement { .. })
        ) || matches!(self, Self::Agents(error) if !error.is_want_of_room())
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_run_on_a_broken_disk_says_how_to_go_on_and_one_that_may_not_be_read_what_to_check() {
        let hint = |number: i32| {
            let error = std::io::Error::from_raw_os_error(number);
            let source = Error::Journal(mle_star_journal::JournalError::Io(error));
            RunError::Open { run: "runs/shop".into(), source }.hint().unwrap()
        };
        assert_eq!(
            hint(Errno::IO.raw_os_error()),
            "when that is mended: mle-star resume runs/shop"
        );
        assert_eq!(hint(Errno::ACCESS.raw_os_error()), "check the path and its permissions");
    }
}
