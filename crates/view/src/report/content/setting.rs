//! What a run was set to, where it ran, and how to do it again.

use mle_star_exec::limits::size;
use mle_star_exec::sandbox::Tier;
use mle_star_search::models::ContaminationVerdict;

use super::super::Extras;
use super::plain;
use crate::{Overview, State, shell_word};

/// Every setting with its value, as the run used it.
pub(super) fn settings(overview: &Overview) -> Vec<(String, String)> {
    let Some(subject) = overview.subject.as_ref() else { return Vec::new() };
    let Ok(serde_json::Value::Object(settings)) = serde_json::to_value(&subject.settings) else {
        return Vec::new();
    };
    let says_nothing = |value: &serde_json::Value| {
        value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty)
    };
    let shown = settings.into_iter().filter(|(_, value)| !says_nothing(value));
    let text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => plain(&text),
        serde_json::Value::Object(parts) => {
            let parts = parts.into_iter().map(|(name, value)| format!("{name} {value}"));
            plain(&parts.collect::<Vec<_>>().join(", "))
        }
        other @ (serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)) => plain(&other.to_string()),
    };
    shown.map(|(name, value)| (name, text(value))).collect()
}

pub(super) fn environment(overview: &Overview) -> (Vec<String>, Vec<(String, String)>) {
    let Some(subject) = overview.subject.as_ref() else { return (Vec::new(), Vec::new()) };
    let machine = &subject.machine;
    let gpus = match (machine.gpus.gpu_names.as_slice(), &machine.gpus.absent_because) {
        ([], Some(why)) => format!("none ({})", plain(why)),
        ([], None) => "none".to_owned(),
        (names, _) => plain(&names.join(", ")),
    };
    let mut lines = vec![
        ("Python".to_owned(), plain(&machine.python_version)),
        ("Cores".to_owned(), machine.cores.to_string()),
        ("Memory".to_owned(), size(machine.memory_bytes)),
        ("Graphics cards".to_owned(), gpus),
    ];
    let mut sandbox = Vec::new();
    match &subject.containment {
        Some(held) => {
            lines.push(("Sandbox".to_owned(), held.tier.to_string()));
            let limits = &held.limits;
            lines.push((
                "A script may use".to_owned(),
                format!(
                    "{} of memory, {} of disk, {} processes",
                    size(limits.memory_bytes),
                    size(limits.workspace_bytes),
                    limits.processes
                ),
            ));
            sandbox.extend(held.gaps.iter().map(|gap| format!("scripts can {gap}")));
            sandbox.extend(held.refused.iter().map(|why| format!("no {}", plain(why))));
            if held.tier < Tier::Strong {
                sandbox.insert(0, "This is not the strongest sandbox.".to_owned());
            }
        }
        None => lines.push(("Sandbox".to_owned(), "not known".to_owned())),
    }
    if let Some(verdict) = overview.contamination {
        let verdict = match verdict {
            ContaminationVerdict::Novel => "its own work",
            ContaminationVerdict::Same => "a copy of a reference discussion",
        };
        lines.push(("Compared with references".to_owned(), verdict.to_owned()));
    }
    (sandbox, lines)
}

pub(super) fn commands(overview: &Overview, extras: &Extras) -> Vec<(String, String)> {
    let run = shell_word(&plain(&extras.run));
    let agents = overview.subject.as_ref().map(|it| plain(&it.agents)).unwrap_or_default();
    let agents = agents.strip_suffix(" (no LLM)").unwrap_or(&agents);
    let again = format!("mle-star run {run}/task.yaml --config {run}/config.yaml --agents");
    let mut commands = vec![
        (
            "The same task with the same settings, from the beginning".to_owned(),
            format!("{again} {}", shell_word(agents)),
        ),
        ("The same with the replies of this run".to_owned(), format!("{again} replay:{run}")),
        ("What happened, step by step".to_owned(), format!("mle-star show {run}")),
    ];
    if overview.state() != State::Finished {
        commands.insert(0, ("Go on with it".to_owned(), format!("mle-star resume {run}")));
    }
    commands
}
