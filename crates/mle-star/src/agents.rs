//! Who answers the calls of a run.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_agent::scripted::ScriptError;
use mle_star_agent::{Agent, AgentError, Reply, Scripted};
use mle_star_claude::{Cli, Permission};
use mle_star_exec::Local;
use mle_star_exec::machine::Package;
use mle_star_exec::sandbox::Gap;
use mle_star_journal::JournalError;
use mle_star_playbook::{Options, Playbook, ShapeError};
use mle_star_profile::DataProfile;
use mle_star_search::event::{Output, Record};
use mle_star_search::models::{PipelineConfig, TaskDescription};
use mle_star_search::rundir::RunDir;

use crate::RunError;
use crate::claude::{Claude, ClaudeError, Credentials, Enclosure, Over, Reach};
use crate::executor;

/// How the playbook is shown: nobody is to take it for a model. It is also read back.
const PLAYBOOK: &str = "playbook (no LLM)";

/// What stands before the agents that take the place of the model.
const OVER: &str = "claude-over-";

/// A choice of agents, as `--agents` spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agents {
    /// `claude`: a language model behind the `claude` command line program.
    Claude,
    /// `playbook`: an expert system that needs no model.
    Playbook,
    /// `scripted:<file>`: replies from a file; see [`mle_star_agent::scripted`] for its form.
    Scripted(Utf8PathBuf),
    /// `replay:<run>`: the replies of another run, step by step.
    Replay(Utf8PathBuf),
    /// `claude-over-<agents>`: the `claude` program with other agents in the place of the model. To
    /// try everything without a key.
    ClaudeOver(Box<Self>),
}

/// Why agents cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// The spelling is wrong.
    #[error("unknown agents `{0}`")]
    Unknown(String),
    /// There is no key for them.
    #[error("the environment variable `ANTHROPIC_API_KEY` is not set")]
    NoKey,
    /// The program behind them cannot be used.
    #[error(transparent)]
    Claude(#[from] ClaudeError),
    /// The playbook has nothing to say about the data.
    #[error(transparent)]
    Playbook(#[from] ShapeError),
    /// The file of replies cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The other run's journal cannot be read.
    #[error("cannot replay `{run}`")]
    Replay {
        /// The run.
        run: Utf8PathBuf,
        /// Why.
        source: JournalError,
    },
}

impl AgentsError {
    /// Whether there was no room for another process. Nothing is wrong with the agents then.
    pub fn is_want_of_room(&self) -> bool {
        matches!(
            self,
            Self::Claude(ClaudeError::Program(error) | ClaudeError::Held { source: error, .. })
                if error.is_want_of_room()
        )
    }
}

/// What agents may want to know about a run before it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Briefing<'a> {
    /// The program that supervises, if not this one.
    pub(crate) supervisor: Option<&'a Utf8Path>,
    pub(crate) task: &'a TaskDescription,
    pub(crate) config: &'a PipelineConfig,
    pub(crate) data: &'a DataProfile,
    /// Who decides on the use of tools, besides the policy.
    pub(crate) permission: Option<&'a Permission>,
    /// The installed packages; none before it is known which Python will be used.
    pub(crate) packages: &'a [Package],
}

/// Agents of which all was looked at that can be seen without a place to run programs in.
#[derive(Debug)]
pub(crate) enum Checked {
    /// Behind this program, which reaches a model in this way.
    Claude { cli: Cli, reach: Reach },
    /// Behind this program, in the place of the model.
    ClaudeOver { cli: Cli, others: Box<Self> },
    /// The playbook, which does not know the packages yet.
    Playbook(Box<Playbook>),
    /// Replies that are there already.
    Scripted(Scripted),
}

/// Agents at work.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) agent: Box<dyn Agent>,
    /// What the program behind them can do although it should not, if there is one.
    pub(crate) gaps: Option<Vec<Gap>>,
}

impl Opened {
    fn without_program(agent: impl Agent + 'static) -> Self {
        Self { agent: Box::new(agent), gaps: None }
    }
}

impl Checked {
    /// Sets them to work. Programs of theirs are held as scripts are by `executor`.
    pub(crate) async fn open(
        self,
        briefing: &Briefing<'_>,
        executor: &Local,
    ) -> Result<Opened, RunError> {
        match self {
            Self::Claude { cli, reach } => claude(briefing, executor, cli, reach).await,
            Self::ClaudeOver { cli, others } => {
                let others = Box::pin(others.open(briefing, executor)).await?;
                let over = Over::start(others.agent).await.map_err(ClaudeError::from);
                let reach = Reach::Over(over.map_err(AgentsError::from)?);
                claude(briefing, executor, cli, reach).await
            }
            Self::Playbook(playbook) => {
                let packages: Vec<String> =
                    briefing.packages.iter().map(|it| it.name.clone()).collect();
                Ok(Opened::without_program(playbook.with_packages(&packages)))
            }
            Self::Scripted(scripted) => Ok(Opened::without_program(scripted)),
        }
    }
}

impl Agents {
    /// Finds what would be wrong with them as far as that can be told without a place to run
    /// programs in.
    pub(crate) async fn check(&self, briefing: &Briefing<'_>) -> Result<Checked, RunError> {
        match self {
            Self::Claude => {
                let credentials = Credentials::find().ok_or(AgentsError::NoKey)?;
                let reach = Reach::with(credentials).await.map_err(AgentsError::from)?;
                Ok(Checked::Claude { cli: program(briefing).await?, reach })
            }
            Self::ClaudeOver(agents) => {
                let others = Box::new(Box::pin(agents.check(briefing)).await?);
                Ok(Checked::ClaudeOver { cli: program(briefing).await?, others })
            }
            Self::Playbook => {
                let playbook = playbook(briefing).map_err(AgentsError::from)?;
                Ok(Checked::Playbook(Box::new(playbook)))
            }
            Self::Scripted(file) => {
                Ok(Checked::Scripted(Scripted::from_file(file).map_err(AgentsError::from)?))
            }
            Self::Replay(run) => Ok(Checked::Scripted(replay(run)?)),
        }
    }

    /// The same with an absolute path, so that a resumed run finds it from anywhere.
    #[must_use]
    pub fn absolute(self) -> Self {
        let absolute = |path: Utf8PathBuf| camino::absolute_utf8(&path).unwrap_or(path);
        match self {
            Self::Scripted(file) => Self::Scripted(absolute(file)),
            Self::Replay(run) => Self::Replay(absolute(run)),
            Self::ClaudeOver(agents) => Self::ClaudeOver(Box::new(agents.absolute())),
            Self::Claude | Self::Playbook => self,
        }
    }
}

impl FromStr for Agents {
    type Err = AgentsError;

    fn from_str(text: &str) -> Result<Self, AgentsError> {
        if let Some(agents) = text.strip_prefix(OVER) {
            return Ok(Self::ClaudeOver(Box::new(agents.parse()?)));
        }
        match text.split_once(':') {
            None if text == "claude" => Ok(Self::Claude),
            None if text == "playbook" || text == PLAYBOOK => Ok(Self::Playbook),
            Some(("scripted", file)) if !file.is_empty() => Ok(Self::Scripted(file.into())),
            Some(("replay", run)) if !run.is_empty() => Ok(Self::Replay(run.into())),
            _ => Err(AgentsError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claude => f.write_str("claude"),
            Self::Playbook => f.write_str(PLAYBOOK),
            Self::Scripted(file) => write!(f, "scripted:{file}"),
            Self::Replay(run) => write!(f, "replay:{run}"),
            Self::ClaudeOver(agents) => write!(f, "{OVER}{agents}"),
        }
    }
}

/// The `claude` program.
async fn program(briefing: &Briefing<'_>) -> Result<Cli, RunError> {
    let path = briefing.config.claude_path.as_deref().map(Utf8Path::as_std_path);
    let cli = Cli::find(path).await.map_err(ClaudeError::from);
    Ok(cli.map_err(AgentsError::from)?)
}

/// Agents behind the `claude` program.
async fn claude(
    briefing: &Briefing<'_>,
    executor: &Local,
    cli: Cli,
    reach: Reach,
) -> Result<Opened, RunError> {
    let Briefing { task, config, supervisor, permission, .. } = *briefing;
    let enclosure = Enclosure::new(executor::holder(supervisor)?, executor, &cli, &task.data_dir);
    let permission = permission.cloned();
    let claude = Claude::new(cli, config, task.data_dir.clone(), reach, enclosure, permission);
    let claude = claude.map_err(AgentsError::from)?;
    claude.try_out().await.map_err(AgentsError::from)?;
    let gaps = Some(claude.gaps());
    Ok(Opened { agent: Box::new(claude), gaps })
}

fn playbook(briefing: &Briefing<'_>) -> Result<Playbook, ShapeError> {
    let options = Options {
        subsample_limit: briefing.config.subsample_limit as u64,
        seed: briefing.config.seed,
        models_retrieved: briefing.config.num_retrieved_models,
    };
    Playbook::new(briefing.task, briefing.data, &[], options)
}

/// An agent that gives the replies of another run.
fn replay(run: &Utf8Path) -> Result<Scripted, AgentsError> {
    let records: Vec<Record> = mle_star_journal::read(&RunDir::at(run).journal())
        .map_err(|source| AgentsError::Replay { run: run.to_owned(), source })?;
    let replies: HashMap<String, (Reply, Option<String>)> = records
        .iter()
        .filter_map(Record::finished)
        .filter_map(|(key, output)| match output {
            Output::Asked { reply, no_answer } => {
                Some((key.to_string(), (reply.clone(), no_answer.clone())))
            }
            Output::Ran { .. } | Output::NotDone { .. } | Output::Totals { .. } => None,
        })
        .collect();
    Ok(Scripted::new(move |call| match replies.get(&call.step) {
        // Nothing is paid for what was paid before.
        Some((reply, None)) => Ok(Reply { cost_usd: None, ..reply.clone() }),
        Some((_, Some(reason))) => {
            Err(AgentError::NoAnswer { reason: reason.clone(), cost_usd: None })
        }
        None => Err(AgentError::NotScripted { role: call.role.clone(), step: call.step.clone() }),
    }))
}
