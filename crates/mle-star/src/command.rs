//! The commands, one file each.

pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod list;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod stop;
pub(crate) mod ui;

mod dry_run;
mod sandbox;
mod watch;

use std::io::{ErrorKind, Write};

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Arguments),
    Resume(resume::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
    Ui(ui::Arguments),
    Stop(stop::Arguments),
    Doctor(doctor::Arguments),
    Demo(demo::Arguments),
}

/// Prints what a command gives.
fn print(text: &str) -> Result<(), Failure> {
    match writeln!(anstream::stdout(), "{}", text.trim_end()) {
        // A reader that went away, such as `head`, has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
