//! `mle-star bench`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::Args;
use mle_star::bench::{Collection, Graded, Progress, Trial, table};
use mle_star::pipeline::{Resume, complete};
use mle_star::task_file::{TaskOptions, read_task};
use mle_star::{Agents, FinalResult, Pipeline};
use mle_star_search::models::{ConfigLayer, nearest};

use super::terminal::say;
use crate::failure::{Failure, INTERRUPTED};

/// Run every task of a collection, grade the submissions, and print a table
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The folder that holds a folder for each task, and `grade.py`
    collection: Utf8PathBuf,

    /// Only this task; may be repeated
    #[arg(long, value_name = "NAME")]
    task: Vec<String>,

    /// How often each task is run, each time with another seed
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    seeds: u64,

    /// Who answers the calls, as for `run`
    #[arg(long, default_value = "playbook")]
    agents: Agents,

    /// One setting, as for `run`; may be repeated
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,

    /// The folder in which the runs are kept
    #[arg(long, value_name = "FOLDER", default_value = "bench")]
    out: Utf8PathBuf,

    /// The Python that runs the scripts and the grader [default: $MLE_STAR_PYTHON, else an
    /// environment that is made once with the usual packages]
    #[arg(long, value_name = "FILE")]
    python: Option<Utf8PathBuf>,

    /// Run nothing; grade what is there
    #[arg(long)]
    only_grade: bool,
}

const AFTER_HELP: &str = "\
A run that is finished is not made again, and one that was broken off goes on: call it again with
the same arguments. `grade.py TASK SUBMISSION` prints a line of JSON with `valid`, `score` and
`medal`; `answers/TASK.json` may hold what others reached.

Example:
  mle-star bench tasks --seeds 2 -s time_limit_seconds=600 > table.md";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => {
                say("interrupted; the same command goes on");
                Ok(ExitCode::from(INTERRUPTED))
            }
            ended = bench(&arguments) => ended,
        }
    })
}

async fn bench(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let collection = Collection::at(camino::absolute_utf8(&arguments.collection)?);
    let mut tasks = collection.tasks().map_err(Failure::unreadable)?;
    if let Some(unknown) = arguments.task.iter().find(|name| !tasks.contains(name)) {
        let error = anyhow::anyhow!("there is no task `{unknown}` in `{}`", arguments.collection);
        let there = format!("there are: {}", tasks.join(", "));
        let hint = match nearest(unknown, tasks.iter().map(String::as_str)) {
            Some(nearest) => format!("did you mean `{nearest}`? {there}"),
            None => there,
        };
        return Err(Failure::usage(error, hint));
    }
    tasks.retain(|name| arguments.task.is_empty() || arguments.task.contains(name));
    let out = camino::absolute_utf8(&arguments.out)?;
    let trials: Vec<Trial> = (0..arguments.seeds)
        .flat_map(|seed| tasks.iter().map(move |task| (task, seed)))
        .map(|(task, seed)| Trial::new(&out, task, seed))
        .collect();
    let mut failed = 0;
    for trial in trials.iter().filter(|_| !arguments.only_grade) {
        let name = format!("{}, seed {}", trial.task, trial.seed);
        match Box::pin(carry_out(arguments, &collection, trial)).await {
            Ok(None) => {}
            Ok(Some(result)) => {
                let score = result.final_solution.score;
                let score = score.map_or_else(|| "none".to_owned(), |score| score.to_string());
                let seconds = result.total_duration_seconds;
                say(&format!("{name}: validation score {score} after {seconds:.0} s"));
            }
            Err(failure) => {
                failed += 1;
                say(&format!("{name}:"));
                failure.report();
            }
        }
    }
    if collection.has_grader() {
        super::print(&table(&collection, &graded(arguments, &collection, &trials).await?))?;
    } else {
        say("no `grade.py` in the collection: nothing is graded");
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a trial that is not finished.
async fn carry_out(
    arguments: &Arguments,
    collection: &Collection,
    trial: &Trial,
) -> Result<Option<FinalResult>, Failure> {
    let run = match trial.progress()? {
        Progress::Done(_) => return Ok(None),
        Progress::Begun(run) => Resume::new(run).open().await?,
        Progress::New => {
            let task = read_task(&collection.folder(&trial.task), &TaskOptions::default())?;
            let settings = arguments.settings.iter().map(String::as_str);
            let seed = ConfigLayer { seed: Some(trial.seed), ..ConfigLayer::default() };
            Pipeline::new(task)
                .settings(ConfigLayer::from_pairs(settings)?.over(seed))
                .agents(arguments.agents.clone())
                .runs(trial.runs.clone())
                .python(arguments.python.clone())
                .progress(mle_star::Progress::new(say))
                .open()
                .await?
        }
    };
    say(&format!("{}, seed {}: {}", trial.task, trial.seed, run.dir().root()));
    Ok(Some(complete(&run).await?))
}

/// What the grader says of all trials that have ended, task by task.
async fn graded(
    arguments: &Arguments,
    collection: &Collection,
    trials: &[Trial],
) -> Result<Vec<Graded>, Failure> {
    let progress = mle_star::Progress::new(say);
    let python = collection.python(arguments.python.clone(), &progress).await?;
    let mut results = Vec::new();
    for trial in trials {
        if matches!(trial.progress()?, Progress::Done(_)) {
            results.push(collection.grade(&python, trial).await?);
        }
    }
    results.sort_by(|a, b| a.task.cmp(&b.task));
    Ok(results)
}
