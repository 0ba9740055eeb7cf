//! What agents may do with tools, and what is told of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_agent::Call;
use mle_star_claude::{Hook, Tool, ToolDone, ToolServer, Uuid};
use mle_star_search::models::{ToolProfile, parse_score};
use serde_json::{Value, json};

/// How many files are listed.
const LISTED: usize = 1000;

/// The tools of a run's agents.
#[derive(Debug)]
pub(super) struct Toolbox {
    profile: ToolProfile,
    data_dir: Utf8PathBuf,
    /// How often the tools of each role have failed one after another.
    failures: Arc<Mutex<HashMap<String, u32>>>,
}

impl Toolbox {
    pub(super) fn new(profile: ToolProfile, data_dir: Utf8PathBuf) -> Self {
        Self { profile, data_dir, failures: Arc::default() }
    }

    /// Tools of ours: none, unless agents are to work with tools at all.
    pub(super) fn servers(&self) -> Vec<ToolServer> {
        match self.profile {
            ToolProfile::Minimal => Vec::new(),
            ToolProfile::Wide => {
                vec![ToolServer::new("mle_star", [score(), files(self.data_dir.clone())])]
            }
        }
    }

    /// What is called when agents use tools.
    pub(super) fn hooks(&self, call: &Call, id: Uuid) -> Vec<Hook> {
        if call.tools.is_empty() && self.profile == ToolProfile::Minimal {
            return Vec::new();
        }
        let failures = Arc::clone(&self.failures);
        let (step, role) = (call.step.clone(), call.role.clone());
        let begun = Instant::now();
        let watch = Hook::after_tool(None, move |done| {
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            let in_a_row = failures.entry(role.clone()).or_default();
            *in_a_row = if done.error.is_some() { in_a_row.saturating_add(1) } else { 0 };
            note(&step, &role, id, begun, &done, *in_a_row);
            async {}
        });
        watch.into()
    }
}

/// A line in the log for every use of a tool.
fn note(step: &str, role: &str, id: Uuid, begun: Instant, done: &ToolDone, in_a_row: u32) {
    let elapsed_ms = super::millis(begun);
    let took_ms = done.duration.and_then(|took| u64::try_from(took.as_millis()).ok());
    let tool = done.tool.as_str();
    match &done.error {
        None => tracing::info!(
            target: "mle_star",
            step, role, tool, session = %id, elapsed_ms, took_ms, ok = true, "tool used"
        ),
        Some(error) => tracing::warn!(
            target: "mle_star",
            step, role, tool, session = %id, elapsed_ms, took_ms, ok = false, in_a_row, error,
            "tool failed"
        ),
    }
}

/// Reads the score out of what a script printed, as the run itself does.
fn score() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "output": { "type": "string", "description": "What the script printed" },
        },
        "required": ["output"],
    });
    let description = "Reads the validation score from what a script printed.";
    Tool::new("parse_score", description, schema, |input: Value| async move {
        let output = input.get("output").and_then(Value::as_str).ok_or("`output` is missing")?;
        let score = parse_score(output)
            .ok_or("there is no line `Final Validation Performance: <number>`")?;
        Ok(score.get().to_string())
    })
}

/// Lists the data.
fn files(data_dir: Utf8PathBuf) -> Tool {
    let description = "Lists the files of the data folder ./input with their sizes in bytes.";
    let schema = json!({ "type": "object", "properties": {} });
    Tool::new("list_files", description, schema, move |_| {
        let data_dir = data_dir.clone();
        async move {
            let mut lines = Vec::new();
            list(&data_dir, &data_dir, &mut lines);
            lines.sort();
            if lines.len() > LISTED {
                lines.truncate(LISTED);
                lines.push("... and more".to_owned());
            }
            Ok(lines.join("\n"))
        }
    })
}

fn list(root: &Utf8Path, folder: &Utf8Path, lines: &mut Vec<String>) {
    for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
        if lines.len() > LISTED {
            return;
        }
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap_or(path);
        match entry.metadata() {
            Ok(it) if it.is_dir() => list(root, path, lines),
            Ok(it) => lines.push(format!("input/{name}\t{}", it.len())),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_with_their_sizes() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::create_dir(root.join("images")).unwrap();
        fs_err::write(root.join("train.csv"), "id\n").unwrap();
        fs_err::write(root.join("images/a.png"), "").unwrap();
        let mut lines = Vec::new();
        list(root, root, &mut lines);
        lines.sort();
        assert_eq!(lines, ["input/images/a.png\t0", "input/train.csv\t3"]);
    }
}
