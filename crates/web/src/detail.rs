//! What a page asks for when something is opened.

use std::io::Read as _;

use mle_star_agent::Call;
use mle_star_exec::Outcome;
use mle_star_search::Run;
use mle_star_search::event::{Output, Record};
use mle_star_search::rundir::RunDir;
use mle_star_view::{Solution, SolutionKind};
use serde::Serialize;
use serde_json::Value;

use crate::diff::Diff;
use crate::runs::{Followed, Step, What};

/// A script that is longer is shown up to here.
const MAX_SCRIPT: u64 = 1 << 20;

/// All that is known of a solution.
#[derive(Debug, Serialize)]
pub(crate) struct SolutionDetail<'a> {
    solution: &'a Solution,
    /// Its script, if the file is there.
    script: Option<String>,
    /// What it was made from, with the name of each.
    parents: Vec<Parent<'a>>,
    /// The parent that it is compared with.
    compared: Option<&'a str>,
    diff: Option<Diff>,
    /// What was done for it, in the order in which it began.
    steps: Vec<&'a Step>,
    /// How its last script ended and what it printed.
    outcome: Option<Outcome>,
}

#[derive(Debug, Serialize)]
struct Parent<'a> {
    id: &'a str,
    name: &'a str,
    has_script: bool,
}

/// All that is known of a step.
#[derive(Debug, Serialize)]
pub(crate) struct StepDetail<'a> {
    #[serde(flatten)]
    step: &'a Step,
    reply: Option<String>,
    structured: Option<Value>,
    source: Option<String>,
    outcome: Option<Outcome>,
}

/// What an agent was asked, as it can be made again from the record.
#[derive(Debug, Serialize)]
pub(crate) struct Asked {
    system_prompt: String,
    prompt: String,
    tools: Vec<String>,
    model: String,
}

/// Every step, in the order in which they began.
pub(crate) fn steps(run: &Followed) -> &[Step] {
    &run.steps
}

/// A solution, compared with `parent`, or else with the first that has a script.
pub(crate) fn solution<'a>(
    run: &'a Followed,
    id: &str,
    parent: Option<&str>,
) -> Option<SolutionDetail<'a>> {
    let overview = &run.overview;
    let solution = overview.solution(id)?;
    let read = |it: &Solution| script(&run.dir, it.script.as_deref()?);
    let known: Vec<&Solution> =
        solution.parents.iter().filter_map(|it| overview.solution(it)).collect();
    let compared = match parent {
        Some(parent) => known.iter().find(|it| it.id == parent),
        None => known.iter().find(|it| it.script.is_some()),
    };
    let script = read(solution);
    let diff = script.as_deref().zip(compared.and_then(|it| read(it)));
    let prefix = format!("{id}/");
    let belongs = |it: &&Step| match solution.kind {
        SolutionKind::Model => it.key == "phase1/retriever",
        SolutionKind::Candidate
        | SolutionKind::Merged
        | SolutionKind::Checked
        | SolutionKind::Refined
        | SolutionKind::Ensemble
        | SolutionKind::EarlySubmission
        | SolutionKind::Final => it.key.starts_with(&prefix),
    };
    let steps: Vec<&Step> = run.steps.iter().filter(belongs).collect();
    let last_run = steps.iter().rev().find(|it| it.what == What::Run && it.bytes.is_some());
    let outcome = last_run.and_then(|it| match output(run, it)? {
        Output::Ran { outcome, .. } => Some(outcome),
        Output::Asked { .. } | Output::NotDone { .. } | Output::Totals { .. } => None,
    });
    Some(SolutionDetail {
        solution,
        parents: known
            .iter()
            .map(|it| Parent { id: &it.id, name: &it.name, has_script: it.script.is_some() })
            .collect(),
        compared: compared.map(|it| it.id.as_str()),
        diff: diff.map(|(new, old)| Diff::of(&old, new)),
        script,
        steps,
        outcome,
    })
}

/// A step: what went in, and what came out.
pub(crate) fn step<'a>(run: &'a Followed, key: &str) -> Option<StepDetail<'a>> {
    let step = run.step(key)?;
    let source = step.script.as_deref().and_then(|it| script(&run.dir, it));
    let mut detail = StepDetail { step, reply: None, structured: None, source, outcome: None };
    match output(run, step) {
        Some(Output::Asked { reply, .. }) => {
            (detail.reply, detail.structured) = (Some(reply.text), reply.structured);
        }
        Some(Output::Ran { outcome, .. }) => detail.outcome = Some(outcome),
        Some(Output::NotDone { .. } | Output::Totals { .. }) | None => {}
    }
    Some(detail)
}

/// What was asked at `key`. This goes over the whole record, which may take a second.
pub(crate) fn prompt(dir: RunDir, key: &str) -> Option<Asked> {
    let Call { system_prompt, prompt, tools, model, .. } = Run::recall(dir, key).ok().flatten()?;
    Some(Asked { system_prompt, prompt, tools, model })
}

/// What came of a step, read again from the journal.
fn output(run: &Followed, step: &Step) -> Option<Output> {
    let record = mle_star_journal::read_at(&run.dir.journal(), step.bytes.as_ref()?).ok()?;
    match record {
        Record::Finished { output, .. } => Some(output),
        Record::Opened { .. }
        | Record::Resumed { .. }
        | Record::Settings { .. }
        | Record::Started { .. }
        | Record::Abandoned { .. }
        | Record::Decided { .. }
        | Record::Happened { .. } => None,
    }
}

/// A script of a run. The name is from the journal, and a run directory may come from anywhere: no
/// other file of this machine may be shown in its place.
fn script(dir: &RunDir, name: &str) -> Option<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !name.strip_suffix(".py").is_some_and(|it| !it.is_empty() && it.chars().all(is_plain)) {
        return None;
    }
    let path = dir.solution(name);
    let root = dir.root().canonicalize_utf8().ok()?;
    let is_inside = path.canonicalize_utf8().is_ok_and(|it| it.starts_with(&root));
    if !is_inside || !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs_err::File::open(&path).ok()?.take(MAX_SCRIPT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    #[test]
    fn a_name_in_a_journal_leads_to_no_file_outside_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let outside = Utf8PathBuf::try_from(folder.path().to_owned()).unwrap();
        let root = outside.join("run");
        fs_err::create_dir_all(root.join("solutions")).unwrap();
        fs_err::write(outside.join("secret.py"), "secret").unwrap();
        fs_err::write(root.join("solutions/a.py"), "mine").unwrap();
        std::os::unix::fs::symlink("../../secret.py", root.join("solutions/b.py")).unwrap();
        let dir = RunDir::at(root);

        assert_eq!(script(&dir, "a.py").as_deref(), Some("mine"));
        for name in ["b.py", "../../secret.py", "/etc/passwd", "c.py", ".py", "", "a.py\0"] {
            assert_eq!(script(&dir, name), None, "{name}");
        }
    }
}
