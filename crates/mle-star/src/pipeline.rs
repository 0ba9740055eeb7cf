//! Wiring: from a task and settings to a run, and from its end to the files people look for.

use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use mle_star_agent::scripted::ScriptError;
use mle_star_claude::Permission;
use mle_star_exec::sandbox::Wish;
use mle_star_exec::venv::VenvError;
use mle_star_exec::{ExecError, Executor, Local, machine};
use mle_star_profile::{Bounds, Manifest, ProfileError};
use mle_star_search::event::{FORMAT, Header, Lack};
use mle_star_search::models::{
    ConfigError, ConfigLayer, FinalResult, PipelineConfig, TaskDescription, TaskError, nearest,
};
use mle_star_search::prompt::{PromptError, PromptRegistry};
use mle_star_search::rundir::{RunDir, copy_whole, write_whole};
use mle_star_search::{Error, OnChange, PipelineError, Ports, Run};
use mle_star_view::shell_word;
use serde::Serialize;

use crate::agents::{self, Agents, AgentsError, Briefing, Opened};
use crate::clock::SystemClock;
use crate::executor::{self, Purpose};
use crate::log::Follower;
use crate::look;
use crate::python::{self, IfAbsent, Progress};
use crate::secrets::{mask_all, secrets, utf8_environment};

/// A run that is about to begin.
#[derive(Debug, Clone)]
pub struct Pipeline {
    task: TaskDescription,
    settings: ConfigLayer,
    preset: ConfigLayer,
    agents: Agents,
    runs: Utf8PathBuf,
    python: Option<Utf8PathBuf>,
    progress: Progress,
    reference_discussions: Vec<String>,
    sandbox: Wish,
    supervisor: Option<Utf8PathBuf>,
    permission: Option<Permission>,
}

/// Why a run did not begin, or ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The task makes no sense.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The settings make no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data cannot be used.
    #[error("the data of the task cannot be used")]
    Data(#[from] ProfileError),
    /// The data is not what the run began with.
    #[error("the data is not what the run began with: {}", .0.join("; "))]
    DataChanged(Vec<String>),
    /// The prompts that replace the built-in ones cannot be used.
    #[error("the prompts in `{folder}` cannot be used")]
    Prompts {
        /// The folder.
        folder: Utf8PathBuf,
        /// Why.
        source: PromptError,
    },
    /// The task needs packages that are not installed.
    #[error("the task needs Python packages that are not installed: {}", .packages.join(", "))]
    Packages {
        /// The interpreter.
        python: String,
        /// What is missing.
        packages: Vec<String>,
    },
    /// There is no environment with the packages that scripts need.
    #[error("the Python environment for the scripts cannot be made")]
    Venv(#[from] VenvError),
    /// There is no program that could supervise scripts.
    #[error("there is no program to supervise the scripts")]
    NoSupervisor,
    /// The machine cannot run scripts.
    #[error("this machine cannot run the scripts")]
    Machine(#[from] ExecError),
    /// The agents cannot be had.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// A file cannot be read or written. The message names it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// There is no run at this place.
    #[error("there is no run at `{0}`")]
    NoRun(Utf8PathBuf),
    /// The run cannot be opened.
    #[error("the run at `{run}` cannot be opened")]
    Open {
        /// The run directory.
        run: Utf8PathBuf,
        /// Why.
        source: Error,
    },
    /// The run ended without a result.
    #[error("the run at `{run}` has no result")]
    Pipeline {
        /// The run directory.
        run: Utf8PathBuf,
        /// Why.
        source: PipelineError,
    },
}

/// How a run is taken up again.
#[derive(Debug, Clone)]
pub struct Resume {
    /// The run directory.
    pub run: Utf8PathBuf,
    /// Other agents than before.
    pub agents: Option<Agents>,
    /// Where the data is now.
    pub data: Option<Utf8PathBuf>,
    /// What to do where the journal does not fit.
    pub on_change: OnChange,
    /// Limits that change.
    pub limits: ConfigLayer,
    /// Hears what is done before the run goes on.
    pub progress: Progress,
    /// Something else than before is wanted of the sandbox.
    pub sandbox: Option<Wish>,
    /// The program that supervises scripts, if not this one.
    pub supervisor: Option<Utf8PathBuf>,
    /// Who decides on the use of tools; see [`Pipeline::permission`]. It is not on record.
    pub permission: Option<Permission>,
}

impl Pipeline {
    /// A run on `task`, with default settings, Claude's agents, under `runs/`.
    pub fn new(task: TaskDescription) -> Self {
        Self {
            task,
            settings: ConfigLayer::default(),
            preset: ConfigLayer::default(),
            agents: Agents::Claude,
            runs: "runs".into(),
            python: None,
            progress: Progress::default(),
            reference_discussions: Vec::new(),
            sandbox: Wish::default(),
            supervisor: None,
            permission: None,
        }
    }

    /// Settings, all of them explicit.
    #[must_use]
    pub fn config(self, config: PipelineConfig) -> Self {
        self.settings(config.into_layer())
    }

    /// The settings that are explicit. The environment and the defaults fill in the others.
    #[must_use]
    pub fn settings(self, settings: ConfigLayer) -> Self {
        Self { settings, ..self }
    }

    /// What takes the place of the defaults, below the environment.
    #[must_use]
    pub fn preset(self, preset: ConfigLayer) -> Self {
        Self { preset, ..self }
    }

    /// Who answers the calls.
    #[must_use]
    pub fn agents(self, agents: Agents) -> Self {
        Self { agents, ..self }
    }

    /// The folder in which the run directory is made.
    #[must_use]
    pub fn runs(self, folder: impl Into<Utf8PathBuf>) -> Self {
        Self { runs: folder.into(), ..self }
    }

    /// The Python that runs the scripts. If none is given, here or in `MLE_STAR_PYTHON`, an
    /// environment with the usual packages is made once, from the first Python on the path.
    #[must_use]
    pub fn python(self, python: Option<Utf8PathBuf>) -> Self {
        Self { python, ..self }
    }

    /// Hears what is done before the run begins, which can take minutes.
    #[must_use]
    pub fn progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// What is wanted of the sandbox that scripts run in; the best there is if nothing is said.
    #[must_use]
    pub fn sandbox(self, sandbox: Wish) -> Self {
        Self { sandbox, ..self }
    }

    /// The program that supervises scripts: `mle-star`, or one that calls
    /// [`supervise_if_asked`](crate::supervise_if_asked).
    #[must_use]
    pub fn supervisor(self, program: impl Into<Utf8PathBuf>) -> Self {
        Self { supervisor: Some(program.into()), ..self }
    }

    /// Somebody who decides, besides the policy, whether Claude's agents may use a tool. They are
    /// asked before every use that does more than read: with this, the default `permission_mode`
    /// bypasses nothing; with `acceptEdits`, they are not asked about files in the agent's own
    /// folder. What the policy denies they are never asked about.
    #[must_use]
    pub fn permission(self, permission: Permission) -> Self {
        Self { permission: Some(permission), ..self }
    }

    /// Discussions that the solution must not be a copy of.
    #[must_use]
    pub fn reference_discussions(self, reference_discussions: Vec<String>) -> Self {
        Self { reference_discussions, ..self }
    }

    /// Runs it to its end.
    pub async fn run(self) -> Result<FinalResult, RunError> {
        let run = self.open().await?;
        Box::pin(complete(&run)).await // whoever waits for it has no room for all of its parts
    }

    /// Checks everything that can be checked before money is spent, and opens the run directory.
    pub async fn open(self) -> Result<Run, RunError> {
        let runs = self.runs.clone();
        let agents = self.agents.clone();
        let Checked { header, agent, executor } = self.checked(IfAbsent::Make).await?;
        let dir = new_run_directory(&runs, &header.task.competition_id)?;
        let ports = ports(agent, sharing(executor, &agents, &dir));
        let opened = describe_run(&dir, &header)
            .map_err(Error::from)
            .and_then(|()| Run::create(dir.clone(), header, ports));
        opened.map_err(|source| {
            fs::remove_dir_all(dir.root()).ok(); // a run that never began leaves nothing behind
            RunError::Open { run: dir.root().to_owned(), source }
        })
    }

    /// Makes the checks of [`open`](Self::open) and nothing else. Gives what would be settled; a
    /// Python environment that is still to be made is only announced.
    pub async fn check(self) -> Result<Header, RunError> {
        Ok(self.checked(IfAbsent::Announce).await?.header)
    }

    async fn checked(self, if_absent: IfAbsent) -> Result<Checked, RunError> {
        let Self { mut task, settings, preset, agents, runs, python, .. } = self;
        let Self { progress, reference_discussions, sandbox, supervisor, permission, .. } = self;
        task.validate()?;
        let environment = ConfigLayer::from_environment(utf8_environment())?;
        let mut config = settings.over(environment).over(preset).resolve()?;
        // What people write goes into the journal, and they paste more than they mean to.
        let secrets = secrets(utf8_environment());
        task.description = mask_all(&task.description, &secrets);
        let masked = reference_discussions.iter().map(|text| mask_all(text, &secrets));
        let reference_discussions = masked.collect();
        task.data_dir = camino::absolute_utf8(&task.data_dir)?;
        config.prompts_dir = config.prompts_dir.map(check_prompts).transpose()?;
        config.claude_path = config.claude_path.map(camino::absolute_utf8).transpose()?;
        let data = mle_star_profile::profile(&task.data_dir, &Bounds::default())?;
        let manifest = Manifest::of(&task.data_dir)?;

        let agents = agents.absolute();
        let supervised_by = supervisor.as_deref();
        let briefing = Briefing {
            supervisor: supervised_by,
            task: &task,
            config: &config,
            data: &data,
            permission: permission.as_ref(),
            packages: &[],
        };
        // What is wrong is said before minutes are spent on packages.
        let checked = agents.check(&briefing).await?;
        let machine = python::machine(python, &task.packages, &progress, if_absent).await?;
        let purpose = Purpose {
            task: &task,
            config: &config,
            python: &machine.python,
            gpus: &machine.gpus,
            wish: sandbox,
            folder: &camino::absolute_utf8(&runs)?,
        };
        let executor = executor::local(&purpose, supervised_by).await?;
        let briefing = Briefing { packages: &machine.packages, ..briefing };
        let (agent, executor) = with_agents(executor, checked, &briefing).await?;
        let containment = executor.containment().cloned();

        let header = Header {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agents: agents.to_string(),
            task,
            config,
            machine,
            data,
            manifest,
            reference_discussions,
            sandbox,
            containment,
        };
        Ok(Checked { header, agent, executor })
    }
}

/// What a run begins with, checked.
struct Checked {
    header: Header,
    agent: Box<dyn mle_star_agent::Agent>,
    executor: Local,
}

impl Resume {
    /// Takes up the run at `run` with everything as it was.
    pub fn new(run: impl Into<Utf8PathBuf>) -> Self {
        Self {
            run: run.into(),
            agents: None,
            data: None,
            on_change: OnChange::Stop,
            limits: ConfigLayer::default(),
            progress: Progress::default(),
            sandbox: None,
            supervisor: None,
            permission: None,
        }
    }

    /// Opens the run and makes sure that it can go on, before anything is spent.
    pub async fn open(self) -> Result<Run, RunError> {
        let root = camino::absolute_utf8(&self.run)?;
        let dir = RunDir::at(&root);
        if !dir.journal().is_file() {
            return Err(RunError::NoRun(root));
        }
        let in_run = |source| RunError::Open { run: root.clone(), source };
        let mut header = Run::read_header(&dir).map_err(in_run)?;
        let here = ConfigLayer::from_environment(utf8_environment())?.claude_path;
        let here = ConfigLayer { claude_path: here, ..ConfigLayer::default() };
        let limits = self.limits.over(here);
        let wanted = limits.over(header.config.clone().into_layer()).resolve()?;
        header.config = header.config.with_limits_of(&wanted)?;
        if let Some(data) = &self.data {
            header.task.data_dir = camino::absolute_utf8(data)?;
        }
        let changed = header.manifest.differences(&Manifest::of(&header.task.data_dir)?);
        if !changed.is_empty() {
            return Err(RunError::DataChanged(changed));
        }
        let agents = match self.agents {
            Some(agents) => agents.absolute(),
            None => header.agents.parse()?,
        };
        let briefing = Briefing {
            supervisor: self.supervisor.as_deref(),
            task: &header.task,
            config: &header.config,
            data: &header.data,
            permission: self.permission.as_ref(),
            packages: &[],
        };
        let checked = agents.check(&briefing).await?;
        if !python::is_usable(Utf8Path::new(&header.machine.python)) {
            // The run directory came from another machine, or the cache was emptied.
            let packages = &header.task.packages;
            header.machine =
                python::machine(None, packages, &self.progress, IfAbsent::Make).await?;
        }
        header.sandbox = self.sandbox.unwrap_or(header.sandbox);
        let purpose = Purpose {
            task: &header.task,
            config: &header.config,
            python: &header.machine.python,
            gpus: &machine::detect_gpu_info().await, // the cards of then may not be those of now
            wish: header.sandbox,
            folder: &root,
        };
        let executor = executor::local(&purpose, self.supervisor.as_deref()).await?;
        let briefing = Briefing { packages: &header.machine.packages, ..briefing };
        let (agent, executor) = with_agents(executor, checked, &briefing).await?;
        header.containment = executor.containment().cloned();
        let ports = ports(agent, sharing(executor, &agents, &dir));
        let run = Run::resume(dir, header, ports, self.on_change)
            .map_err(|source| RunError::Open { run: root.clone(), source })?;
        // The run is ours only now: until here another process may have been at work on it.
        run.dir().set_request(None)?; // what was asked of an earlier life is done with
        run.dir().sweep();
        run.rehearse(mle_star_search::run(&run.ctx())).map_err(|error| match error {
            PipelineError::Stopped { source, .. } => RunError::Open { run: root, source: *source },
            source @ (PipelineError::Phase1 { .. } | PipelineError::Exhausted { .. }) => {
                RunError::Pipeline { run: root, source }
            }
        })?;
        Ok(run)
    }
}

/// Runs an open run to its end and delivers the result.
pub async fn complete(run: &Run) -> Result<FinalResult, RunError> {
    let mut log = Follower::of(run);
    let ctx = run.ctx();
    let ended = tokio::select! {
        biased;
        ended = mle_star_search::run(&ctx) => ended,
        never = log.follow() => match never {},
    };
    let ended =
        ended.map_err(|source| RunError::Pipeline { run: run.dir().root().to_owned(), source });
    let delivered = match ended {
        Ok(completed) => deliver(run.dir(), &completed.result).map(|()| completed.result),
        Err(error) => Err(error),
    };
    if let Err(error) = &delivered {
        log.failed(error);
    }
    if delivered.is_ok() {
        fs::remove_dir_all(run.dir().shared()).ok(); // absent in most runs, of no use after any
    }
    look::report_the_end(run.dir());
    delivered
}

/// Puts the result where people look for it. Doing it twice does no harm.
fn deliver(dir: &RunDir, result: &FinalResult) -> Result<(), RunError> {
    if result.submission_path.is_empty() {
        dir.publish_script(&result.final_solution.content)?;
    } else if let Some(folder) = result.task.explicit_output_dir() {
        copy_whole(&dir.submission(), &folder.join("submission.csv"))?;
    }
    let text = serde_json::to_string_pretty(result).map_err(std::io::Error::from)?;
    write_whole(&dir.result(), text.as_bytes())?;
    Ok(())
}

/// Opens the agents. What of them the sandbox does not hold is known to the executor from then on.
async fn with_agents(
    executor: Local,
    agents: agents::Checked,
    briefing: &Briefing<'_>,
) -> Result<(Box<dyn mle_star_agent::Agent>, Local), RunError> {
    let Opened { agent, gaps } = agents.open(briefing, &executor).await?;
    let executor = match gaps {
        Some(gaps) => executor.with_agents(gaps),
        None => executor,
    };
    Ok((agent, executor))
}

/// Scripts that a model wrote do not trust each other; those of the playbook do, and save the time
/// to fit a model that another has fitted.
fn sharing(executor: Local, agents: &Agents, dir: &RunDir) -> Local {
    match agents {
        Agents::Playbook => executor.sharing(dir.shared()),
        Agents::ClaudeOver(others) => sharing(executor, others, dir),
        Agents::Claude | Agents::Scripted(_) | Agents::Replay(_) => executor,
    }
}

fn ports(agent: Box<dyn mle_star_agent::Agent>, executor: Local) -> Ports {
    Ports {
        agent,
        executor: Box::new(executor),
        clock: Box::new(SystemClock::new()),
        secrets: secrets(utf8_environment()),
    }
}

/// The task and the settings in a form that people read; the journal has them too.
fn describe_run(dir: &RunDir, header: &Header) -> std::io::Result<()> {
    write_whole(&dir.root().join("task.yaml"), yaml(&header.task)?.as_bytes())?;
    write_whole(&dir.root().join("config.yaml"), yaml(&header.config)?.as_bytes())
}

/// A value in a form that people read.
pub fn yaml(value: &impl Serialize) -> std::io::Result<String> {
    serde_saphyr::to_string(value).map_err(|error| std::io::Error::other(error.to_string()))
}

/// `runs/<competition>-<time>`, made anew.
fn new_run_directory(runs: &Utf8Path, competition_id: &str) -> Result<RunDir, RunError> {
    let runs = camino::absolute_utf8(runs)?;
    fs::create_dir_all(&runs)?;
    let name: String = competition_id
        .chars()
        .map(|it| if it.is_alphanumeric() || matches!(it, '-' | '_' | '.') { it } else { '-' })
        .collect();
    let time = Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S");
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let root = runs.join(format!("{}-{time}{suffix}", name.trim_start_matches('.')));
        match fs::create_dir(&root) {
            Ok(()) => return Ok(RunDir::at(root)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The absolute folder, if it holds prompts that can be used.
fn check_prompts(folder: Utf8PathBuf) -> Result<Utf8PathBuf, RunError> {
    let folder = camino::absolute_utf8(&folder)?;
    match PromptRegistry::with_overrides(&folder) {
        Ok(_) => Ok(folder),
        Err(source) => Err(RunError::Prompts { folder, source }),
    }
}

impl RunError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Task(TaskError::Direction { .. }) => {
                Some("correct `metric_direction`, or leave it out".to_owned())
            }
            Self::Task(TaskError::Blank { .. }) => {
                Some("a task needs a name, a metric and a description".to_owned())
            }
            Self::Config(_) => Some("`mle-star run --help` lists the settings".to_owned()),
            Self::Prompts { .. } => Some(
                "`prompts_dir` is a folder of files that replace prompts of the same name"
                    .to_owned(),
            ),
            Self::Io(_) | Self::Agents(AgentsError::Script(ScriptError::Read(_))) => {
                Some("check the path and its permissions".to_owned())
            }
            Self::Data(_) => Some("`data_dir` must be a folder with at least one file".to_owned()),
            Self::DataChanged(_) => {
                Some("restore the data, or name its folder with --data".to_owned())
            }
            Self::Packages { python, packages } => {
                let packages: Vec<String> = packages.iter().map(|it| shell_word(it)).collect();
                Some(format!("{} -m pip install {}", shell_word(python), packages.join(" ")))
            }
            Self::NoSupervisor => Some(
                "put `mle-star` on the path, or call `supervise_if_asked` first in `main`"
                    .to_owned(),
            ),
            Self::Machine(error) | Self::Venv(VenvError::Interpreter(error))
                if error.is_want_of_room() =>
            {
                Some(python::MAKE_ROOM.to_owned())
            }
            Self::Agents(error) if error.is_want_of_room() => Some(python::MAKE_ROOM.to_owned()),
            Self::Machine(
                ExecError::NoPython { .. }
                | ExecError::PythonTooOld { .. }
                | ExecError::PythonBroken { .. },
            ) => Some(
                "install Python 3.10 or later (apt install python3 python3-venv), or use --python"
                    .to_owned(),
            ),
            Self::Venv(error) => Some(python::hint(error)),
            Self::Machine(ExecError::Sandbox { .. }) => {
                Some("`mle-star doctor` says what is missing; --sandbox takes less".to_owned())
            }
            Self::Machine(_) => Some("`mle-star doctor` says what works here".to_owned()),
            Self::Agents(AgentsError::NoKey) => {
                Some("set it, or use --agents playbook, which needs no key".to_owned())
            }
            Self::Agents(AgentsError::Playbook(error)) => error.hint().map(str::to_owned),
            Self::Agents(AgentsError::Claude(error)) => Some(match error.remedy() {
                Some(remedy) => format!("{remedy}; --claude-path names the program"),
                None => "--claude-path names the program".to_owned(),
            }),
            Self::Agents(AgentsError::Unknown(name)) => {
                let all = "agents are claude, playbook, scripted:<file> or replay:<run>";
                Some(match nearest(name, ["claude", "playbook"]) {
                    Some(near) => format!("did you mean `{near}`? {all}"),
                    None => all.to_owned(),
                })
            }
            Self::Agents(AgentsError::Script(_)) => Some(
                "scripted:<file> is YAML: `replies:` with a `role` and a `reply` each".to_owned(),
            ),
            Self::Agents(AgentsError::Replay { .. }) => {
                Some("replay:<run> is a run directory; `mle-star list` shows the runs".to_owned())
            }
            Self::NoRun(run) => Some(match look::nearest_run(run) {
                Some(nearest) => {
                    format!("did you mean `{nearest}`? `mle-star list` shows the runs")
                }
                None => "`mle-star list` shows the runs".to_owned(),
            }),
            Self::Open { run, source: Error::Journal(journal) } => match journal {
                mle_star_journal::JournalError::Locked { .. } => Some(format!(
                    "wait for the other process, or stop it: mle-star stop {}",
                    shell_word(run.as_str())
                )),
                mle_star_journal::JournalError::Damaged { .. } => Some(
                    "the line can be mended by hand, or it and all later ones removed".to_owned(),
                ),
                mle_star_journal::JournalError::Io(error) => {
                    let is_ours = [ErrorKind::NotFound, ErrorKind::PermissionDenied];
                    Some(match is_ours.contains(&error.kind()) {
                        true => "check the path and its permissions".to_owned(),
                        // As of a disk that is full or broken.
                        false => format!(
                            "when that is mended: mle-star resume {}",
                            shell_word(run.as_str())
                        ),
                    })
                }
                mle_star_journal::JournalError::Exists { .. }
                | mle_star_journal::JournalError::Encode(_)
                | mle_star_journal::JournalError::Stopped { .. } => None,
            },
            Self::Open { run, source: Error::Diverged { .. } } => {
                Some(format!("mle-star resume {} --rerun-changed", shell_word(run.as_str())))
            }
            Self::Pipeline { run, source: PipelineError::Exhausted { lack, .. } } => {
                let resume = format!("mle-star resume {}", shell_word(run.as_str()));
                Some(match lack {
                    Lack::Time => format!("with a larger limit: {resume} -s time_limit_seconds=…"),
                    Lack::Money => format!("with a larger limit: {resume} -s max_budget_usd=…"),
                    Lack::Agents { .. } | Lack::Patience | Lack::Executor { .. } => {
                        format!("when that is mended: {resume}")
                    }
                })
            }
            Self::Pipeline { run, source } => match source.cause() {
                Error::NoCandidate { .. } | Error::NoModels | Error::Retriever { .. } => {
                    Some(format!("mle-star show {}", shell_word(run.as_str())))
                }
                Error::Agent { .. }
                | Error::Exec { .. }
                | Error::NotDone { .. }
                | Error::Journal(_)
                | Error::Io(_)
                | Error::Prompt(_)
                | Error::Diverged { .. }
                | Error::NotRecorded { .. }
                | Error::Format { .. }
                | Error::Headless
                | Error::Precondition(_) => Some(format!(
                    "when that is mended: mle-star resume {}",
                    shell_word(run.as_str())
                )),
            },
            Self::Open { source: Error::Format { .. }, .. } => {
                Some("use the version of mle-star that began the run".to_owned())
            }
            Self::Open { source: Error::Headless, .. } => {
                Some("without its first line a run cannot go on; begin a new one".to_owned())
            }
            Self::Open { .. } => None,
        }
    }

    /// Whether the caller asked for something that cannot be done, rather than something failing.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Task(_)
                | Self::Config(_)
                | Self::Prompts { .. }
                | Self::Data(_)
                | Self::NoRun(_)
                | Self::Venv(VenvError::Requirement { .. })
        ) || matches!(self, Self::Agents(error) if !error.is_want_of_room())
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_run_on_a_broken_disk_says_how_to_go_on_and_one_that_may_not_be_read_what_to_check() {
        let hint = |number: i32| {
            let error = std::io::Error::from_raw_os_error(number);
            let source = Error::Journal(mle_star_journal::JournalError::Io(error));
            RunError::Open { run: "runs/shop".into(), source }.hint().unwrap()
        };
        assert_eq!(
            hint(Errno::IO.raw_os_error()),
            "when that is mended: mle-star resume runs/shop"
        );
        assert_eq!(hint(Errno::ACCESS.raw_os_error()), "check the path and its permissions");
    }
}
