//! Claude's agents: every call is a conversation of its own with the `claude` program.
//!
//! The program gets a home of its own, which ends with the run, and a new folder for each call in
//! which `./input` is the data. Of our variables it sees those that say how the model is reached.
//! [`Credentials`] says whether there is a way at all; `over` puts other agents in the place of the
//! model.
//!
//! Deliberately absent: retries. The program makes requests again by itself; what fails after that
//! is asked again by the search, which knows how much time there is.

mod over;
mod tools;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Instant;

use camino::Utf8PathBuf;
use futures::FutureExt;
use futures::future::BoxFuture;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_claude::error::Retry;
use mle_star_claude::{
    Answer, Cli, Conversation, Environment, Error, Message, Options, PermissionMode, Reason,
    Session, Uuid,
};
use mle_star_exec::in_full;
use mle_star_search::models::{self, AgentConfig, AgentType, PipelineConfig};
use mle_star_search::prompt::{PromptError, PromptRegistry};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use self::over::Over;
use self::tools::Toolbox;

/// By what the service knows who we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// The variable that says so.
    pub variable: &'static str,
}

/// Variables that hold a key or a token, or say that another service brings its own.
const CREDENTIALS: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
];

impl Credentials {
    /// The first that the environment has.
    pub fn find() -> Option<Self> {
        let is_set =
            |name: &&str| crate::dotenv::variable(name).is_some_and(|value| !value.is_empty());
        CREDENTIALS.into_iter().find(is_set).map(|variable| Self { variable })
    }
}

/// Agents behind the `claude` program.
#[derive(Debug)]
pub(crate) struct Claude {
    cli: Cli,
    /// The program's home, and the folders of calls.
    state: TempDir,
    data_dir: Utf8PathBuf,
    permission_mode: PermissionMode,
    toolbox: Toolbox,
    definitions: BTreeMap<String, Value>,
    /// Who stands behind the program instead of a model.
    over: Option<Over>,
    name: String,
}

/// Why Claude's agents cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ClaudeError {
    /// The program is not there or cannot be used.
    #[error("the `claude` program cannot be used")]
    Program(#[from] Error),
    /// The program has no place to work in.
    #[error("there is no place for the `claude` program to work in")]
    Place(#[from] std::io::Error),
    /// The prompts cannot be used.
    #[error(transparent)]
    Prompts(#[from] PromptError),
}

impl ClaudeError {
    /// What to do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Program(error) => error.remedy(),
            Self::Place(_) => Some("make room in the folder for temporary files"),
            Self::Prompts(_) => None,
        }
    }
}

impl Claude {
    /// Agents with these settings, on the data in `data_dir`.
    pub(crate) fn new(
        cli: Cli,
        config: &PipelineConfig,
        data_dir: Utf8PathBuf,
        over: Option<Over>,
    ) -> Result<Self, ClaudeError> {
        let state = tempfile::Builder::new().prefix("mle-star-claude-").tempdir()?;
        for folder in ["home", "tmp", "work"] {
            fs_err::create_dir(state.path().join(folder))?;
        }
        Ok(Self {
            name: match &over {
                None => format!("claude {} ({})", cli.version(), config.model),
                Some(over) => format!("claude {} over {}", cli.version(), over.name()),
            },
            cli,
            state,
            toolbox: Toolbox::new(config, data_dir.clone()),
            data_dir,
            permission_mode: match config.permission_mode {
                models::PermissionMode::BypassPermissions => PermissionMode::Bypass,
                models::PermissionMode::AcceptEdits => PermissionMode::AcceptEdits,
            },
            definitions: definitions(config)?,
            over,
        })
    }

    async fn converse(&self, call: &Call) -> Result<Reply, AgentError> {
        let id = Uuid::new_v4();
        let _expected = self.over.as_ref().map(|over| over.expect(id, call));
        let folder = self.folder().map_err(|error| AgentError::Unavailable {
            reason: format!("there is no place for the conversation: {error}"),
        })?;
        let options = self.options(call, id, &folder);
        let begun = Instant::now();
        let answer = match Conversation::start(&self.cli, options).await {
            Err(error) => Err(error),
            Ok(mut conversation) => {
                let answer = conversation.ask_watched(&call.prompt, |it| note(call, it)).await;
                conversation.stop().await;
                answer
            }
        };
        tracing::debug!(
            target: "mle_star",
            step = call.step, lane = call.lane, role = call.role, session = %id,
            elapsed_ms = millis(begun), ok = answer.is_ok(), "conversation ended"
        );
        answer.map(reply).map_err(|error| failure(&error))
    }

    /// A folder for one call, which ends with it.
    fn folder(&self) -> std::io::Result<TempDir> {
        let folder = tempfile::tempdir_in(self.state.path().join("work"))?;
        symlink(&self.data_dir, folder.path().join("input"))?;
        Ok(folder)
    }

    fn options(&self, call: &Call, id: Uuid, folder: &TempDir) -> Options {
        Options {
            model: Some(call.model.clone()),
            system_prompt: call.system_prompt.clone(),
            tools: call.tools.clone(),
            schema: call.schema.clone(),
            max_turns: call.max_turns,
            max_budget_usd: call.max_budget_usd,
            permission_mode: self.permission_mode,
            session: Session::Named(id),
            folder: Some(folder.path().to_owned()),
            environment: self.environment(),
            agents: self.definitions.clone(),
            hooks: self.toolbox.hooks(call, id, folder.path(), &self.home()),
            servers: self.toolbox.servers(),
            ..Options::default()
        }
    }

    fn home(&self) -> PathBuf {
        self.state.path().join("home")
    }

    fn environment(&self) -> Environment {
        let common = ["PATH", "LANG", "LC_ALL", "TZ"].map(OsStr::new);
        let mut environment = match &self.over {
            None => {
                crate::dotenv::added().filter(|(name, _)| leads_to_a_model(name.as_ref())).fold(
                    Environment::default()
                        .inherit(|name| common.contains(&name) || leads_to_a_model(name)),
                    |environment, (name, value)| environment.with(name, value),
                )
            }
            Some(over) => Environment::default()
                .inherit(|name| common.contains(&name))
                .with("ANTHROPIC_API_KEY", "none")
                .with("ANTHROPIC_BASE_URL", over.url()),
        };
        environment =
            environment.with("HOME", self.home()).with("TMPDIR", self.state.path().join("tmp"));
        if rustix::process::geteuid().is_root() {
            // Else it refuses to work for root without asking. What tools may do is ours to say.
            environment = environment.with("IS_SANDBOX", "1");
        }
        environment
    }
}

impl Agent for Claude {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        self.converse(call).boxed()
    }
}

/// All agents as the program registers them, with their prompts as they are before anything is
/// filled in.
fn definitions(config: &PipelineConfig) -> Result<BTreeMap<String, Value>, PromptError> {
    let prompts = match &config.prompts_dir {
        Some(folder) => PromptRegistry::with_overrides(folder)?,
        None => PromptRegistry::builtin(),
    };
    let definition = |agent: AgentType| {
        let template = &prompts.get(agent)?.template;
        let model = config.agent_models.get(&agent).copied();
        let set_up = AgentConfig { model, ..AgentConfig::with_profile(agent, config.tool_profile) };
        Ok((agent.name().to_owned(), set_up.to_agent_definition(template)))
    };
    AgentType::ALL.into_iter().map(definition).collect()
}

/// Whether a variable says how the model is reached.
pub(crate) fn leads_to_a_model(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let prefixes = ["ANTHROPIC_", "AWS_", "GOOGLE_", "VERTEX_REGION_"];
    let names = [
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "CLAUDE_CODE_MAX_RETRIES",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "API_TIMEOUT_MS",
        "CLOUD_ML_REGION",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    names.contains(&name)
        || ["http_proxy", "https_proxy", "no_proxy"].contains(&name)
        || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn note(call: &Call, message: &Message) {
    if let Message::Retry(retry) = message {
        tracing::warn!(
            target: "mle_star",
            step = call.step, role = call.role, attempt = retry.attempt, status = retry.status,
            error = retry.error, "a request failed and is made again"
        );
    }
}

fn reply(answer: Answer) -> Reply {
    let Answer { text, structured, cost_usd, .. } = answer;
    Reply { text, structured, cost_usd }
}

/// What the search can do about it.
fn failure(error: &Error) -> AgentError {
    let remedy = error.remedy().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
    let reason = format!("{}{remedy}", in_full(error));
    match (error.retry(), error.reason()) {
        (Retry::Later, _) | (_, Some(Reason::Interrupted)) => AgentError::Unavailable { reason },
        (Retry::Pointless, Some(Reason::Unauthenticated | Reason::Forbidden)) => {
            AgentError::Unauthorized { reason }
        }
        (Retry::Pointless, None | Some(Reason::NoSuchModel)) => AgentError::Unusable { reason },
        (Retry::Pointless, Some(_)) => AgentError::NoAnswer { reason, cost_usd: error.cost_usd() },
    }
}

fn millis(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_do_not_lead_to_the_model_stay_here() {
        let leads = |name: &str| super::leads_to_a_model(OsStr::new(name));
        for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https_proxy", "AWS_REGION"] {
            assert!(leads(name), "{name}");
        }
        for name in ["HOME", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "CLAUDECODE", "NODE_OPTIONS"] {
            assert!(!leads(name), "{name}");
        }
    }

    /// REQ-OR-005, REQ-OR-006, REQ-OR-057
    #[test]
    fn all_agents_are_registered_by_their_names() {
        let config = PipelineConfig::default();
        let definitions = definitions(&config).unwrap();
        assert_eq!(definitions.len(), 14);
        for agent in AgentType::ALL {
            let definition = definitions.get(agent.name()).unwrap();
            assert_eq!(definition["tools"], serde_json::json!(AgentConfig::for_agent(agent).tools));
        }
    }
}
