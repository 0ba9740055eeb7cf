//! `mle-star demo`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::Args;
use mle_star::{Agents, Pipeline, demo};
use mle_star_search::models::ConfigLayer;

use super::sandbox::SandboxArguments;
use super::watch::{Ending, Output, watch};
use crate::failure::Failure;

/// See the whole pipeline work in a few minutes, on a task that comes with scikit-learn, with the
/// playbook: no key, no language model
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The folder in which the run directory and the demo's data are made
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    out: Utf8PathBuf,

    /// The Python that runs the scripts [default: $MLE_STAR_PYTHON, else an environment that is
    /// made once with the usual packages]
    #[arg(long, value_name = "FILE")]
    python: Option<Utf8PathBuf>,

    /// One setting, as for `run`; may be repeated
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,

    #[command(flatten)]
    sandbox: SandboxArguments,

    #[command(flatten)]
    output: Output,
}

const AFTER_HELP: &str = "\
Example:
  mle-star demo --ui                                in a browser as well

What to try next:
  mle-star show runs/<run>                          what happened, step by step
  mle-star run <folder> --agents playbook           the same on data of yours
  mle-star run <folder>                             with Claude's agents";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let settings = ConfigLayer::from_pairs(arguments.settings.iter().map(String::as_str))?;
    let progress = arguments.output.progress();
    let open = async {
        let folder = arguments.out.join(".demo");
        let task = demo::prepare(&folder, arguments.python.clone(), &progress).await?;
        Pipeline::new(task)
            .settings(settings)
            .preset(demo::settings())
            .agents(Agents::Playbook)
            .runs(arguments.out.clone())
            .python(arguments.python.clone())
            .progress(progress.clone())
            .sandbox(arguments.sandbox.wish().unwrap_or_default())
            .open()
            .await
    };
    watch(&arguments.output, Ending::WhatToTryNext, open)
}
