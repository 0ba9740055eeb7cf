//! One use of a tool.

use std::path::Path;

use serde_json::Value;

use crate::place::{Cwd, Last};
use crate::text::Text;
use crate::{Denial, Judged, Policy, glob, shell};

/// Tools that change nothing on this machine but what the agent knows.
pub(crate) const HARMLESS: &[&str] =
    &["StructuredOutput", "TodoWrite", "TaskOutput", "ToolSearch", "WebFetch", "WebSearch"];

pub(crate) fn judge(policy: &Policy, tool: &str, input: &Value, cwd: &Path) -> Judged {
    let here = Cwd::at(cwd);
    match tool {
        "Bash" => {
            for switch in ["run_in_background", "dangerouslyDisableSandbox"] {
                if input.get(switch).is_some_and(|value| *value != Value::Bool(false)) {
                    return Err(Denial::new(format_args!("{switch} is not allowed")));
                }
            }
            shell::judge(policy, text_of(input, "command")?, here)
        }
        "Edit" | "Write" | "MultiEdit" => writes(policy, text_of(input, "file_path")?, &here),
        "NotebookEdit" => writes(policy, text_of(input, "notebook_path")?, &here),
        "Read" | "NotebookRead" => {
            let path = input.get("file_path").or_else(|| input.get("notebook_path"));
            let Some(Value::String(path)) = path else { return Err(lacks("a path")) };
            policy.may_read(&path_text(policy, path), &here)
        }
        "Glob" | "Grep" | "LS" => {
            for key in ["path", "pattern", "glob"] {
                match input.get(key) {
                    None | Some(Value::Null) => {}
                    // What Grep looks for is no path.
                    Some(Value::String(_)) if (tool, key) == ("Grep", "pattern") => {}
                    Some(Value::String(path)) => {
                        let path = path_text(policy, path);
                        policy.may_read(&path, &here)?;
                        if tool != "LS" && policy.is_above_secrets(&path, &here) {
                            let reason = format_args!("{path} has secrets below it");
                            return Err(Denial::new(reason));
                        }
                    }
                    Some(_) => return Err(lacks(key)),
                }
            }
            Ok(())
        }
        other if policy.tools.iter().any(|allowed| glob::matches(allowed, other)) => Ok(()),
        other => Err(Denial::new(format_args!("the tool {other} is not among those allowed"))),
    }
}

fn writes(policy: &Policy, path: &str, here: &Cwd) -> Judged {
    // A wildcard in the name of a file to be edited means itself.
    policy.may_write(&path_text(policy, path), here, Last::Followed)
}

/// These tools take paths as they are, but `~` is taken for the home to be safe.
fn path_text(policy: &Policy, path: &str) -> Text {
    match (path.strip_prefix('~'), policy.home()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Text::literal(format!("{}{rest}", home.display()))
        }
        (Some(_), _) => Text::any(),
        (None, _) => Text::literal(path),
    }
}

fn text_of<'a>(input: &'a Value, key: &str) -> Judged<&'a str> {
    match input.get(key).and_then(Value::as_str) {
        Some(text) if !text.contains('\0') => Ok(text),
        Some(_) | None => Err(lacks(key)),
    }
}

fn lacks(what: &str) -> Denial {
    Denial::new(format_args!("the input of the tool lacks {what} that can be read"))
}
