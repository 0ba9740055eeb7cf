//! Wiring: from a task and settings to a run, and from its end to the files people look for.

mod error;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use mle_star_claude::Permission;
use mle_star_exec::sandbox::Wish;
use mle_star_exec::{Executor, Local, machine};
use mle_star_profile::{Bounds, Manifest};
use mle_star_search::event::{FORMAT, Header};
use mle_star_search::models::{ConfigLayer, FinalResult, PipelineConfig, TaskDescription};
use mle_star_search::prompt::PromptRegistry;
use mle_star_search::rundir::{RunDir, copy_whole, write_whole};
use mle_star_search::{Error, OnChange, PipelineError, Ports, Run};
use serde::Serialize;

pub use self::error::RunError;
use crate::agents::{self, Agents, Briefing, Opened};
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
