//! `mle-star completions` and `mle-star man`

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;
use mle_star_search::models::nearest;

use crate::failure::Failure;

/// Print a script by which a shell completes commands and options
#[derive(Debug, Args)]
#[command(after_help = "Example, for bash:\n  source <(mle-star completions bash)")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page, of all commands or of one
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mle-star man run > mle-star-run.1")]
pub(crate) struct Man {
    /// The command
    command: Option<String>,
}

pub(crate) fn completions(
    arguments: &Completions,
    mut program: Command,
) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "mle-star", &mut text);
    super::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(arguments: &Man, mut program: Command) -> Result<ExitCode, Failure> {
    program.build();
    let page = match &arguments.command {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            let names = program.get_subcommands().map(Command::get_name);
            let hint = match nearest(name, names) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "`mle-star --help` lists the commands".to_owned(),
            };
            Failure::usage(anyhow::anyhow!("there is no command `{name}`"), hint)
        })?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    super::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
