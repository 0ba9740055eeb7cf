//! Runs scripts through somebody else's Bash tool, such as the one of an agent runtime.
//!
//! **This runs outside our sandbox and is never the default.** The script sees whatever the tool
//! lets it see: its environment with all credentials, its files, its network. Nothing here limits
//! memory, cores or disk, and who kills the script's children is up to the tool. It is for places
//! where the tool itself is the fence, and for nothing else.
//!
//! The tool mixes the two streams. All of it counts as standard output, and the part that Python
//! writes when it fails counts as standard error as well.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::capture::Capture;
use crate::limits::Usage;
use crate::sandbox::Tier;
use crate::{
    Captured, Ended, ExecError, Executor, Job, Outcome, inspect_submission, trace, workspace,
};

/// The longest time that the tool gives a command.
const LONGEST: Duration = Duration::from_millis(600_000);
/// How long a tool may take to come back after the limit it was given.
const GRACE: Duration = Duration::from_secs(10);

/// Where scripts run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorStrategy {
    /// As child processes of this one.
    #[default]
    Subprocess,
    /// Through a Bash tool, see [`ViaBash`].
    SdkBash,
}

/// A word that is no [`ExecutorStrategy`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no executor strategy: it is `subprocess` or `sdk_bash`")]
pub struct UnknownStrategy {
    /// The word.
    pub name: String,
}

/// A tool that runs Bash commands.
pub trait BashTool: fmt::Debug + Send + Sync {
    /// Runs a command to its end, or to the end of its time. Dropping the future stops it.
    fn run<'a>(&'a self, request: &'a BashRequest) -> BoxFuture<'a, Result<BashReply, ExecError>>;
}

/// A command for a [`BashTool`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BashRequest {
    /// What to run.
    pub command: String,
    /// How long it may take, in milliseconds.
    pub timeout: u64,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BashReply {
    /// Everything it wrote.
    pub output: String,
    /// Zero means success.
    #[serde(rename = "exitCode")]
    pub exit_code: i32,
}

/// Runs scripts through a Bash tool, **outside our sandbox**.
#[derive(Debug)]
pub struct ViaBash {
    /// The tool.
    pub tool: Box<dyn BashTool>,
    /// The Python interpreter, as the tool's shell finds it.
    pub python: Utf8PathBuf,
    /// Who runs the scripts that may take longer than the tool allows.
    pub otherwise: Box<dyn Executor>,
}

impl Executor for ViaBash {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        if job.time_limit > LONGEST {
            return self.otherwise.run(job);
        }
        Box::pin(self.run_with_tool(job))
    }

    fn slots(&self) -> usize {
        self.otherwise.slots()
    }
}

impl ViaBash {
    async fn run_with_tool(&self, job: &Job) -> Result<Outcome, ExecError> {
        let script = workspace::script_path(job)?;
        workspace::prepare(&job.workspace, &job.data_dir)?;
        fs::write(&script, &job.script)?;
        trace::script_written(&script, &job.script);

        let request = BashRequest {
            command: command(&job.workspace, &self.python, &script),
            timeout: u64::try_from(job.time_limit.as_millis()).unwrap_or(u64::MAX),
        };
        trace::execution_started(&script, &job.workspace, job.time_limit);
        let start = Instant::now();
        let reply = timeout(job.time_limit + GRACE, self.tool.run(&request)).await;
        let duration = start.elapsed();
        let (ended, output) = match reply {
            Err(_) => (timed_out(job), String::new()),
            // The tool has no word for it, but nothing else fails just then.
            Ok(Ok(reply)) if reply.exit_code != 0 && duration >= job.time_limit => {
                (timed_out(job), reply.output)
            }
            Ok(reply) => reply.map(|reply| (ended(reply.exit_code), reply.output))?,
        };
        if matches!(ended, Ended::TimedOut { .. }) {
            trace::timed_out(&script, job.time_limit);
        }
        Ok(outcome(job, ended, duration, &output))
    }
}

/// All that is known of a run, in the words of this crate.
fn outcome(job: &Job, ended: Ended, duration: Duration, output: &str) -> Outcome {
    Outcome {
        ended,
        stdout: captured(output),
        stderr: captured(complaint(output)),
        duration_seconds: duration.as_secs_f64(),
        submission: inspect_submission(&job.workspace),
        usage: Usage::default(),
        limits: None,
        tier: Tier::Off,
    }
}

fn captured(text: &str) -> Captured {
    let mut capture = Capture::default();
    capture.push(text.as_bytes());
    capture.finish()
}

fn command(dir: &Utf8Path, python: &Utf8Path, script: &Utf8Path) -> String {
    let [dir, python, script] = [dir, python, script].map(|path| quoted(path.as_str()));
    format!("cd {dir} && {python} {script}")
}

/// A word as the shell reads it back, in quotes only where it needs them.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// How a command ended, by its exit code. A shell adds 128 to the signal that killed a command.
fn ended(exit_code: i32) -> Ended {
    match exit_code {
        129..=192 => Ended::Signaled { signal: exit_code - 128 },
        code => Ended::Exited { code },
    }
}

fn timed_out(job: &Job) -> Ended {
    Ended::TimedOut { after_seconds: job.time_limit.as_secs_f64() }
}

/// The part of the output that Python writes when it fails: from its first traceback on, or from
/// the place of a syntax error, which has none.
fn complaint(output: &str) -> &str {
    let traceback = output.find("Traceback (most recent call last):");
    let syntax_error = || output.rfind("\n  File \"").map(|line_end| line_end + 1);
    let first = || output.starts_with("  File \"").then_some(0);
    let start = traceback.or_else(syntax_error).or_else(first);
    start.and_then(|start| output.get(start..)).unwrap_or_default()
}

impl fmt::Display for ExecutorStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subprocess => "subprocess",
            Self::SdkBash => "sdk_bash",
        })
    }
}

impl FromStr for ExecutorStrategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        match name {
            "subprocess" => Ok(Self::Subprocess),
            "sdk_bash" => Ok(Self::SdkBash),
            _ => Err(UnknownStrategy { name: name.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests;
