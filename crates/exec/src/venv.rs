//! Python environments that make themselves: created once per set of packages, then reused.
//!
//! [`Packages`] says what an environment holds: the pinned set of `packages.txt`, and what a task
//! adds. A [`Venv`] is the place of one environment in the cache. Its name is a digest of all that
//! went into it, so another interpreter or another package is another environment, and none is
//! ever changed after it was made. [`Venv::provide`] makes it if need be: with `uv` where that is
//! installed, else with the interpreter's own `venv` and `pip`.
//!
//! An environment counts as made when its modules could be imported and the file `ready` is in
//! it. Whatever has no such file is the remains of an interrupted attempt and is made anew. A lock
//! beside the folder lets only one process make it.
//!
//! Deliberately absent: downloading Python itself, upgrading, and removing what is no longer used;
//! the cache can be deleted at any time when nothing runs.

mod complaint;
mod tool;

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tokio::time::{Instant, sleep, timeout};

use crate::ExecError;
use crate::machine::{self, Interpreter};
use complaint::Complaint;
use tool::{Maker, Tool};

/// The pinned set.
const PINNED: &str = include_str!("packages.txt");
/// How long making an environment may take. A stalled download ends here.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// How often to look whether another process is done.
const LOOK: Duration = Duration::from_millis(200);
/// Changes when environments are made in another way.
const FORMAT: u32 = 1;
/// The file that says that an environment is complete, and what went into it.
const READY: &str = "ready";
/// What the pinned set takes, for people with a slow network or a small disk.
const EFFORT: &str = "once; 270 MB to download, 1 GB on disk";

/// Hears what is going on, one short line at a time.
pub type Tell<'a> = dyn Fn(&str) + Send + Sync + 'a;

/// What an environment holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    pinned: Vec<Pinned>,
    extra: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pinned {
    requirement: String,
    module: Option<String>,
}

/// The place of an environment.
#[derive(Debug, Clone)]
pub struct Venv {
    folder: Utf8PathBuf,
    base: Interpreter,
    packages: Packages,
    recipe: String,
    /// The program to prefer, if there is one of this name.
    uv: Utf8PathBuf,
    limit: Duration,
}

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub enum VenvError {
    /// There is no interpreter to make it from.
    #[error(transparent)]
    Interpreter(#[from] ExecError),
    /// Neither variable that would say where the cache is has a value.
    #[error("there is no folder for the Python environment: `HOME` is not set")]
    NoCache,
    /// A package that was asked for cannot be one.
    #[error("`{requirement}` is not the name of a Python package")]
    Requirement {
        /// What was asked for.
        requirement: String,
    },
    /// The interpreter comes without what makes environments.
    #[error("python at `{python}` cannot make an environment: {detail}")]
    NoVenv {
        /// The interpreter.
        python: Utf8PathBuf,
        /// What is missing.
        detail: String,
    },
    /// The index has no such package, or none that fits this interpreter.
    #[error("no version of the package `{requirement}` can be installed for Python {version}")]
    NoSuchPackage {
        /// What was asked for.
        requirement: String,
        /// The version of the interpreter.
        version: String,
    },
    /// The packages cannot be installed together.
    #[error("the Python packages do not go together: {detail}")]
    Conflict {
        /// What the installer said.
        detail: String,
    },
    /// The packages could not be fetched.
    #[error("the Python packages could not be fetched: {detail}")]
    Fetch {
        /// What the network said.
        detail: String,
        /// What was run, to be tried by hand.
        command: Vec<String>,
    },
    /// The packages could not be built or unpacked.
    #[error("the Python packages could not be installed: {detail}")]
    Install {
        /// The last words of the installer.
        detail: String,
        /// What was run, to be tried by hand.
        command: Vec<String>,
    },
    /// The disk is full.
    #[error("no space left for the Python environment in `{folder}`")]
    DiskFull {
        /// Where it was to be.
        folder: Utf8PathBuf,
    },
    /// A package was installed but does not load.
    #[error("the Python package `{module}` was installed but does not load: {detail}")]
    Broken {
        /// The module.
        module: String,
        /// What Python said.
        detail: String,
    },
    /// It took too long.
    #[error("the Python environment was not made within {} minutes", .limit.as_secs() / 60)]
    TimedOut {
        /// How long it may take.
        limit: Duration,
        /// What was run last, to be tried by hand.
        command: Vec<String>,
    },
    /// Another process has been making it for too long.
    #[error("another process has held `{lock}` for {} minutes", .limit.as_secs() / 60)]
    Busy {
        /// The file it holds.
        lock: Utf8PathBuf,
        /// How long we waited.
        limit: Duration,
    },
    /// A program could not be started.
    #[error("failed to start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written, read or removed. The message names it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Where environments are kept: `$MLE_STAR_CACHE`, else `mle-star` in the user's cache.
pub fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Result<Utf8PathBuf, VenvError> {
    let folder = |name: &str| {
        let path = Utf8PathBuf::from_os_string(variable(name)?).ok()?;
        (!path.as_str().is_empty()).then_some(path)
    };
    // The standard for these folders has relative ones ignored.
    let standard = || folder("XDG_CACHE_HOME").filter(|it| it.is_absolute());
    let home = || folder("HOME").map(|home| home.join(".cache"));
    match folder("MLE_STAR_CACHE") {
        Some(own) => Ok(camino::absolute_utf8(own)?),
        None => Ok(standard().or_else(home).ok_or(VenvError::NoCache)?.join("mle-star")),
    }
}

/// The interpreter of an environment with the pinned packages, made below `cache` if need be.
pub async fn provide_standard(cache: &Utf8Path, tell: &Tell<'_>) -> Result<Utf8PathBuf, VenvError> {
    let base = machine::interpreter(None).await?;
    Venv::for_packages(cache, base, Packages::standard()).provide(tell).await
}

/// Whether an interpreter below `cache` belongs to an environment that is not complete.
pub fn is_half_made(cache: &Utf8Path, python: &Utf8Path) -> bool {
    let within = python.strip_prefix(cache.join("python")).ok();
    let name = within.and_then(|path| path.iter().next());
    name.is_some_and(|name| !cache.join("python").join(name).join(READY).is_file())
}

impl Packages {
    /// The pinned set.
    pub fn standard() -> Self {
        Self { pinned: PINNED.lines().filter_map(Pinned::parse).collect(), extra: Vec::new() }
    }

    /// Nothing at all.
    pub fn none() -> Self {
        Self { pinned: Vec::new(), extra: Vec::new() }
    }

    /// These and more. Who names a pinned package means another version of it.
    pub fn with(mut self, extra: &[String]) -> Result<Self, VenvError> {
        for requirement in extra.iter().map(|it| it.trim()) {
            // Anything else could be an option of the installer, or several lines.
            let named = requirement.starts_with(|it: char| it.is_ascii_alphanumeric());
            if !named || requirement.contains(char::is_control) {
                return Err(VenvError::Requirement { requirement: requirement.to_owned() });
            }
            let name = name_of(requirement);
            self.pinned.retain(|pinned| name_of(&pinned.requirement) != name);
            self.extra.push(requirement.to_owned());
        }
        self.extra.sort();
        self.extra.dedup();
        Ok(self)
    }

    /// As a file of requirements. What is most likely to be mistaken comes first. The pinned ones
    /// are only ever installed ready-made: not every machine has a compiler.
    fn requirements(&self) -> String {
        let mut names: Vec<_> = self.pinned.iter().map(|it| name_of(&it.requirement)).collect();
        names.dedup();
        let ready_made = names.into_iter().map(|name| format!("--only-binary {name}"));
        let pinned = self.pinned.iter().map(|it| it.requirement.clone());
        let lines = ready_made.chain(self.extra.iter().cloned()).chain(pinned);
        lines.map(|line| line + "\n").collect()
    }

    /// What must load. What a task adds is not tried: a module's name need not be its package's.
    fn modules(&self) -> Vec<&str> {
        let mut modules: Vec<&str> =
            self.pinned.iter().filter_map(|it| it.module.as_deref()).collect();
        modules.dedup();
        modules
    }

    /// How many are named. A pinned package may have several lines, of which one counts.
    fn count(&self) -> usize {
        let mut names: Vec<_> = self.pinned.iter().map(|it| name_of(&it.requirement)).collect();
        names.dedup();
        names.len() + self.extra.len()
    }
}

impl Pinned {
    fn parse(line: &str) -> Option<Self> {
        let (requirement, comment) = line.split_once('#').unwrap_or((line, ""));
        let requirement = requirement.trim().to_owned();
        let module = comment.trim().strip_prefix("import ").map(|it| it.trim().to_owned());
        (!requirement.is_empty()).then_some(Self { requirement, module })
    }
}

/// The normalised name in a requirement such as `Scikit_Learn[extra]>=1; python_version > "3"`.
fn name_of(requirement: &str) -> String {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let end = requirement.find(|it| !is_part(it)).unwrap_or(requirement.len());
    machine::normalised(requirement.get(..end).unwrap_or(requirement))
}

impl Venv {
    /// The place below `cache` of the environment with `packages` for `base`.
    pub fn for_packages(cache: &Utf8Path, base: Interpreter, packages: Packages) -> Self {
        // Someone's own environment, or a link, is not what counts: it may be gone tomorrow.
        let path = base.path.canonicalize_utf8().unwrap_or(base.path);
        let base = Interpreter { path, ..base };
        let Interpreter { path, version } = &base;
        let requirements = packages.requirements();
        let recipe = format!("format {FORMAT}\npython {version} {path}\n{requirements}");
        let digest = blake3::hash(recipe.as_bytes()).to_hex();
        let name = format!("{version}-{}", digest.get(..16).unwrap_or(&digest));
        let folder = cache.join("python").join(name);
        Self { folder, base, packages, recipe, uv: "uv".into(), limit: LIMIT }
    }

    /// Where it is, or will be.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Its interpreter.
    pub fn python(&self) -> Utf8PathBuf {
        self.folder.join("bin/python")
    }

    /// What it takes to make it, in words.
    pub fn effort(&self) -> &'static str {
        if self.packages.pinned.is_empty() { "once" } else { EFFORT }
    }

    /// Whether it is complete.
    pub fn is_ready(&self) -> bool {
        let made = fs::read_to_string(self.folder.join(READY));
        made.is_ok_and(|recipe| recipe == self.recipe) && self.python().is_file()
    }

    /// Makes it unless it is there, and gives its interpreter. Dropping the future stops it.
    pub async fn provide(&self, tell: &Tell<'_>) -> Result<Utf8PathBuf, VenvError> {
        if !self.is_ready() {
            let lock = self.lock(tell).await?;
            if !self.is_ready() {
                let began = Instant::now();
                let folder = self.folder.parent().unwrap_or(&self.folder);
                let deadline = began + self.limit;
                let tool = Tool { lock: &lock, tell, folder, limit: self.limit, deadline };
                self.make(&tool).await.map_err(|error| self.explained(error))?;
                let seconds = began.elapsed().as_secs();
                tell(&format!("the Python environment is ready after {seconds} s"));
            }
        }
        Ok(self.python())
    }

    /// Waits until nobody else makes this environment.
    async fn lock(&self, tell: &Tell<'_>) -> Result<std::fs::File, VenvError> {
        let path = Utf8PathBuf::from(format!("{}.lock", self.folder));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut options = fs::OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).open(&path)?;
        let file = file.into_parts().0;
        let waiting = async {
            let mut said = false;
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(std::fs::TryLockError::WouldBlock) if said => {}
                    Err(std::fs::TryLockError::WouldBlock) => {
                        tell("waiting for another process that makes the Python environment");
                        said = true;
                    }
                    Err(std::fs::TryLockError::Error(error)) => {
                        let text = format!("failed to lock `{path}`: {error}");
                        return Err(VenvError::Io(io::Error::new(error.kind(), text)));
                    }
                }
                sleep(LOOK).await;
            }
        };
        match timeout(self.limit, waiting).await {
            Ok(locked) => locked.map(|()| file),
            Err(_) => Err(VenvError::Busy { lock: path, limit: self.limit }),
        }
    }

    async fn make(&self, tool: &Tool<'_>) -> Result<(), VenvError> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?; // the remains of an attempt that was interrupted
        }
        tool.tell(&format!("making a Python environment in {} ({})", self.folder, self.effort()));
        let maker = Maker::find(&self.uv).await;
        let requirements = self.folder.join("requirements.txt");

        let create = maker.create(&self.base.path, &self.folder);
        let created = tool.run(&create).await?;
        if let Err(complaint) = created {
            return Err(complaint.about_creation(&self.base));
        }
        fs::write(&requirements, self.packages.requirements())?;
        let count = self.packages.count();
        if count > 0 {
            tool.tell(&format!("installing {count} Python packages with {maker}"));
            let install = maker.install(&self.python(), &requirements);
            let installed = tool.run(&install).await?;
            if let Err(complaint) = installed {
                return Err(complaint.about_packages(&self.base, install));
            }
        }
        let import = tool::import(&self.python(), &self.packages.modules());
        let imported = tool.run(&import).await?;
        imported.map_err(Complaint::about_modules)?;
        Ok(self.mark()?)
    }

    /// Says that the environment is complete, in a way that a crash cannot leave half said.
    fn mark(&self) -> io::Result<()> {
        let unfinished = self.folder.join("ready.tmp");
        let mut file = fs::File::create(&unfinished)?;
        file.write_all(self.recipe.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, self.folder.join(READY))?;
        fs::File::open(&self.folder)?.sync_all()
    }

    /// A full disk shows itself in many places, but is always the same trouble.
    fn explained(&self, error: VenvError) -> VenvError {
        let full = match &error {
            VenvError::Io(error) => error.kind() == io::ErrorKind::StorageFull,
            VenvError::NoVenv { detail, .. }
            | VenvError::Install { detail, .. }
            | VenvError::Broken { detail, .. } => detail.contains("No space left on device"),
            VenvError::Interpreter(_)
            | VenvError::NoCache
            | VenvError::Requirement { .. }
            | VenvError::NoSuchPackage { .. }
            | VenvError::Conflict { .. }
            | VenvError::Fetch { .. }
            | VenvError::DiskFull { .. }
            | VenvError::TimedOut { .. }
            | VenvError::Busy { .. }
            | VenvError::Start { .. } => false,
        };
        if full { VenvError::DiskFull { folder: self.folder.clone() } } else { error }
    }
}

#[cfg(test)]
mod tests;
