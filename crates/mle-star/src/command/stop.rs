//! `mle-star stop`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::Args;
use mle_star::RunError;
use mle_star_search::rundir::RunDir;
use mle_star_search::step::Request;

use crate::failure::Failure;

/// End a run from elsewhere: what is in flight may finish, and `resume` goes on later
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The run directory
    run: Utf8PathBuf,

    /// End the loops instead, and make the submission of the best solution so far
    #[arg(long)]
    finalize: bool,
}

const AFTER_HELP: &str = "\
Examples:
  mle-star stop runs/titanic-1                  `mle-star resume runs/titanic-1` goes on
  mle-star stop runs/titanic-1 --finalize       with what it has now";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dir = RunDir::at(&arguments.run);
    if !dir.journal().is_file() {
        return Err(RunError::NoRun(arguments.run.clone()).into());
    }
    let is_running = mle_star_journal::is_locked(&dir.journal())
        .map_err(|error| RunError::Open { run: arguments.run.clone(), source: error.into() })?;
    if !is_running {
        return Err(Failure::usage(
            anyhow::anyhow!("`{}` is not running", arguments.run),
            "`mle-star list` shows which runs are",
        ));
    }
    let request = if arguments.finalize { Request::Finalize } else { Request::Stop };
    dir.set_request(Some(request))?;
    let what = if arguments.finalize { "finalize" } else { "stop" };
    super::print(&format!("asked `{}` to {what}", arguments.run))?;
    Ok(ExitCode::SUCCESS)
}
