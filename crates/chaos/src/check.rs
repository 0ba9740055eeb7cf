//! What must hold when a run is over, whatever befell it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use camino::Utf8Path;
use fs_err as fs;
use mle_star_search::event::{Begun, Event, Output, Record};
use serde_json::Value;

use crate::answers::is_whole_submission;
use crate::place::{Ended, Place};
use crate::processes;
use crate::stand_in::PRICE;

/// How long what was started may take to be gone when the run is over.
const DYING: Duration = Duration::from_secs(10);

/// What a run came to, as far as it does not depend on the clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traits {
    /// Its exit code.
    pub code: Option<i32>,
    /// `result.json` without times and costs; nothing if there is none.
    pub result: Option<Value>,
    /// The steps that are finished, in the order of their names.
    pub finished: Vec<String>,
    /// Those of them that were asked of an agent.
    pub calls: Vec<String>,
    /// How long the journal is.
    pub journal_bytes: u64,
}

/// What the run in `place` came to.
pub fn traits(place: &Place, ended: &Ended) -> anyhow::Result<Traits> {
    let run = place.run().context("there is no run")?;
    let records: Vec<Record> = mle_star_journal::read(&run.join("journal.jsonl"))?;
    let steps = || records.iter().filter_map(Record::finished);
    let mut finished: Vec<String> = steps().map(|(key, _)| key.to_string()).collect();
    finished.sort();
    let asked = steps().filter(|(_, output)| matches!(output, Output::Asked { .. }));
    let mut calls: Vec<String> = asked.map(|(key, _)| key.to_string()).collect();
    calls.sort();
    let result = match fs::read_to_string(run.join("result.json")) {
        Ok(text) => Some(timeless(serde_json::from_str(&text)?)),
        Err(_) => None,
    };
    let journal_bytes = place.journal_bytes();
    Ok(Traits { code: ended.code, result, finished, calls, journal_bytes })
}

/// Everything that does not hold. A run that does not keep the result of the one in peace must
/// still have one, unless it `may_fail`.
pub fn end(
    place: &Place,
    ended: &Ended,
    peaceful: &Traits,
    keeps_the_result: bool,
    may_fail: bool,
) -> Vec<String> {
    let mut problems = Vec::new();
    match traits(place, ended) {
        Err(error) => problems.push(format!("{error:#} (exit {:?}): {}", ended.code, ended.said)),
        Ok(traits) => {
            if keeps_the_result {
                problems.extend(differences(&traits, peaceful, &ended.said));
            } else if !matches!(traits.code, Some(0 | 3))
                && traits.code != peaceful.code
                && !(may_fail && traits.code == Some(1))
            {
                problems.push(format!("it ended with {:?}: {}", traits.code, ended.said));
            }
            problems.extend(accounts(place, &traits));
            if let Some(result) = &traits.result {
                problems.extend(lengths(result));
            }
        }
    }
    problems.extend(leftovers(place));
    problems
}

fn differences(traits: &Traits, peaceful: &Traits, said: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if traits.code != peaceful.code {
        let (now, then) = (traits.code, peaceful.code);
        problems.push(format!("it ended with {now:?} instead of {then:?}: {said}"));
    }
    if traits.result != peaceful.result {
        let none = Value::Null;
        let now = traits.result.as_ref().unwrap_or(&none);
        let then = peaceful.result.as_ref().unwrap_or(&none);
        problems.push(format!("the result differs at {}", first_difference(now, then)));
    }
    if traits.finished != peaceful.finished {
        let missing = peaceful.finished.iter().find(|it| !traits.finished.contains(it));
        let more = traits.finished.iter().find(|it| !peaceful.finished.contains(it));
        let (now, then) = (traits.finished.len(), peaceful.finished.len());
        problems.push(format!(
            "{now} steps were finished instead of {then}: without {missing:?}, with {more:?}"
        ));
    }
    problems
}

/// Where two values differ first.
fn first_difference(now: &Value, then: &Value) -> String {
    match (now, then) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let other = b.get(key).unwrap_or(&Value::Null);
                if value != other {
                    return format!("{key}.{}", first_difference(value, other));
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (value, other)) in a.iter().zip(b).enumerate() {
                if value != other {
                    return format!("{index}.{}", first_difference(value, other));
                }
            }
        }
        _ => {}
    }
    let short = |value: &Value| value.to_string().chars().take(300).collect::<String>();
    format!(": {} instead of {}", short(now), short(then))
}

/// Work, money and scores, as the journal and the ledger have them.
fn accounts(place: &Place, traits: &Traits) -> Vec<String> {
    let Some(run) = place.run() else { return Vec::new() };
    let Ok(records) = mle_star_journal::read::<Record>(&run.join("journal.jsonl")) else {
        return vec!["the journal cannot be read".to_owned()];
    };
    let mut problems = Vec::new();
    let (mut done, mut open) = (BTreeMap::<String, usize>::new(), BTreeMap::new());
    let (mut best, mut published) = (BTreeMap::<String, f64>::new(), f64::NEG_INFINITY);
    let (mut cost, mut asked) = (None, 0);
    for record in &records {
        match record {
            Record::Resumed { .. } => open.clear(),
            Record::Started { key, begun, .. } => {
                asked += usize::from(matches!(begun, Some(Begun::Ask { .. })));
                let key = key.to_string();
                if done.contains_key(&key) {
                    problems.push(format!("`{key}` was begun after it was finished"));
                }
                if open.insert(key.clone(), ()).is_some() {
                    problems.push(format!("`{key}` was begun twice in one life"));
                }
            }
            Record::Abandoned { key, .. } => drop(open.remove(key.as_str())),
            Record::Finished { key, output, .. } => {
                open.remove(key.as_str());
                *done.entry(key.to_string()).or_default() += 1;
                if let Output::Totals { cost_usd, .. } = output {
                    cost = *cost_usd;
                }
            }
            Record::Happened { key, event, .. } => {
                let path = key.as_str().split('/').nth(1).unwrap_or_default().to_owned();
                if let Event::Refined { best: now, .. } = event {
                    let now = f64::from(*now);
                    if best.insert(path, now).is_some_and(|before| now < before) {
                        problems.push(format!("the best score got worse at `{key}`"));
                    }
                }
                // Asked again after a wait.
                asked += usize::from(matches!(event, Event::Waiting { .. }));
                if let Event::Published { score, .. } = event {
                    let now = f64::from(*score);
                    if now < published {
                        problems.push(format!("a worse submission was published at `{key}`"));
                    }
                    published = now;
                }
            }
            Record::Opened { .. } | Record::Settings { .. } | Record::Decided { .. } => {}
        }
    }
    let twice = done.iter().filter(|(_, times)| **times > 1);
    problems.extend(twice.map(|(key, times)| format!("`{key}` was finished {times} times")));
    let begun = place.ledger().lines().filter(|line| line.starts_with("begun")).count();
    if begun > asked {
        problems.push(format!("{begun} conversations were begun, but only {asked} recorded"));
    }
    let paid = place.ledger().lines().filter(|line| line.starts_with("paid")).count();
    if paid > 0 && traits.result.is_some() {
        let paid = PRICE * f64::from(u32::try_from(paid).unwrap_or(u32::MAX));
        if cost.unwrap_or(0.0) < paid - 1e-9 {
            problems.push(format!("${paid:.2} were paid, but only {cost:?} counted"));
        }
    }
    problems
}

/// How many of everything a result must have: M, L, T, K and R of [`Place`].
fn lengths(result: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let mut expect = |what: &str, value: Option<&Value>, count: usize| {
        let found = value.and_then(Value::as_array).map_or(0, Vec::len);
        if found != count {
            problems.push(format!("{found} {what} instead of {count}"));
        }
    };
    expect("candidates", result.pointer("/phase1/candidate_solutions"), 2);
    expect("paths", result.get("phase2_results"), 2);
    let paths = result.get("phase2_results").and_then(Value::as_array).into_iter().flatten();
    for path in paths {
        expect("outer steps", path.get("step_history"), 1);
        expect("summaries", path.get("ablation_summaries"), 1);
        expect("blocks", path.get("refined_blocks"), 1);
        let skipped = path.pointer("/step_history/0/was_skipped") == Some(&Value::Bool(true));
        let attempts = path.pointer("/step_history/0/inner_loop_attempts");
        expect("attempts", attempts, if skipped { 0 } else { 2 });
    }
    if let Some(phase3) = result.get("phase3").filter(|it| !it.is_null()) {
        expect("rounds", phase3.get("ensemble_scores"), 1);
        expect("ensemble plans", phase3.get("ensemble_plans"), 1);
    }
    problems
}

/// What is there and should not be.
fn leftovers(place: &Place) -> Vec<String> {
    let left = processes::outlasting(place.root(), DYING);
    let mut problems: Vec<String> =
        left.iter().map(|it| format!("process {} is left: {}", it.pid, it.command)).collect();
    let temporary = files_in(&place.root().join("tmp"));
    problems.extend(temporary.iter().map(|it| format!("temporary file `{it}` is left")));
    let shared = Utf8Path::new("/dev/shm").read_dir_utf8().into_iter().flatten().flatten();
    let shared = shared.filter(|it| Some(it.file_name()) == place.root().file_name());
    problems.extend(shared.map(|it| format!("shared memory `{}` is left", it.path())));
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let sockets = sockets.lines().filter(|line| line.contains(place.root().as_str()));
    problems.extend(sockets.map(|it| format!("socket `{it}` is left")));
    let Some(run) = place.run() else { return problems };
    let is_part = |it: &String| it.ends_with(".tmp") || it.ends_with(".part");
    let parts = files_in(&run).into_iter().filter(is_part);
    problems.extend(parts.map(|it| format!("half-written file `{it}` is left")));
    match mle_star_journal::is_locked(&run.join("journal.jsonl")) {
        Ok(false) => {}
        other => problems.push(format!("the journal is still locked: {other:?}")),
    }
    let submission = fs::read_to_string(run.join("final/submission.csv"));
    if submission.is_ok_and(|text| !is_whole_submission(&text)) {
        problems.push("the submission is not whole".to_owned());
    }
    problems
}

/// All files under `folder`, with their paths.
fn files_in(folder: &Utf8Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_in(entry.path())),
            Ok(_) | Err(_) => files.push(entry.path().to_string()),
        }
    }
    files
}

/// A result without what depends on the clock, the folder, or how often the run was resumed.
fn timeless(mut value: Value) -> Value {
    const VOLATILE: [&str; 8] = [
        "created_at",
        "total_duration_seconds",
        "total_cost_usd",
        "submission_path",
        "data_dir",
        "claude_path",
        "execution_time_seconds",
        "notes",
    ];
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !VOLATILE.contains(&key.as_str()));
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    strip(&mut value);
    value
}
