//! `mle-star list`

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use mle_star_search::event::Record;
use mle_star_search::rundir::RunDir;
use mle_star_view::{Glance, State, Work, plain_json, score};
use serde::Serialize;

use crate::failure::Failure;

/// List the runs, the newest last
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The folder that holds the run directories
    #[arg(default_value = "runs")]
    runs: Utf8PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  mle-star list                     all runs in runs/
  mle-star list --json | jq -r '.[] | select(.state == \"finished\").name'";

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    state: String,
    overview: Glance,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !arguments.runs.is_dir() {
        return Err(Failure::usage(
            anyhow::anyhow!("there is no folder `{}`", arguments.runs),
            "name the folder that holds the run directories",
        ));
    }
    let mut listed = Vec::new();
    for entry in arguments.runs.read_dir_utf8()? {
        let root = entry?.into_path();
        if RunDir::at(&root).journal().is_file() {
            listed.push(look_at(&root));
        }
    }
    listed.sort_by(|a, b| (a.overview.began, &a.name).cmp(&(b.overview.began, &b.name)));
    let text = if arguments.json {
        plain_json(&serde_json::to_string_pretty(&listed).map_err(std::io::Error::from)?)
    } else {
        table(&listed)
    };
    super::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn look_at(root: &Utf8Path) -> Listed {
    let dir = RunDir::at(root);
    let name = root.file_name().unwrap_or_default().to_owned();
    let work = Work::on(&dir);
    match mle_star_journal::read::<Record>(&dir.journal()) {
        Ok(records) => {
            let (overview, state) = mle_star::look::look_at(&records, work);
            Listed { name, state: state.to_string(), overview: overview.glance(), error: None }
        }
        Err(error) => Listed {
            name,
            state: "damaged".to_owned(),
            overview: Glance::default(),
            error: Some(format!("{:#}", anyhow::Error::from(error))),
        },
    }
}

fn table(listed: &[Listed]) -> String {
    if listed.is_empty() {
        return "no runs\n".to_owned();
    }
    let width = listed.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let row = |name: &str, state: &str, [best, calls, scripts, cost]: [String; 4]| {
        format!("{name:width$}  {state:10}  {best:>12}  {calls:>5}  {scripts:>7}  {cost:>8}\n")
    };
    let heading = ["best", "calls", "scripts", "cost"].map(str::to_owned);
    let rows = listed.iter().map(|run| {
        let overview = &run.overview;
        let best = match overview.state {
            State::Finished => overview.selected.or(overview.best),
            State::Unfinished | State::Empty => overview.best,
        };
        let figures = [
            best.map_or_else(|| "-".to_owned(), score),
            overview.agent_calls.to_string(),
            overview.scripts.to_string(),
            overview.cost_usd.map_or_else(|| "-".to_owned(), |cost| format!("${cost:.2}")),
        ];
        row(&run.name, &run.state, figures)
    });
    std::iter::once(row("run", "state", heading)).chain(rows).collect()
}
