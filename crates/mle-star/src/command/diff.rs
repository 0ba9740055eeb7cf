//! `mle-star diff`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::Args;
use mle_star::RunError;
use mle_star::look::{look_at, read};
use mle_star_search::models::nearest;
use mle_star_search::rundir::RunDir;
use mle_star_view::{Overview, Solution, Work, plain_lines};
use similar::TextDiff;

use crate::failure::Failure;

/// Show what one solution of a run changed in another
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The run directory
    run: Utf8PathBuf,

    /// A solution
    a: String,

    /// Another one [default: the first one's parent is compared with it]
    b: Option<String>,
}

const AFTER_HELP: &str = "\
A solution is named by its place, such as phase2/path-0/outer-1/inner-2 or candidate-0, by the name of
its file in solutions/, or by one of: initial, best, final.

Examples:
  mle-star diff runs/titanic-1 initial final
  mle-star diff runs/titanic-1 path-0/outer-1/inner-2      what this refinement changed";

/// A script and what it is called.
struct Script {
    name: String,
    text: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dir = RunDir::at(&arguments.run);
    if !dir.journal().is_file() {
        return Err(RunError::NoRun(arguments.run.clone()).into());
    }
    let work = Work::on(&dir);
    let (overview, _) = look_at(&read(&dir)?, work);
    let (old, new) = match &arguments.b {
        Some(b) => (find(&overview, &dir, &arguments.a)?, find(&overview, &dir, b)?),
        None => (parent(&overview, &dir, &arguments.a)?, find(&overview, &dir, &arguments.a)?),
    };
    let diff = TextDiff::from_lines(&old.text, &new.text);
    let text = diff.unified_diff().header(&old.name, &new.name).to_string();
    if !text.is_empty() {
        super::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The solution with this name.
fn solution<'a>(overview: &'a Overview, name: &str) -> Option<&'a Solution> {
    let with_script = || overview.solutions().iter().filter(|it| it.script.is_some());
    let at = |id: &str| with_script().find(|it| it.id == id);
    match name {
        "initial" => {
            // What Phase 2 began with: the parent of the first refinement, else of the early
            // submission.
            let first = with_script().find(|it| it.id.starts_with("phase2/"));
            let early = || at("phase1/early_submission");
            at(first.or_else(early)?.parents.first()?)
        }
        "best" => at(overview.selected.as_ref()?.solution.as_ref()?),
        "final" => at("finalization"),
        name => at(name)
            .or_else(|| with_script().find(|it| it.id.ends_with(&format!("/{name}"))))
            .or_else(|| with_script().find(|it| it.script.as_deref() == Some(name))),
    }
}

fn find(overview: &Overview, dir: &RunDir, name: &str) -> Result<Script, Failure> {
    let Some(found) = solution(overview, name) else {
        let known = overview.solutions().iter().filter(|it| it.script.is_some());
        let known: Vec<&str> = known.map(|it| it.id.as_str()).collect();
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean {near}?"),
            None => "`mle-star report <run>` lists the solutions".to_owned(),
        };
        return Err(Failure::usage(anyhow::anyhow!("the run has no solution `{name}`"), hint));
    };
    let file = found.script.as_deref().unwrap_or_default();
    let text = fs_err::read_to_string(dir.solution(file)).map_err(Failure::unreadable)?;
    Ok(Script { name: format!("{} ({file})", found.id), text: plain_lines(&text) })
}

/// What the solution with this name was made from.
fn parent(overview: &Overview, dir: &RunDir, name: &str) -> Result<Script, Failure> {
    find(overview, dir, name)?; // an unknown name is what is wrong first
    let parents = solution(overview, name).into_iter().flat_map(|it| &it.parents);
    let mut parents =
        parents.filter(|id| overview.solution(id).is_some_and(|it| it.script.is_some()));
    match parents.next() {
        Some(id) => find(overview, dir, id),
        None => Err(Failure::usage(
            anyhow::anyhow!("`{name}` was not made from another solution"),
            "name the one to compare it with",
        )),
    }
}
