//! What a conversation is about to be: the model, its means, its limits.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::answer::Form;
use crate::hooks::{Hook, Permission};
use crate::tools::ToolServer;

/// What a conversation may do, and with what.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The model; the program's own choice if none is named.
    pub model: Option<String>,
    /// What the model is told about itself. There is nothing else: neither the program's own
    /// words nor the user's files.
    pub system_prompt: String,
    /// The only tools of the program that the model may use. Empty means none.
    pub tools: Vec<String>,
    /// The JSON Schema that a structured reply must satisfy.
    pub schema: Option<Value>,
    /// How many turns an answer may take.
    pub max_turns: Option<u32>,
    /// What the conversation may cost, in US dollars.
    pub max_budget_usd: Option<f64>,
    /// What becomes of the use of tools that no hook has denied.
    pub permission_mode: PermissionMode,
    /// Which conversation this is.
    pub session: Session,
    /// The folder that the program starts in; ours if none is named.
    pub folder: Option<PathBuf>,
    /// All variables that the program and its tools see.
    pub environment: Environment,
    /// Agents that the model can call, by name, as the program wants them defined.
    pub agents: BTreeMap<String, Value>,
    /// What is called at certain moments.
    pub hooks: Vec<Hook>,
    /// Tools that live in this process.
    pub servers: Vec<ToolServer>,
    /// Who decides where the program would ask a person.
    pub permission: Option<Permission>,
    /// How long is waited, and how much is kept.
    pub limits: Limits,
}

/// What becomes of the use of tools that no hook has denied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PermissionMode {
    /// The program asks, which means no unless there is a [`Permission`].
    #[default]
    Ask,
    /// As above, but files in the folder may be changed.
    AcceptEdits,
    /// Everything is allowed. As root the program wants to hear besides that it is in a sandbox
    /// (the variable `IS_SANDBOX=1`).
    Bypass,
}

/// Which conversation this is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Session {
    /// A new one.
    #[default]
    New,
    /// A new one with this id, which nobody has used before.
    Named(Uuid),
    /// A new one with this id that leaves nothing on disk, and so cannot be resumed.
    Unrecorded(Uuid),
    /// One that was had before goes on.
    Resume(Uuid),
    /// One that was had before is copied, and the copy goes on.
    Fork {
        /// The one that stays as it is.
        from: Uuid,
        /// The id of the copy, which nobody has used before.
        to: Uuid,
    },
}

/// The variables that the program and its tools see.
///
/// It begins with those that make the program behave: no traffic but to the model, and nothing
/// left running when an answer is there. All else must be named.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

/// How long is waited, and how much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until the program is ready.
    pub start: Duration,
    /// Until the answer is complete.
    pub answer: Duration,
    /// Between two signs of life. A model that thinks or a command that runs give none.
    pub silence: Duration,
    /// Until a hook, a tool of this process or a [`Permission`] has answered.
    pub callback: Duration,
    /// For each step of ending the program.
    pub stop: Duration,
    /// One line of the program.
    pub line_bytes: usize,
    /// Everything else that is kept of what it says.
    pub kept_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            answer: Duration::from_secs(24 * 60 * 60),
            silence: Duration::from_secs(30 * 60),
            callback: Duration::from_secs(60),
            stop: Duration::from_secs(3),
            line_bytes: 64 << 20,
            kept_bytes: 64 << 20,
        }
    }
}

impl Default for Environment {
    fn default() -> Self {
        let quiet =
            ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"];
        quiet.into_iter().fold(Self::empty(), |it, name| it.with(name, "1"))
    }
}

impl Environment {
    /// No variables at all.
    pub fn empty() -> Self {
        Self { variables: BTreeMap::new() }
    }

    /// The same with one more variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The same with those of our own variables that `is_wanted` wants.
    #[must_use]
    pub fn inherit(mut self, is_wanted: impl Fn(&OsStr) -> bool) -> Self {
        self.variables.extend(std::env::vars_os().filter(|(name, _)| is_wanted(name)));
        self
    }

    pub(crate) fn pairs(&self) -> Vec<(OsString, OsString)> {
        self.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl fmt::Debug for Environment {
    /// Names only: among the values are keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

impl Options {
    /// What the program is started with. Each value is part of its option's word, so that none
    /// can be taken for an option.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<String> = [
            "--output-format=stream-json",
            "--verbose",
            "--input-format=stream-json",
            "--setting-sources=", // none: the user's own settings are for the user
            "--strict-mcp-config",
        ]
        .map(str::to_owned)
        .into();
        let mut option = |name: &str, value: &str| words.push(format!("--{name}={value}"));
        option("tools", &self.tools.join(","));
        if let Some(model) = &self.model {
            option("model", model);
        }
        if let Some(turns) = self.max_turns {
            option("max-turns", &turns.to_string());
        }
        if let Some(budget) = self.max_budget_usd {
            option("max-budget-usd", &budget.to_string());
        }
        match self.permission_mode {
            PermissionMode::Ask => {}
            PermissionMode::AcceptEdits => option("permission-mode", "acceptEdits"),
            PermissionMode::Bypass => option("permission-mode", "bypassPermissions"),
        }
        if self.permission.is_some() {
            option("permission-prompt-tool", "stdio");
        }
        match self.session {
            Session::New => {}
            Session::Named(id) | Session::Unrecorded(id) => option("session-id", &id.to_string()),
            Session::Resume(id) => option("resume", &id.to_string()),
            Session::Fork { from, to } => {
                option("resume", &from.to_string());
                option("session-id", &to.to_string());
            }
        }
        if let Session::Resume(_) | Session::Fork { .. } = self.session {
            // Else it is told about itself what it was told then.
            option("system-prompt-snapshot", "off");
        }
        if !self.servers.is_empty() {
            let names = self.servers.iter().map(|server| &server.name);
            let allowed: Vec<_> = names.clone().map(|name| format!("mcp__{name}__*")).collect();
            let servers: Map<String, Value> =
                names.map(|name| (name.clone(), json!({ "type": "sdk", "name": name }))).collect();
            option("mcp-config", &json!({ "mcpServers": servers }).to_string());
            option("allowedTools", &allowed.join(","));
        }
        words.extend(match self.session {
            Session::New | Session::Named(_) | Session::Resume(_) => None,
            Session::Unrecorded(_) => Some("--no-session-persistence".to_owned()),
            Session::Fork { .. } => Some("--fork-session".to_owned()),
        });
        words.into_iter().map(OsString::from).collect()
    }

    /// The request that begins the conversation. What may be long is here and not among the
    /// arguments, whose length the system limits.
    pub(crate) fn initialize(&self) -> Value {
        let mut hooks: Map<String, Value> = Map::new();
        for (number, hook) in self.hooks.iter().enumerate() {
            let matcher = json!({
                "matcher": hook.matcher,
                "hookCallbackIds": [format!("hook_{number}")],
                "timeout": self.limits.callback.as_secs() + 30, // ours comes first
                "onFailure": "block",
            });
            let of_event = hooks.entry(hook.event.name()).or_insert_with(|| json!([]));
            if let Some(of_event) = of_event.as_array_mut() {
                of_event.push(matcher);
            }
        }
        let mut request = Map::new();
        let mut field = |name: &str, value: Value| request.insert(name.to_owned(), value);
        field("subtype", json!("initialize"));
        field("hooks", if hooks.is_empty() { Value::Null } else { Value::Object(hooks) });
        field("systemPrompt", json!(self.system_prompt));
        if !self.agents.is_empty() {
            field("agents", json!(self.agents));
        }
        if let Some(schema) = &self.schema {
            let mut schema = schema.clone();
            if let Some(fields) = schema.as_object_mut() {
                fields.remove("$schema"); // with some values of it the schema is ignored
            }
            field("jsonSchema", schema);
        }
        Value::Object(request)
    }

    pub(crate) fn form(&self) -> Form {
        match self.schema {
            Some(_) => Form::Structured,
            None => Form::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_be_taken_for_an_option() {
        let options = Options {
            model: Some("--bare".to_owned()),
            tools: vec!["Bash".to_owned(), "Read".to_owned()],
            max_turns: Some(3),
            max_budget_usd: Some(0.25),
            permission_mode: PermissionMode::Bypass,
            session: Session::Fork { from: Uuid::nil(), to: Uuid::max() },
            servers: vec![ToolServer::new("mle", [])],
            ..Options::default()
        };
        assert_eq!(
            options.arguments(),
            [
                "--output-format=stream-json",
                "--verbose",
                "--input-format=stream-json",
                "--setting-sources=",
                "--strict-mcp-config",
                "--tools=Bash,Read",
                "--model=--bare",
                "--max-turns=3",
                "--max-budget-usd=0.25",
                "--permission-mode=bypassPermissions",
                "--resume=00000000-0000-0000-0000-000000000000",
                "--session-id=ffffffff-ffff-ffff-ffff-ffffffffffff",
                "--system-prompt-snapshot=off",
                "--mcp-config={\"mcpServers\":{\"mle\":{\"type\":\"sdk\",\"name\":\"mle\"}}}",
                "--allowedTools=mcp__mle__*",
                "--fork-session",
            ]
        );
    }

    #[test]
    fn the_schema_is_sent_without_its_dialect() {
        let schema =
            json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" });
        let options = Options { schema: Some(schema), ..Options::default() };
        assert_eq!(options.initialize()["jsonSchema"], json!({ "type": "object" }));
    }

    #[test]
    fn an_environment_shows_no_values() {
        let environment = Environment::default().with("ANTHROPIC_API_KEY", "sk-secret");
        let shown = format!("{environment:?}");
        assert!(shown.contains("ANTHROPIC_API_KEY") && !shown.contains("sk-secret"), "{shown}");
    }
}
