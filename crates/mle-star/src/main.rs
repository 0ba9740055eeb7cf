//! The `mle-star` command.

mod command;
mod failure;

use std::process::ExitCode;

use camino::Utf8Path;
use clap::{CommandFactory, Parser};

use crate::command::Command;
use crate::failure::Failure;

/// A machine-learning-engineering agent: from a task and its data to a submission
#[derive(Debug, Parser)]
#[command(name = "mle-star", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    if let Some(code) = mle_star::supervise_if_asked() {
        return code;
    }
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return failure::misused(error, &Cli::command()),
    };
    if let Err(error) = mle_star::dotenv::read(Utf8Path::new("")) {
        return Failure::from(error).report();
    }
    let ended = match command {
        Command::Init(arguments) => command::init::run(&arguments),
        Command::Run(arguments) => command::run::run(arguments),
        Command::Resume(arguments) => command::resume::run(arguments),
        Command::List(arguments) => command::list::run(&arguments),
        Command::Show(arguments) => command::show::run(&arguments),
        Command::Diff(arguments) => command::diff::run(&arguments),
        Command::Report(arguments) => command::report::run(&arguments),
        Command::Export(arguments) => command::export::run(&arguments),
        Command::Ui(arguments) => command::ui::run(&arguments),
        Command::Stop(arguments) => command::stop::run(&arguments),
        Command::Clean(arguments) => command::clean::run(&arguments),
        Command::Doctor(arguments) => command::doctor::run(arguments),
        Command::Demo(arguments) => command::demo::run(arguments),
        Command::Bench(arguments) => command::bench::run(arguments),
        Command::Completions(arguments) => command::shell::completions(&arguments, Cli::command()),
        Command::Man(arguments) => command::shell::man(&arguments, Cli::command()),
    };
    ended.unwrap_or_else(|failure| failure.report())
}
