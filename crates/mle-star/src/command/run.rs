//! `mle-star run`

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, ValueEnum};
use mle_star::task_file::{TaskOptions, place_in, read_task};
use mle_star::{Agents, Pipeline, RunError};
use mle_star_search::models::{ConfigLayer, Preset};

use super::direction::DirectionArguments;
use super::dry_run::dry_run;
use super::init::unpack_data;
use super::sandbox::SandboxArguments;
use super::watch::{Ending, Output, watch};
use crate::failure::Failure;

/// Solve a task: search for models, write and merge candidates, refine what matters, ensemble, and
/// write the submission
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// A task.yaml, a folder with one, or a folder with data that --goal and --metric explain
    task: Utf8PathBuf,

    /// Who answers: claude, playbook, scripted:<file> or replay:<run>
    #[arg(long, default_value = "claude", value_name = "AGENTS")]
    agents: String,

    /// The model behind the agents, such as opus [default: sonnet]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// The claude program [default: $MLE_STAR_CLAUDE_PATH, else the first on the path]
    #[arg(long, value_name = "FILE")]
    claude_path: Option<Utf8PathBuf>,

    /// One setting; may be repeated. M, T, K, L and R stand for the paper's numbers
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,

    /// A YAML file of settings
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,

    /// A named set of settings, below all others
    #[arg(long)]
    preset: Option<PresetName>,

    /// The folder in which the run directory is made
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    out: Utf8PathBuf,

    /// The Python that runs the scripts [default: $MLE_STAR_PYTHON, else an environment that is
    /// made once with the usual packages]
    #[arg(long, value_name = "FILE")]
    python: Option<Utf8PathBuf>,

    #[command(flatten)]
    sandbox: SandboxArguments,

    /// What to predict, for a folder without a task.yaml
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,

    /// The metric, for a folder without a task.yaml whose description does not name it
    #[arg(long, value_name = "NAME", visible_alias = "eval")]
    metric: Option<String>,

    #[command(flatten)]
    direction: DirectionArguments,

    /// A text file with a discussion that the solution must not be a copy of; may be repeated
    #[arg(long, value_name = "FILE")]
    reference: Vec<Utf8PathBuf>,

    /// Check everything, say what the run may take, and begin nothing
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,

    #[command(flatten)]
    output: Output,
}

const AFTER_HELP: &str = "\
Examples:
  mle-star run titanic --agents playbook
  mle-star run titanic/task.yaml -s T=2 -s K=2 -s time_limit_seconds=3600
  mle-star run houses --goal \"Predict the price\" --metric rmse

Settings, with their defaults:
  num_retrieved_models (M) 4       outer_loop_steps (T) 4        inner_loop_steps (K) 4
  num_parallel_solutions (L) 2     ensemble_rounds (R) 5         max_debug_attempts 3
  time_limit_seconds 86400         script_timeout_seconds a tenth of the time limit
  subsample_limit 30000            max_budget_usd none           model sonnet
  script_memory_limit, script_process_limit, script_output_limit, script_workspace_limit and
  script_file_limit, such as 12GB: the script's share of the machine
  max_concurrent_sessions 4        tool_profile minimal          permission_mode bypassPermissions
  agent_models none, such as {\"coder\": \"opus\"}                claude_path none
  denied_commands none, such as [\"git push\", \"docker\"]
  strict_paper_selection false     early_submission true         prompts_dir none
  session call (or path)           web_search auto (or off)       seed 0
  log_level INFO                   log_file none
  phase_time_budget {phase1: 0.1, phase2: 0.65, phase3: 0.15, finalization: 0.1}
Each can also be given as an environment variable, such as MLE_STAR_MODEL. Such variables, and keys
such as ANTHROPIC_API_KEY, are also read from a file `.env` in the current folder, with lines such
as NAME=value; the environment takes precedence.

A folder without a task.yaml may have its data in `input`, `data`, `prepared/public` or itself, and
a description.md that says what to predict and how it is judged. Zip files are unpacked into
`input`. `mle-star init` writes a task.yaml for such a folder.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 ended early by a limit or by `mle-star stop
--finalize` (there is a result), 130 interrupted, 143 terminated (the run can be resumed)";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PresetName {
    Fast,
    Paper,
    MleBench,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let agents: Agents = arguments.agents.parse().map_err(RunError::Agents)?;
    let flags = ConfigLayer::from_pairs(arguments.settings.iter().map(String::as_str))?;
    let named = ConfigLayer {
        model: arguments.model,
        claude_path: arguments.claude_path,
        ..ConfigLayer::default()
    };
    let flags = named.over(flags);
    let file = match &arguments.config {
        Some(path) => read_settings(path)?,
        None => ConfigLayer::default(),
    };
    let preset = match arguments.preset {
        None => ConfigLayer::default(),
        Some(PresetName::Fast) => Preset::Fast.layer(),
        Some(PresetName::Paper) => Preset::Paper.layer(),
        Some(PresetName::MleBench) => Preset::MleBench.layer(),
    };
    let direction = arguments.direction.direction();
    let options = TaskOptions { goal: arguments.goal, metric: arguments.metric, direction };
    if arguments.task.is_dir() && !place_in(&arguments.task).exists() {
        unpack_data(&arguments.task)?;
    }
    let task = read_task(&arguments.task, &options)?;
    let references = arguments.reference.iter().map(fs_err::read_to_string);

    let pipeline = Pipeline::new(task)
        .settings(flags.over(file))
        .preset(preset)
        .agents(agents)
        .runs(arguments.out.clone())
        .python(arguments.python)
        .progress(arguments.output.progress())
        .sandbox(arguments.sandbox.wish().unwrap_or_default())
        .reference_discussions(references.collect::<Result<_, _>>().map_err(Failure::unreadable)?);
    if arguments.dry_run {
        return dry_run(pipeline, &arguments.out);
    }
    watch(&arguments.output, Ending::Outcome, pipeline.open())
}

fn read_settings(path: &Utf8Path) -> Result<ConfigLayer, Failure> {
    let text = fs_err::read_to_string(path).map_err(Failure::unreadable)?;
    let hint = "a file of settings has lines such as `outer_loop_steps: 2`";
    let map = serde_saphyr::from_str(&text).map_err(|error| {
        Failure::usage(anyhow!("cannot use `{path}`: {}", error.without_snippet()), hint)
    })?;
    let layer = ConfigLayer::from_map(map).with_context(|| format!("cannot use `{path}`"));
    layer.map_err(|error| Failure::usage(error, hint))
}
