//! `mle-star resume`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::Args;
use mle_star::RunError;
use mle_star::pipeline::Resume;
use mle_star_search::OnChange;
use mle_star_search::models::ConfigLayer;

use super::sandbox::SandboxArguments;
use super::watch::{Ending, Output, watch};
use crate::failure::Failure;

/// Go on with a run after a crash, a kill or an interrupt: nothing that was finished is done again
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The run directory
    run: Utf8PathBuf,

    /// Other agents than before
    #[arg(long, value_name = "AGENTS")]
    agents: Option<String>,

    /// Where the data is now; it must be the same data
    #[arg(long, value_name = "FOLDER")]
    data: Option<Utf8PathBuf>,

    /// A limit to change, such as time_limit_seconds or max_budget_usd; may be repeated
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,

    #[command(flatten)]
    sandbox: SandboxArguments,

    /// Do recorded steps again that no longer fit, and what follows from them
    #[arg(long)]
    rerun_changed: bool,

    #[command(flatten)]
    output: Output,
}

const AFTER_HELP: &str = "\
Examples:
  mle-star resume runs/titanic-1
  mle-star resume runs/titanic-1 -s time_limit_seconds=7200      with more time
  mle-star resume titanic-1 --data titanic/input                 copied from another machine";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let agents = arguments.agents.map(|text| text.parse()).transpose();
    let agents = agents.map_err(RunError::Agents)?;
    let on_change = if arguments.rerun_changed { OnChange::Rerun } else { OnChange::Stop };
    let limits = ConfigLayer::from_pairs(arguments.settings.iter().map(String::as_str))?;
    let progress = arguments.output.progress();
    let resume = Resume {
        run: arguments.run,
        agents,
        data: arguments.data,
        on_change,
        limits,
        progress,
        sandbox: arguments.sandbox.wish(),
        supervisor: None,
        permission: None,
    };
    watch(&arguments.output, Ending::Outcome, resume.open())
}
