//! `mle-star export`

use std::process::ExitCode;

use anyhow::Context;
use camino::Utf8PathBuf;
use clap::Args;
use mle_star::RunError;
use mle_star::export::Export;
use mle_star::look::read;
use mle_star_search::rundir::RunDir;

use crate::failure::Failure;

/// Take the best solution out of a run: the script, its requirements, a notebook, the submission
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The run directory
    run: Utf8PathBuf,

    /// The folder that is written [default: export in the run directory]
    #[arg(long, short, value_name = "FOLDER")]
    out: Option<Utf8PathBuf>,
}

const AFTER_HELP: &str = "\
Example:
  mle-star export runs/titanic-1 --out best && cd best && pip install -r requirements.txt";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dir = RunDir::at(&arguments.run);
    if !dir.journal().is_file() {
        return Err(RunError::NoRun(arguments.run.clone()).into());
    }
    let export = Export::of(&read(&dir)?, &dir)?.ok_or_else(|| {
        Failure::usage(
            anyhow::anyhow!("`{}` has no solution yet", arguments.run),
            "a run has one when its first script was scored",
        )
    })?;
    let folder = arguments.out.clone().unwrap_or_else(|| arguments.run.join("export"));
    let written = export.write(&folder).with_context(|| format!("cannot export to `{folder}`"))?;
    super::print(&written.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
