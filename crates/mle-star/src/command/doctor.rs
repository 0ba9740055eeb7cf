//! `mle-star doctor`

use std::process::ExitCode;

use anyhow::Context;
use camino::Utf8PathBuf;
use clap::Args;
use mle_star::doctor::{Check, Doctor, State, would_work};
use mle_star_view::{plain, plain_json};

use super::sandbox::SandboxArguments;
use crate::failure::Failure;

/// Say what works here and what does not, and what to do about it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The Python that would run the scripts [default: $MLE_STAR_PYTHON, else an environment that
    /// is made once with the usual packages]
    #[arg(long, value_name = "FILE")]
    python: Option<Utf8PathBuf>,

    /// The claude program [default: $MLE_STAR_CLAUDE_PATH, else the first on the path]
    #[arg(long, value_name = "FILE")]
    claude_path: Option<Utf8PathBuf>,

    /// The folder in which runs would be
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    out: Utf8PathBuf,

    #[command(flatten)]
    sandbox: SandboxArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Exit codes: 0 a run would work, 1 it would not

Example:
  mle-star doctor --require-sandbox strong";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let doctor = Doctor {
        python: arguments.python,
        runs: arguments.out,
        wish: arguments.sandbox.wish().unwrap_or_default(),
        supervisor: None,
        claude_path: arguments.claude_path,
    };
    let checks = runtime.block_on(doctor.examine());
    let text = match arguments.json {
        true => {
            let json = serde_json::to_string_pretty(&checks).context("cannot show the checks")?;
            plain_json(&json)
        }
        false => checks.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    super::print(&text)?;
    Ok(if would_work(&checks) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(check: &Check) -> String {
    let state = match check.state {
        State::Ok => "ok",
        State::Weak => "weak",
        State::Missing => "MISSING",
    };
    let remedy = check.remedy.as_ref().map(|it| format!("\n         -> {}", plain(it)));
    format!("{state:8} {:10} {}{}", check.name, plain(&check.found), remedy.unwrap_or_default())
}
