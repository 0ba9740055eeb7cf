//! Claude's agents: every call is a conversation of its own with the `claude` program.
//!
//! The program gets a home of its own for each call, and a new folder in which `./input` is the
//! data; both end with the call. Of our variables it sees those that say how the model is reached,
//! but not the key: a forwarder of ours adds that, so that no tool can ask for it. It is held as
//! scripts are (`enclosure`), and what holds it is started while the call before waits (`stage`).
//! [`Credentials`] says whether there is a way to the model at all; `over` puts other agents in its
//! place. `web` notices when a search of the web came to nothing.
//!
//! Where calls go on with the conversation of an earlier one, each goes on with a copy: what it goes
//! on with stays as it was, so a call that is killed and made again finds what it found before.
//!
//! Deliberately absent: retries. The program makes requests again by itself; what fails after that
//! is asked again by the search, which knows how much time there is.

mod enclosure;
mod failure;
mod over;
mod reach;
mod stage;
mod tools;
mod web;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use futures::FutureExt;
use futures::future::BoxFuture;
use mle_star_agent::{Agent, AgentError, Call, Reply, Thread, Wait};
use mle_star_claude::{
    Answer, Cli, Conversation, Environment, Error, Message, Options, Permission, PermissionMode,
    Reason, RetryMessage, Session, Uuid,
};
use mle_star_exec::in_full;
use mle_star_exec::sandbox::{Gap, Tier};
use mle_star_exec::scratch::Scratch;
use mle_star_forwarder::{Service, UpstreamError};
use mle_star_search::models::{self, AgentConfig, AgentType, PipelineConfig};
use mle_star_search::prompt::{PromptError, PromptRegistry};
use serde_json::Value;

pub(crate) use self::enclosure::Enclosure;
use self::enclosure::{Needs, Place};
use self::failure::{Refusals, costing_more, failure};
pub(crate) use self::over::Over;
pub(crate) use self::reach::{Reach, leads_to_a_model};
use self::stage::{Stage, Stages};
use self::tools::Toolbox;
use self::web::Searches;

/// How often a trial is made again that was killed.
const TRIALS_MORE: u32 = 2;

/// By what the service knows who we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// The variable that says so.
    pub variable: &'static str,
}

impl Credentials {
    /// Those that the environment has for the service that it chooses.
    pub fn find() -> Option<Self> {
        let set = |name: &str| crate::dotenv::variable(name)?.into_string().ok();
        let is_set = |name: &&str| set(name).is_some_and(|value| !value.is_empty());
        let first = |names: &[&'static str]| names.iter().copied().find(is_set);
        let variable = match Service::chosen(set) {
            Service::Anthropic => {
                // The first of them is the one that is shown to the service.
                first(&["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"])?
            }
            // Without a key there may still be an account, which only the program finds.
            Service::Bedrock => {
                first(&["AWS_BEARER_TOKEN_BEDROCK"]).unwrap_or("CLAUDE_CODE_USE_BEDROCK")
            }
            Service::Vertex => "CLAUDE_CODE_USE_VERTEX",
        };
        Some(Self { variable })
    }
}

/// Agents behind the `claude` program.
#[derive(Debug)]
pub(crate) struct Claude {
    cli: Cli,
    stages: Stages,
    permission_mode: PermissionMode,
    permission: Option<Permission>,
    toolbox: Toolbox,
    definitions: BTreeMap<String, Value>,
    reach: Reach,
    refusals: Refusals,
    name: String,
}

/// Why Claude's agents cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ClaudeError {
    /// The program is not there or cannot be used.
    #[error("the `claude` program cannot be used")]
    Program(#[from] Error),
    /// The program does not start in the sandbox that holds scripts.
    #[error("the `claude` program does not start in the sandbox `{tier}`")]
    Held {
        /// The sandbox.
        tier: Tier,
        /// What happens instead.
        source: Error,
    },
    /// The program has no place to work in.
    #[error("there is no place for the `claude` program to work in")]
    Place(#[from] std::io::Error),
    /// The service behind it cannot be reached in this way.
    #[error("the model cannot be reached")]
    Reach(#[from] UpstreamError),
    /// The prompts cannot be used.
    #[error(transparent)]
    Prompts(#[from] PromptError),
}

impl ClaudeError {
    /// Whether another program would do.
    pub(crate) fn is_about_the_program(&self) -> bool {
        matches!(self, Self::Program(_) | Self::Held { .. })
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Program(error) => error.remedy(),
            Self::Held { .. } => Some("--sandbox takes another one"),
            Self::Place(_) => Some("make room in the folder for temporary files"),
            Self::Reach(UpstreamError::Headers) => {
                Some("ANTHROPIC_CUSTOM_HEADERS takes one `name: value` a line")
            }
            Self::Reach(UpstreamError::Proxy { .. }) => {
                Some("name a proxy as http://host:port, or name the endpoint in NO_PROXY")
            }
            Self::Reach(UpstreamError::User { .. }) => {
                Some("ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are for what a server asks for")
            }
            Self::Reach(_) => Some("check the address of the model, the key and the certificates"),
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
        reach: Reach,
        enclosure: Enclosure,
        permission: Option<Permission>,
    ) -> Result<Self, ClaudeError> {
        let folder = Scratch::new("claude")?;
        Ok(Self {
            name: match &reach {
                Reach::Forwarded { .. } | Reach::Direct => {
                    format!("claude {} ({})", cli.version(), config.model)
                }
                Reach::Over(over) => format!("claude {} over {}", cli.version(), over.name()),
            },
            cli,
            toolbox: Toolbox::new(config, data_dir.clone()),
            stages: Stages::new(enclosure, data_dir, folder),
            permission_mode: match config.permission_mode {
                // Who wants to be asked is asked.
                models::PermissionMode::BypassPermissions if permission.is_some() => {
                    PermissionMode::Ask
                }
                models::PermissionMode::BypassPermissions => PermissionMode::Bypass,
                models::PermissionMode::AcceptEdits => PermissionMode::AcceptEdits,
            },
            permission,
            definitions: definitions(config)?,
            refusals: Refusals::default(),
            reach,
        })
    }

    /// Starts the program as it will be started, before anything depends on it.
    pub(crate) async fn try_out(&self) -> Result<(), ClaudeError> {
        let needs = Needs::of(&[], &self.reach, None);
        let Stage { launch, place } = self.stages.take(&needs)?;
        let cli = self.cli.clone().launched(launch);
        let mut again = TRIALS_MORE;
        loop {
            let tried =
                cli.try_out(place.work().as_std_path(), &self.environment(&place, &needs)).await;
            match tried {
                Ok(()) => {
                    self.stages.set_next(&needs); // most calls have these
                    return Ok(());
                }
                // As by a system short of memory: nothing is wrong with it.
                Err(Error::Exited { code: None | Some(128..), .. }) if again > 0 => again -= 1,
                Err(source) => {
                    return Err(ClaudeError::Held { tier: self.stages.enclosure().tier(), source });
                }
            }
        }
    }

    /// What the program can do although it should not.
    pub(crate) fn gaps(&self) -> Vec<Gap> {
        self.stages.enclosure().gaps(&self.reach)
    }

    /// Answers from the model's own knowledge where the web cannot be searched, and says so.
    async fn answer(&self, call: &Call) -> Result<Reply, AgentError> {
        let searches = Searches::default();
        let answered = self.converse(call, &searches).await;
        let warning = searches.warning(call).filter(|_| self.reach.is_a_model());
        match (answered, warning) {
            (Ok(reply), Some(warning)) => Ok(warned(reply, warning)),
            (Err(AgentError::NoAnswer { cost_usd, .. }), Some(warning))
                if searches.are_in_vain() && left(call.max_budget_usd, cost_usd) != Some(0.0) =>
            {
                // Some models give up when their searches fail. They are not let search again.
                let max_budget_usd = left(call.max_budget_usd, cost_usd);
                let without = Call { max_budget_usd, ..web::without(call) };
                let answered = self.converse(&without, &searches).await;
                costing_more(answered, cost_usd).map(|reply| warned(reply, warning))
            }
            (answered, _) => answered,
        }
    }

    /// One conversation, or another if it cannot go on with the one that it should go on with.
    async fn converse(&self, call: &Call, searches: &Searches) -> Result<Reply, AgentError> {
        let id = Uuid::new_v4();
        let session = match &call.thread {
            None => Session::Unrecorded(id), // the journal has what matters
            Some(Thread { after: None, .. }) => Session::Named(id),
            // What is no id is the id of nothing.
            Some(Thread { after: Some(before), .. }) => {
                Session::Fork { from: before.parse().unwrap_or_default(), to: id }
            }
        };
        let answered = self.talk(call, id, session, searches).await?;
        match (answered, session) {
            (Err(error), Session::Fork { .. }) if cannot_go_on(&error) => {
                let id = Uuid::new_v4();
                let why = in_full(&error);
                let warning =
                    format!("began a fresh conversation: that of its path cannot go on: {why}");
                let answered = self.talk(call, id, Session::Named(id), searches).await?;
                let answered = answered.map_err(|error| self.failure(&error));
                costing_more(answered, error.cost_usd()).map(|reply| warned(reply, warning))
            }
            (answered, _) => answered.map_err(|error| self.failure(&error)),
        }
    }

    fn failure(&self, error: &Error) -> AgentError {
        let failure = failure(error);
        if let AgentError::NoAnswer { reason, .. } = &failure
            && self.refusals.are_too_many()
        {
            return AgentError::Unusable { reason: reason.clone() };
        }
        failure
    }

    /// One conversation.
    async fn talk(
        &self,
        call: &Call,
        id: Uuid,
        session: Session,
        searches: &Searches,
    ) -> Result<Result<Reply, Error>, AgentError> {
        let _expected = self.reach.expect(id, call);
        let kept_in = call.thread.as_ref().map(|thread| thread.folder.as_path());
        let needs = Needs::of(&call.tools, &self.reach, kept_in);
        let stage = self.stages.take(&needs).map_err(|error| AgentError::Unavailable {
            reason: format!("there is no place for the conversation: {error}"),
        })?;
        let Stage { launch, place } = stage;
        let was_ready = launch.waiting_process().is_some();
        let cli = self.cli.clone().launched(launch);
        let (work, home) = (place.work(), place.home());
        let hooks = self.toolbox.hooks(call, id, work.as_std_path(), home.as_std_path(), searches);
        let options = Options { session, hooks, ..self.options(call, &place, &needs) };
        let begun = Instant::now();
        let answer = match Conversation::start(&cli, options).await {
            Err(error) => Err(error),
            Ok(mut conversation) => {
                self.stages.set_next(&needs);
                let answer = conversation.ask_watched(&call.prompt, |it| note(call, it)).await;
                conversation.stop().await;
                answer
            }
        };
        self.refusals.note(&answer);
        tracing::debug!(
            target: "mle_star",
            step = call.step, lane = call.lane, role = call.role, session = %id,
            elapsed_ms = millis(begun), ok = answer.is_ok(), was_ready, "conversation ended"
        );
        let kept = call.thread.is_some().then(|| id.to_string());
        Ok(answer.map(|answer| Reply { session: kept, ..reply(answer) }))
    }

    fn options(&self, call: &Call, place: &Place, needs: &Needs) -> Options {
        Options {
            model: Some(call.model.clone()),
            system_prompt: call.system_prompt.clone(),
            tools: call.tools.clone(),
            schema: call.schema.clone(),
            max_turns: call.max_turns,
            max_budget_usd: call.max_budget_usd,
            permission_mode: self.permission_mode,
            permission: self.permission.clone(),
            folder: Some(place.work().into()),
            environment: self.environment(place, needs),
            agents: self.definitions.clone(),
            servers: self.toolbox.servers(),
            ..Options::default()
        }
    }

    fn environment(&self, place: &Place, needs: &Needs) -> Environment {
        let mut environment = self
            .reach
            .environment(needs.has_network())
            .with("HOME", place.home().into_os_string())
            .with("TMPDIR", place.temporary().into_os_string());
        if rustix::process::geteuid().is_root() {
            // Else it refuses to work for root without asking. What tools may do is ours to say.
            environment = environment.with("IS_SANDBOX", "1");
        }
        if let Some(folder) = &place.conversations {
            environment = environment.with("CLAUDE_CONFIG_DIR", folder);
        }
        environment
    }
}

impl Agent for Claude {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        self.answer(call).boxed()
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

fn note(call: &Call, message: &Message) {
    if let Message::Retry(retry) = message {
        tracing::warn!(
            target: "mle_star",
            step = call.step, role = call.role, attempt = retry.attempt, status = retry.status,
            error = retry.error, "a request failed and is made again"
        );
        // One is nothing special.
        if retry.attempt > 1 {
            call.waits.tell(Wait {
                time: Duration::from_millis(retry.delay_ms),
                reason: failed_request(retry),
            });
        }
    }
    if let Message::Other(other) = message
        && let Some(status) = tools::refused(other)
    {
        tracing::warn!(
            target: "mle_star",
            step = call.step, role = call.role, status, "the agent has none of our tools"
        );
    }
}

fn failed_request(retry: &RetryMessage) -> String {
    let RetryMessage { attempt, max_retries, status, error, .. } = retry;
    let status = status.map(|status| format!("status {status}"));
    let what: Vec<&str> = status.as_deref().into_iter().chain(error.as_deref()).collect();
    let what = if what.is_empty() { "no connection".to_owned() } else { what.join(", ") };
    format!("a request failed ({what}); retry {attempt} of {max_retries}")
}

fn reply(answer: Answer) -> Reply {
    let Answer { text, structured, cost_usd, .. } = answer;
    Reply { text, structured, cost_usd, ..Reply::default() }
}

fn warned(mut reply: Reply, warning: String) -> Reply {
    reply.warnings.push(warning);
    reply
}

/// What is left of a budget.
fn left(budget: Option<f64>, spent: Option<f64>) -> Option<f64> {
    budget.map(|budget| (budget - spent.unwrap_or_default()).max(0.0))
}

/// Whether the conversation that should go on is gone, damaged or too long to go on.
fn cannot_go_on(error: &Error) -> bool {
    let has_ended = matches!(error, Error::Exited { code: Some(code), .. } if *code < 128); // not killed
    has_ended || error.reason() == Some(&Reason::PromptTooLong)
}

fn millis(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
