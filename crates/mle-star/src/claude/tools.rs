//! What agents may do with tools, and what is told of it.
//!
//! Before a tool is used, the policy judges: nothing outside the call's own folder is changed, and
//! no secret is read. After it was used, a line goes to the log.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_agent::Call;
use mle_star_claude::{Hook, Tool, ToolCall, ToolDecision, ToolDone, ToolServer, Uuid};
use mle_star_policy::{Policy, Verdict};
use mle_star_search::models::{PipelineConfig, ToolProfile, parse_score};
use serde_json::{Value, json};

use super::web::Searches;

/// How many files are listed.
const LISTED: usize = 1000;
/// The name under which our own tools are offered.
const SERVER: &str = "mle_star";
/// Where people keep what nobody is to read, below their home.
const SECRETS: [&str; 8] =
    [".ssh", ".aws", ".gnupg", ".config", ".claude", ".claude.json", ".netrc", ".kaggle"];

/// The tools of a run's agents.
#[derive(Debug)]
pub(super) struct Toolbox {
    profile: ToolProfile,
    data_dir: Utf8PathBuf,
    denied: Vec<String>,
    failures: Failures,
}

/// How often the tools of each role have failed one after another, in whatever call.
#[derive(Debug, Clone, Default)]
struct Failures(Arc<Mutex<HashMap<String, u32>>>);

impl Failures {
    /// Counts one more use of a tool. Says how many in a row have failed by now.
    fn count(&self, role: &str, error: Option<&str>) -> u32 {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_a_row = failures.entry(role.to_owned()).or_default();
        *in_a_row = if error.is_some() { in_a_row.saturating_add(1) } else { 0 };
        *in_a_row
    }
}

impl Toolbox {
    /// Tools for agents that work on the data in `data_dir`.
    pub(super) fn new(config: &PipelineConfig, data_dir: Utf8PathBuf) -> Self {
        let denied = config.denied_commands.clone();
        Self { profile: config.tool_profile, data_dir, denied, failures: Failures::default() }
    }

    /// Tools of ours: none, unless agents are to work with tools at all.
    pub(super) fn servers(&self) -> Vec<ToolServer> {
        match self.profile {
            ToolProfile::Minimal => Vec::new(),
            ToolProfile::Wide => {
                vec![ToolServer::new(SERVER, [score(), files(self.data_dir.clone())])]
            }
        }
    }

    /// What is called when the agent of `call` uses tools in `folder`.
    pub(super) fn hooks(
        &self,
        call: &Call,
        id: Uuid,
        folder: &Path,
        home: &Path,
        searches: &Searches,
    ) -> Vec<Hook> {
        if call.tools.is_empty() && self.profile == ToolProfile::Minimal {
            return Vec::new();
        }
        let policy = self.policy(folder, home);
        let judge = Hook::before_tool(None, move |use_of: ToolCall| {
            let verdict = match use_of.folder.is_empty() {
                true => Err("the folder is not known"),
                false => Ok(policy.judge(&use_of.tool, &use_of.input, Path::new(&use_of.folder))),
            };
            let decision = verdict.map(|verdict| match verdict {
                Verdict::Allow => ToolDecision::Pass,
                Verdict::Deny { reason } => {
                    tracing::warn!(
                        target: "mle_star",
                        tool = use_of.tool, session = %id, reason, "tool denied"
                    );
                    ToolDecision::Deny { reason }
                }
            });
            async move { decision }
        });
        let failures = self.failures.clone();
        let (step, role) = (call.step.clone(), call.role.clone());
        let begun = Instant::now();
        let searches = searches.clone();
        let watch = Hook::after_tool(None, move |done| {
            searches.note(&done);
            let in_a_row = failures.count(&role, done.error.as_deref());
            note(&step, &role, id, begun, &done, in_a_row);
            async {}
        });
        [judge].into_iter().chain(watch).collect()
    }

    fn policy(&self, folder: &Path, home: &Path) -> Policy {
        let mut policy = Policy::new(folder)
            .also_reading(&self.data_dir)
            .with_home(home)
            .allowing_tool(format!("mcp__{SERVER}__*"));
        if let Some(of_user) = std::env::home_dir() {
            policy = SECRETS.iter().fold(policy, |it, name| it.hiding(of_user.join(name)));
        }
        self.denied.iter().fold(policy, |policy, words| policy.denying(words))
    }
}

/// What the program says of our tools at its start, if it goes on without them.
pub(super) fn refused(message: &Value) -> Option<&str> {
    let servers = message.get("mcp_servers")?.as_array()?;
    let ours = servers.iter().find(|it| it.get("name").is_some_and(|name| name == SERVER))?;
    let status = ours.get("status")?.as_str()?;
    (!["connected", "pending"].contains(&status)).then_some(status)
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

    /// REQ-OR-035
    #[test]
    fn failures_in_a_row_are_counted_by_role_until_something_works() {
        let failures = Failures::default();
        let uses = [
            failures.count("coder", Some("exit 1")),
            failures.count("coder", Some("exit 2")),
            failures.count("debugger", Some("exit 1")),
            failures.count("coder", Some("exit 1")),
            failures.count("debugger", None),
            failures.count("coder", None),
            failures.count("coder", Some("exit 1")),
        ];
        assert_eq!(uses, [1, 2, 1, 3, 0, 0, 1]);
    }

    /// REQ-OR-010
    #[test]
    fn tools_that_are_not_offered_are_noticed() {
        let init = |name: &str, status: &str| {
            let server = json!({ "name": name, "status": status });
            json!({ "type": "system", "subtype": "init", "mcp_servers": [server] })
        };
        assert_eq!(refused(&init(SERVER, "failed")), Some("failed"));
        assert_eq!(refused(&init(SERVER, "connected")), None);
        assert_eq!(refused(&init("another", "failed")), None);
        assert_eq!(refused(&json!({ "type": "system" })), None);
    }

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
