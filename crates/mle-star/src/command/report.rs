//! `mle-star report`

use std::process::ExitCode;

use anyhow::Context;
use camino::Utf8PathBuf;
use clap::Args;
use mle_star::RunError;
use mle_star::look::Report;
use mle_star_search::rundir::{RunDir, write_whole};
use mle_star_view::Work;

use crate::failure::Failure;

/// Write the report of a run, at any moment: what was tried, what helped, what it cost
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The run directory
    run: Utf8PathBuf,

    /// Write this file instead; Markdown if its name ends in .md, else HTML
    #[arg(long, short, value_name = "FILE")]
    out: Option<Utf8PathBuf>,
}

const AFTER_HELP: &str = "\
Without --out, report.html and report.md are written into the run directory, as they are when a run
ends. The page needs nothing from elsewhere: it can be sent, printed and opened offline.

Examples:
  mle-star report runs/titanic-1
  mle-star report runs/titanic-1 --out titanic.md";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dir = RunDir::at(camino::absolute_utf8(&arguments.run)?);
    if !dir.journal().is_file() {
        return Err(RunError::NoRun(arguments.run.clone()).into());
    }
    let report = Report::of(&dir, Work::on(&dir))
        .with_context(|| format!("no report of `{}`", arguments.run))?;
    let written = match &arguments.out {
        Some(file) => {
            let is_markdown = file.extension().is_some_and(|it| it.eq_ignore_ascii_case("md"));
            let text = if is_markdown { &report.markdown } else { &report.html };
            write_whole(file, text.as_bytes())?;
            file.to_string()
        }
        None => {
            report.write(&dir).with_context(|| format!("no report of `{}`", arguments.run))?;
            format!("{}\n{}", dir.report("html"), dir.report("md"))
        }
    };
    super::print(&written)?;
    Ok(ExitCode::SUCCESS)
}
