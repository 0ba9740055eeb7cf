//! `mle-star init`

use std::process::ExitCode;

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use mle_star::draft::Draft;
use mle_star::task_file::{TaskOptions, place_in};
use mle_star::unpack::{Limits, unpack};
use mle_star_exec::limits::size;
use mle_star_search::rundir::write_whole;

use super::direction::DirectionArguments;
use super::terminal::say;
use crate::failure::Failure;

/// Write a task.yaml for a folder, from what its data and its description show
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The folder with the data
    folder: Utf8PathBuf,

    /// What to predict, if no file in the folder says it
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,

    /// The metric, if the description does not name it
    #[arg(long, value_name = "NAME", visible_alias = "eval")]
    metric: Option<String>,

    #[command(flatten)]
    direction: DirectionArguments,

    /// Replace a task.yaml that is there
    #[arg(long)]
    force: bool,
}

const AFTER_HELP: &str = "\
Data is looked for in `input`, `data`, `prepared/public` (MLE-bench) and the folder itself. Zip
files that lie there, as Kaggle hands them out, are unpacked into `input`. A description.md,
overview.md or README.md tells the metric. Nothing is asked: what was decided is said with its
reason, and what could not be decided is marked CHECK in the file.

Example:
  mle-star init titanic && mle-star run titanic";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let folder = &arguments.folder;
    if !folder.is_dir() {
        return Err(Failure::usage(
            anyhow!("there is no folder `{folder}`"),
            "name the folder that holds the data",
        ));
    }
    let file = place_in(folder);
    if file.exists() && !arguments.force {
        return Err(Failure::usage(
            anyhow!("there is a `{file}` already"),
            "--force replaces it; `mle-star run` takes it as it is",
        ));
    }
    unpack_data(folder)?;
    let direction = arguments.direction.direction();
    let (goal, metric) = (arguments.goal.clone(), arguments.metric.clone());
    let draft = Draft::of(folder, &TaskOptions { goal, metric, direction })?;
    write_whole(&file, draft.to_yaml().as_bytes())?;
    for decided in &draft.decided {
        say(&format!("{}: {} ({})", decided.subject, decided.value, decided.reason));
    }
    for open in &draft.open {
        say(&format!("check {}: {}", open.subject, open.remedy));
    }
    super::print(file.as_str())?;
    Ok(ExitCode::SUCCESS)
}

/// Unpacks the archives of a folder whose data is still in them.
pub(super) fn unpack_data(folder: &Utf8Path) -> Result<(), Failure> {
    if let Some(unpacked) = unpack(folder, Limits::default())? {
        let mle_star::unpack::Unpacked { folder, archives, files, bytes } = unpacked;
        let bytes = size(bytes);
        say(&format!("unpacked into {folder}: {files} files, {bytes}, from {archives} zip files"));
    }
    Ok(())
}
