//! Which Python runs the scripts: the one that the user names, as it is, or else an environment of
//! our own with the pinned packages and those of the task.

use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_exec::machine::{self, Interpreter, Machine};
use mle_star_exec::venv::{self, Packages, Venv, VenvError};
use mle_star_view::shell_word;

use crate::RunError;
use crate::dotenv;

/// The variable that names the user's Python.
const PYTHON: &str = "MLE_STAR_PYTHON";

/// What to do where no process can be started.
pub(crate) const MAKE_ROOM: &str =
    "there is no room for another process: end others, or raise the limit (ulimit -u)";

/// Hears what is done before a run begins, a line at a time. By default nobody does.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Passes every line to `tell`.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new(|_| ())
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// What happens where there is no environment yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfAbsent {
    /// It is made.
    Make,
    /// It is said that it will be.
    Announce,
}

/// The machine, with the Python that runs the scripts and the packages in it.
pub(crate) async fn machine(
    configured: Option<Utf8PathBuf>,
    packages: &[String],
    progress: &Progress,
    if_absent: IfAbsent,
) -> Result<Machine, RunError> {
    if let Some(configured) = self::configured(configured) {
        let machine = machine::detect(Some(&configured)).await?;
        check_packages(packages, &machine)?;
        return Ok(machine);
    }
    let Managed { base, venv } = Managed::find(packages).await?;
    if if_absent == IfAbsent::Announce && !venv.is_ready() {
        let (folder, effort) = (venv.folder(), venv.effort());
        (progress.0)(&format!("a Python environment will be made in {folder} ({effort})"));
        return Ok(machine::detect(Some(&base.path)).await?);
    }
    let python = venv.provide(&*progress.0).await?;
    Ok(machine::detect(Some(&python)).await?)
}

/// Whether a Python that a run used before is there, and not in the middle of being made again.
pub(crate) fn is_usable(python: &Utf8Path) -> bool {
    let cache = venv::cache_folder(dotenv::variable);
    let half_made = cache.is_ok_and(|cache| venv::is_half_made(&cache, python));
    python.is_file() && !half_made
}

/// The Python that the user names, if any.
pub(crate) fn configured(argument: Option<Utf8PathBuf>) -> Option<Utf8PathBuf> {
    argument.or_else(|| {
        let value = dotenv::variable(PYTHON)?.into_string().ok()?;
        (!value.is_empty()).then(|| value.into())
    })
}

/// An environment of our own, which may not be made yet.
#[derive(Debug)]
pub(crate) struct Managed {
    /// What it is made from.
    pub(crate) base: Interpreter,
    pub(crate) venv: Venv,
}

impl Managed {
    /// The environment with the usual packages and `packages`.
    pub(crate) async fn find(packages: &[String]) -> Result<Self, RunError> {
        let base = machine::interpreter(None).await?;
        let cache = venv::cache_folder(dotenv::variable)?;
        let packages = Packages::standard().with(packages)?;
        Ok(Self { venv: Venv::for_packages(&cache, base.clone(), packages), base })
    }
}

fn check_packages(wanted: &[String], machine: &Machine) -> Result<(), RunError> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    let installed: Vec<String> = machine.packages.iter().map(|it| plain(&it.name)).collect();
    let packages: Vec<String> = wanted
        .iter()
        .filter(|wanted| {
            let name = wanted.split(['=', '<', '>', '!', '~', '[', ' ', ';']).next();
            !name.is_some_and(|name| installed.contains(&plain(name)))
        })
        .cloned()
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    Err(RunError::Packages { python: machine.python.clone(), packages })
}

/// What to do about an environment that cannot be made.
pub(crate) fn hint(error: &VenvError) -> String {
    let own = "--python <file> names a Python that has the packages";
    match error {
        VenvError::Interpreter(_) => {
            "install Python 3.10 or later (apt install python3 python3-venv), or use --python"
                .to_owned()
        }
        VenvError::NoCache => "set MLE_STAR_CACHE to a folder".to_owned(),
        VenvError::Requirement { .. } => {
            "`packages` in a task lists names such as lightgbm or torch>=2".to_owned()
        }
        VenvError::NoVenv { .. } => {
            format!("apt install python3-venv, or install uv, or else {own}")
        }
        VenvError::NoSuchPackage { .. } => {
            format!("correct `packages` in the task; {own}")
        }
        VenvError::Conflict { .. } => {
            format!("ask for other versions with `packages` in the task; {own}")
        }
        VenvError::Fetch { command, .. } | VenvError::TimedOut { command, .. } => {
            format!("check the network and its proxy with: {}; {own}", by_hand(command))
        }
        VenvError::Install { command, .. } => {
            format!("see more with: {}; {own}", by_hand(command))
        }
        VenvError::DiskFull { .. } => {
            "make room, or set MLE_STAR_CACHE to a folder on another disk".to_owned()
        }
        VenvError::Broken { detail, .. } if detail.contains("libgomp") => {
            "apt install libgomp1".to_owned()
        }
        VenvError::Broken { .. } => own.to_owned(),
        VenvError::Busy { .. } => "wait for the other process, or stop it".to_owned(),
        VenvError::Start { source, .. } if source.kind() == std::io::ErrorKind::WouldBlock => {
            MAKE_ROOM.to_owned()
        }
        VenvError::Start { .. } | VenvError::Io(_) => {
            "check the path and its permissions".to_owned()
        }
    }
}

fn by_hand(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
    words.join(" ")
}
