//! The commands, one file each.

pub(crate) mod bench;
pub(crate) mod clean;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod stop;
pub(crate) mod ui;

mod direction;
mod dry_run;
mod logging;
mod sandbox;
mod terminal;
mod watch;

use std::io::{ErrorKind, Write};

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Arguments),
    Run(run::Arguments),
    Resume(resume::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
    Diff(diff::Arguments),
    Report(report::Arguments),
    Export(export::Arguments),
    Ui(ui::Arguments),
    Stop(stop::Arguments),
    Clean(clean::Arguments),
    Doctor(doctor::Arguments),
    Demo(demo::Arguments),
    Bench(bench::Arguments),
    Completions(shell::Completions),
    Man(shell::Man),
}

/// Prints what a command gives.
fn print(text: &str) -> Result<(), Failure> {
    match writeln!(anstream::stdout(), "{}", text.trim_end()) {
        // A reader that went away, such as `head`, has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
