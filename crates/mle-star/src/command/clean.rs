//! `mle-star clean`

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use mle_star::look::look_at;
use mle_star_exec::limits::size;
use mle_star_search::event::Record;
use mle_star_search::rundir::RunDir;
use mle_star_view::{Condition, Work};

use crate::failure::Failure;

/// Remove what finished runs no longer need: workspaces, what scripts printed, conversations
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The folder that holds the run directories, or one of them
    #[arg(default_value = "runs")]
    runs: Utf8PathBuf,

    /// Clean runs too that were stopped; resuming one may then run a script again
    #[arg(long)]
    stopped: bool,

    /// Remove it; without this, only say what would be removed
    #[arg(long)]
    yes: bool,
}

const AFTER_HELP: &str = "\
Journals, solutions, submissions, reports and logs always stay.

Examples:
  mle-star clean                          what could go, and how much it is
  mle-star clean runs/titanic-1 --yes";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !arguments.runs.is_dir() {
        return Err(Failure::usage(
            anyhow::anyhow!("there is no folder `{}`", arguments.runs),
            "name the folder that holds the run directories",
        ));
    }
    let mut folders = Vec::new();
    for root in roots(&arguments.runs)? {
        if is_over(&root, arguments.stopped) {
            let own = ["work", "jobs", "sessions"].map(|name| root.join(name));
            folders.extend(own.into_iter().filter(|it| it.is_dir() && !it.is_symlink()));
        }
    }
    folders.sort();
    let mut lines = Vec::new();
    let mut total = 0;
    for folder in &folders {
        let bytes = bytes_in(folder);
        total += bytes;
        lines.push(format!("{:>10}  {folder}", size(bytes)));
        if arguments.yes {
            fs_err::remove_dir_all(folder)?;
        }
    }
    lines.push(match (folders.is_empty(), arguments.yes) {
        (true, _) => "nothing to remove".to_owned(),
        (false, true) => format!("{:>10}  removed", size(total)),
        (false, false) => format!("{:>10}  would be removed with --yes", size(total)),
    });
    super::print(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The run directories at a place.
fn roots(place: &Utf8Path) -> std::io::Result<Vec<Utf8PathBuf>> {
    if RunDir::at(place).journal().is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = place.read_dir_utf8()?.filter_map(Result::ok).map(|it| it.into_path());
    Ok(entries.filter(|it| !it.is_symlink() && RunDir::at(it).journal().is_file()).collect())
}

/// Whether nobody needs the folders of this run. One that cannot be read is left alone.
fn is_over(root: &Utf8Path, stopped_too: bool) -> bool {
    let dir = RunDir::at(root);
    let work = Work::on(&dir);
    let Ok(records) = mle_star_journal::read::<Record>(&dir.journal()) else { return false };
    match look_at(&records, work).1 {
        Condition::Finished | Condition::Failed => true,
        Condition::Stopped => stopped_too,
        Condition::Empty | Condition::Running => false,
    }
}

/// How much the files in a folder hold. Links are not followed: they lead to the data.
fn bytes_in(folder: &Utf8Path) -> u64 {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_in(entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |it| it.len()),
        Ok(_) | Err(_) => 0,
    });
    sizes.sum()
}
