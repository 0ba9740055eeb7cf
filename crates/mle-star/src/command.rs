//! The commands, one file each.

pub(crate) mod list;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod show;

mod watch;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Solve a task
    Run(run::Arguments),
    /// Go on with a run after a crash, a kill or an interrupt
    Resume(resume::Arguments),
    /// List the runs
    List(list::Arguments),
    /// Look into a run
    Show(show::Arguments),
}
