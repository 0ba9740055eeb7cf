//! What works here: every part that a run needs, looked at by using it.

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_claude::Cli;
use mle_star_exec::limits::{free_disk_bytes, size};
use mle_star_exec::machine::{self, GpuInfo, Interpreter, Machine};
use mle_star_exec::sandbox::{Containment, Gap, Tier, Wish};
use mle_star_exec::{Executor, Local, in_full};
use mle_star_search::models::{
    DataModality, MetricDirection, PipelineConfig, TaskDescription, TaskType,
};
use serde::Serialize;

use crate::agents::AgentsError;
use crate::claude::{Claude, Credentials, Enclosure, Reach};
use crate::executor::{self, Purpose};
use crate::python::{self, Managed};

/// Less disk than this is not enough for a run.
const LEAST_DISK_BYTES: u64 = 2_000_000_000;
/// Less memory than this is not enough for a script.
const LEAST_MEMORY_BYTES: u64 = 1_000_000_000;

/// Who has no program behind agents can do this.
const WITHOUT: &str = "--agents playbook does without";
/// Who has credentials that agents can read can do this.
const KEEPING: &str = "a key (ANTHROPIC_API_KEY, or AWS_BEARER_TOKEN_BEDROCK for Bedrock) or a \
                       gateway's token, and a sandbox, keep them from agents";
/// There is no data where nothing is to be computed.
const NO_DATA: &str = "/nonexistent";

/// One part, and how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// A run works without it, but less well.
    Weak,
    /// A run does not work without it.
    Missing,
}

/// What is looked at.
#[derive(Debug, Clone)]
pub struct Doctor {
    /// The Python of the user, instead of an environment of ours.
    pub python: Option<Utf8PathBuf>,
    /// Where runs would be.
    pub runs: Utf8PathBuf,
    /// What is wanted of the sandbox.
    pub wish: Wish,
    /// The program that supervises scripts, if not this one.
    pub supervisor: Option<Utf8PathBuf>,
    /// The `claude` program, if not the one that a run would find.
    pub claude_path: Option<Utf8PathBuf>,
}

/// Whether a run would work.
pub fn would_work(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.state != State::Missing)
}

impl Doctor {
    /// Looks at everything.
    pub async fn examine(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let gpus = machine::detect_gpu_info().await;
        let python = match self.find_python().await {
            Ok((interpreter, packages)) => {
                let Interpreter { path, version } = &interpreter;
                checks.push(ok("python", format!("{version} at {path}")));
                checks.push(packages);
                Some(path.clone())
            }
            Err(missing) => {
                checks.push(missing);
                None
            }
        };
        let sandbox = match python {
            Some(python) => {
                let (found, sandbox) = self.look_at_sandbox(&python, &gpus).await;
                checks.extend(found);
                sandbox
            }
            None => {
                checks.push(Check {
                    name: "sandbox",
                    state: State::Missing,
                    found: "cannot be tried without Python".to_owned(),
                    remedy: None,
                });
                None
            }
        };
        let (claude, cli) = self.claude().await;
        checks.extend([claude, credentials()]);
        if let (Some(sandbox), Some(cli)) = (sandbox, cli) {
            checks.extend(self.agents(sandbox, cli).await);
        }
        checks.extend([cards(gpus), memory(), self.disk()]);
        checks
    }

    /// The program behind Claude's agents. The others do without.
    async fn claude(&self) -> (Check, Option<Cli>) {
        let of_environment = || {
            let path = crate::dotenv::variable("MLE_STAR_CLAUDE_PATH")?;
            path.into_string().ok().filter(|path| !path.is_empty()).map(Utf8PathBuf::from)
        };
        let path = self.claude_path.clone().or_else(of_environment);
        match Cli::find(path.as_deref().map(Utf8Path::as_std_path)).await {
            Ok(cli) => {
                let found = format!("{} at {}", cli.version(), cli.path().display());
                (ok("claude", found), Some(cli))
            }
            Err(error) => {
                let remedy = match error.remedy() {
                    Some(remedy) => format!("{remedy}; {WITHOUT}"),
                    None => WITHOUT.to_owned(),
                };
                (weak("claude", in_full(&error), Some(remedy)), None)
            }
        }
    }

    /// Whether the sandbox holds the program too, and what its agents could do besides.
    async fn agents(&self, sandbox: Local, cli: Cli) -> Vec<Check> {
        let gaps = match self.try_agents(&sandbox, cli).await {
            Ok(gaps) => gaps,
            Err(error) => {
                let remedy = error.hint().unwrap_or_else(|| WITHOUT.to_owned());
                return vec![weak("agents", in_full(&error), Some(remedy))];
            }
        };
        let containment = sandbox.containment();
        let tier = containment.map(|it| it.tier.to_string()).unwrap_or_default();
        let is_new = |gap: &&Gap| !containment.is_some_and(|it| it.gaps.contains(gap));
        let gaps = gaps.iter().filter(is_new).map(|gap| {
            let is_of_credentials = *gap == Gap::ReadCredentials;
            let remedy = is_of_credentials.then(|| KEEPING.to_owned());
            weak("agents", format!("agents can {gap}"), remedy)
        });
        let held = ok("agents", format!("held as scripts are: {tier}"));
        std::iter::once(held).chain(gaps).collect()
    }

    async fn try_agents(&self, sandbox: &Local, cli: Cli) -> Result<Vec<Gap>, crate::RunError> {
        let reach = match Credentials::find() {
            Some(credentials) => Reach::with(credentials).await,
            None => Reach::nowhere().await,
        };
        let reach = reach.map_err(AgentsError::from)?;
        let holder = executor::holder(self.supervisor.as_deref())?;
        let data = Utf8Path::new(NO_DATA);
        let enclosure = Enclosure::new(holder, sandbox, &cli, data);
        let config = PipelineConfig::default();
        let claude = Claude::new(cli, &config, data.to_owned(), reach, enclosure, None);
        let claude = claude.map_err(AgentsError::from)?;
        claude.try_out().await.map_err(AgentsError::from)?;
        Ok(claude.gaps())
    }

    /// The interpreter to try the sandbox with, and how its packages are.
    async fn find_python(&self) -> Result<(Interpreter, Check), Check> {
        let missing = |error: crate::RunError| Check {
            name: "python",
            state: State::Missing,
            found: in_full(&error),
            remedy: error.hint(),
        };
        match python::configured(self.python.clone()) {
            Some(configured) => {
                let machine = machine::detect(Some(&configured)).await;
                let machine = machine.map_err(|error| missing(error.into()))?;
                let packages = packages_of(&machine);
                let Machine { python, python_version: version, .. } = machine;
                Ok((Interpreter { path: python.into(), version }, packages))
            }
            None => {
                let managed = Managed::find(&[]).await.map_err(missing)?;
                let (path, found) = match managed.venv.is_ready() {
                    true => (managed.venv.python(), "ready in"),
                    false => (managed.base.path.clone(), "not made yet; the first run makes it in"),
                };
                let packages = ok("packages", format!("{found} {}", managed.venv.folder()));
                Ok((Interpreter { path, version: managed.base.version }, packages))
            }
        }
    }

    async fn look_at_sandbox(
        &self,
        python: &Utf8Path,
        gpus: &GpuInfo,
    ) -> (Vec<Check>, Option<Local>) {
        let missing = |error: &crate::RunError| Check {
            name: "sandbox",
            state: State::Missing,
            found: in_full(error),
            remedy: Some(error.hint().unwrap_or_else(|| REMEDY.to_owned())),
        };
        match self.try_sandbox(python, gpus).await {
            Err(error) => (vec![missing(&error)], None),
            Ok(local) => (local.containment().map(held).unwrap_or_default(), Some(local)),
        }
    }

    async fn try_sandbox(
        &self,
        python: &Utf8Path,
        gpus: &GpuInfo,
    ) -> Result<Local, crate::RunError> {
        let mut task = TaskDescription::new(
            "doctor",
            TaskType::Tabular,
            DataModality::Tabular,
            "rmse",
            MetricDirection::Minimize,
            "none",
        )?;
        task.data_dir = NO_DATA.into();
        let purpose = Purpose {
            task: &task,
            config: &PipelineConfig::default(),
            python: python.as_str(),
            gpus,
            wish: self.wish,
            folder: &self.folder(),
        };
        executor::local(&purpose, self.supervisor.as_deref()).await
    }

    fn folder(&self) -> Utf8PathBuf {
        camino::absolute_utf8(&self.runs).unwrap_or_else(|_| self.runs.clone())
    }

    fn disk(&self) -> Check {
        let folder = self.folder();
        match free_disk_bytes(&folder) {
            None => Check {
                name: "disk",
                state: State::Weak,
                found: format!("the system does not say how much {folder} has"),
                remedy: None,
            },
            Some(free) if free < LEAST_DISK_BYTES => Check {
                name: "disk",
                state: State::Missing,
                found: format!("{} free for {folder}", size(free)),
                remedy: Some("make room, or name another folder with --out".to_owned()),
            },
            Some(free) => ok("disk", format!("{} free for {folder}", size(free))),
        }
    }
}

const REMEDY: &str = "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or on \
                      Ubuntu kernel.apparmor_restrict_unprivileged_userns=0); in a container, \
                      start it with --security-opt seccomp=unconfined --security-opt \
                      systempaths=unconfined";

/// The tier, and every protection that there is or is not.
fn held(containment: &Containment) -> Vec<Check> {
    let Containment { tier, refused, limits, cores, .. } = containment;
    let tier_check = match tier {
        Tier::Strong => ok("sandbox", tier.to_string()),
        Tier::Fallback | Tier::Limits | Tier::Off => {
            let why = match refused.as_slice() {
                [] => String::new(),
                reasons => format!(" (no {})", reasons.join("; no ")),
            };
            Check {
                name: "sandbox",
                state: State::Weak,
                found: format!("{tier}{why}"),
                remedy: Some(REMEDY.to_owned()),
            }
        }
    };
    let gaps = Gap::ALL.into_iter().map(|gap| match containment.gaps.contains(&gap) {
        false => ok("protection", format!("scripts cannot {gap}")),
        true => weak("protection", format!("scripts can {gap}"), None),
    });
    let limits = format!(
        "each script: {} of memory, {cores} cores, {} processes, {} of files",
        size(limits.memory_bytes),
        limits.processes,
        size(limits.workspace_bytes),
    );
    std::iter::once(tier_check).chain(gaps).chain([ok("limits", limits)]).collect()
}

/// Which of the usual packages the user's Python lacks. Scripts can do without, but agents like
/// them.
fn packages_of(machine: &Machine) -> Check {
    let usual = ["numpy", "pandas", "scikit-learn", "lightgbm"];
    let installed = |name: &&str| machine.packages.iter().any(|package| package.name == **name);
    let lacking: Vec<&str> = usual.into_iter().filter(|name| !installed(name)).collect();
    match lacking.as_slice() {
        [] => ok("packages", format!("{} installed", machine.packages.len())),
        lacking => Check {
            name: "packages",
            state: State::Weak,
            found: format!("not installed: {}", lacking.join(", ")),
            remedy: Some(format!(
                "{} -m pip install {}",
                mle_star_view::shell_word(&machine.python),
                lacking.join(" ")
            )),
        },
    }
}

/// Whether there is anything by which a model's service would know us. Whether it does, only a
/// request would tell, which costs money.
fn credentials() -> Check {
    match Credentials::find() {
        Some(Credentials { variable }) => ok("key", format!("{variable} is set")),
        None => Check {
            name: "key",
            state: State::Weak,
            found: "no key for Claude's agents".to_owned(),
            remedy: Some("set ANTHROPIC_API_KEY; --agents playbook does without".to_owned()),
        },
    }
}

fn cards(gpus: GpuInfo) -> Check {
    match gpus.absent_because {
        _ if gpus.cuda_available => ok("gpu", gpus.gpu_names.join(", ")),
        Some(why) => ok("gpu", format!("none ({why})")),
        None => ok("gpu", "none".to_owned()),
    }
}

fn memory() -> Check {
    match machine::memory_bytes() {
        0 => Check {
            name: "memory",
            state: State::Weak,
            found: "the system does not say how much there is".to_owned(),
            remedy: Some("set script_memory_limit".to_owned()),
        },
        bytes if bytes < LEAST_MEMORY_BYTES => Check {
            name: "memory",
            state: State::Weak,
            found: size(bytes),
            remedy: Some("few models can be trained with so little".to_owned()),
        },
        bytes => ok("memory", size(bytes)),
    }
}

fn weak(name: &'static str, found: String, remedy: Option<String>) -> Check {
    Check { name, state: State::Weak, found, remedy }
}

fn ok(name: &'static str, found: String) -> Check {
    Check { name, state: State::Ok, found, remedy: None }
}
