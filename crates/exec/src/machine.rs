//! What there is to compute with: the interpreter, its packages, cores, memory and devices.
//!
//! Found once and written into prompts, so that generated code fits the machine it will run on.

mod gpu;

use std::io;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::timeout;

use crate::ExecError;
use crate::environment::environment;
use crate::room::{is_passing, starved, when_there_is_room};

pub use gpu::{Gpu, GpuInfo, detect_gpu_info};

/// The oldest Python that runs the scripts.
const OLDEST: (u32, u32) = (3, 10);
/// How many packages are listed; the list becomes part of prompts.
const MOST_PACKAGES: usize = 400;
/// How long an interpreter may take to answer. One on a network file system is slow at first.
const ANSWER: Duration = Duration::from_secs(60);

/// Names the interpreter behind a shim and its version. It imports nothing that a file in the
/// current folder could stand in for, and even Python 2 understands it.
const WHO_ARE_YOU: &str = "\
import sys
print('%d.%d.%d' % sys.version_info[:3])
print(sys.executable)
";

/// Lists the installed packages; one with damaged metadata is left out.
const WHAT_IS_INSTALLED: &str = "\
import importlib.metadata, json
found = []
for distribution in importlib.metadata.distributions():
    try:
        name, version = distribution.metadata['Name'], distribution.version
    except Exception:
        continue
    if isinstance(name, str) and isinstance(version, str):
        found.append({'name': name, 'version': version})
print(json.dumps(found))
";

/// Packages that matter to a solution: where not all can be listed, these are.
const WELL_KNOWN: [&str; 36] = [
    "accelerate",
    "albumentations",
    "autogluon",
    "catboost",
    "category-encoders",
    "datasets",
    "fastai",
    "imbalanced-learn",
    "implicit",
    "jax",
    "keras",
    "librosa",
    "lightgbm",
    "numpy",
    "opencv-python",
    "opencv-python-headless",
    "optuna",
    "pandas",
    "pillow",
    "polars",
    "pytorch-lightning",
    "scikit-image",
    "scikit-learn",
    "scipy",
    "sentence-transformers",
    "spacy",
    "statsmodels",
    "tensorflow",
    "timm",
    "torch",
    "torch-geometric",
    "torchaudio",
    "torchvision",
    "transformers",
    "ultralytics",
    "xgboost",
];

/// The facts of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The interpreter itself, not a shim that looks for it again at each start.
    pub python: String,
    /// Its version, such as `3.12.1`.
    pub python_version: String,
    /// What scripts can import, sorted by name.
    pub packages: Vec<Package>,
    /// How many processor cores we may use.
    pub cores: usize,
    /// How much memory we may use; 0 if the system does not say.
    pub memory_bytes: u64,
    /// The graphics cards.
    pub gpus: GpuInfo,
}

/// An installed Python package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Its normalised name, such as `scikit-learn`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A Python that answers and is young enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// The interpreter itself, not a shim.
    pub path: Utf8PathBuf,
    /// Its version, such as `3.12.1`.
    pub version: String,
}

/// Finds out what there is.
///
/// A configured interpreter must work: nothing else is tried in its place. Without one, `python3`
/// and `python` are, in that order.
pub async fn detect(python: Option<&Utf8Path>) -> Result<Machine, ExecError> {
    let Interpreter { path, version } = interpreter(python).await?;
    let packages = installed(&path).await?;
    Ok(Machine {
        python: path.into_string(),
        python_version: version,
        packages,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory_bytes(),
        gpus: detect_gpu_info().await,
    })
}

/// Finds the interpreter that [`detect`] would find.
pub async fn interpreter(python: Option<&Utf8Path>) -> Result<Interpreter, ExecError> {
    let candidates = match python {
        Some(configured) => vec![configured],
        None => vec![Utf8Path::new("python3"), Utf8Path::new("python")],
    };
    find_interpreter(&candidates).await
}

/// The first candidate that answers and is young enough: its real path and its version.
async fn find_interpreter(candidates: &[&Utf8Path]) -> Result<Interpreter, ExecError> {
    let mut tried = Vec::new();
    let mut too_old = None;
    for candidate in candidates {
        // The environment is ours here: a shim needs it to find what it stands for.
        match answer(Command::new(candidate).args(["-c", WHO_ARE_YOU]), ANSWER).await {
            // It may well be a Python, and the next one would not start either.
            Err(Silence::NoRoom(source)) => {
                let program = (*candidate).to_owned();
                return Err(ExecError::Spawn { program, source });
            }
            Err(reason) => tried.push(format!("`{candidate}` {reason}")),
            Ok(lines) => match introduction(&lines) {
                None => tried.push(format!("`{candidate}` does not answer like python")),
                Some((version, path)) if is_young_enough(version) => {
                    let (path, version) =
                        (path.unwrap_or(candidate).to_owned(), version.to_owned());
                    return Ok(Interpreter { path, version });
                }
                Some((version, path)) => {
                    let path = path.unwrap_or(candidate).to_owned();
                    too_old.get_or_insert((path, version.to_owned()));
                }
            },
        }
    }
    match too_old {
        Some((path, version)) => Err(ExecError::PythonTooOld { path, version }),
        None => Err(ExecError::NoPython { tried }),
    }
}

/// The version and the path in an answer to [`WHO_ARE_YOU`]; a few builds do not know their path.
fn introduction(lines: &str) -> Option<(&str, Option<&Utf8Path>)> {
    let (version, path) = lines.trim().split_once('\n').unwrap_or((lines.trim(), ""));
    let version = version.trim_end();
    let known = !version.is_empty() && version.split('.').all(|part| part.parse::<u32>().is_ok());
    let path = Utf8Path::new(path);
    known.then_some((version, path.is_absolute().then_some(path)))
}

fn is_young_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST
}

/// The packages that scripts see.
///
/// Asked with a script's environment: what is installed below our home folder does not count,
/// because a script has another one.
async fn installed(python: &Utf8Path) -> Result<Vec<Package>, ExecError> {
    let found = ask_as_script(python, WHAT_IS_INSTALLED).await?;
    let found = serde_json::from_str(&found).map_err(|error| ExecError::PythonBroken {
        path: python.to_owned(),
        detail: error.to_string(),
    })?;
    Ok(listed(found))
}

/// What `program` prints in the environment of a script.
async fn ask_as_script(python: &Utf8Path, program: &str) -> Result<String, ExecError> {
    let nowhere = Utf8Path::new("/nonexistent");
    let mut query = Command::new(python);
    query
        .args(["-c", program])
        .current_dir("/") // python imports from the current folder first
        .env_clear()
        .envs(environment(std::env::vars_os(), nowhere, None, None));
    let broken = |detail| ExecError::PythonBroken { path: python.to_owned(), detail };
    answer(&mut query, ANSWER).await.map_err(|silence| silence.of(python, broken))
}

/// Where an interpreter's files are: programs, modules, and what they are linked with.
const WHERE_IS_EVERYTHING: &str = "\
import sys, sysconfig
places = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path}
places.update(sysconfig.get_paths().values())
places.add(sysconfig.get_config_var('LIBDIR') or '')
for place in sorted(places):
    print(place)
";

/// The folders and files that a script needs to read in order to use `python`.
///
/// Asked with a script's environment, like [`installed`]. The root and the home folder are left out
/// if they are named: they hold far more than a Python.
pub(crate) async fn folders_of(python: &Utf8Path) -> Result<Vec<Utf8PathBuf>, ExecError> {
    let places = ask_as_script(python, WHERE_IS_EVERYTHING).await?;
    let home = std::env::var("HOME").unwrap_or_default();
    let mut folders: Vec<Utf8PathBuf> = places
        .lines()
        .map(Utf8PathBuf::from)
        .filter(|place| place.is_absolute() && place.parent().is_some() && *place != home)
        .collect();
    // The interpreter may be a link, or a copy outside its prefix.
    folders.push(python.to_owned());
    folders.extend(python.canonicalize_utf8().ok());
    Ok(folders)
}

/// Runs a program of ours with `python`, as whoever started us and without a sandbox, and gives what
/// it prints.
pub async fn run_program(
    python: &Utf8Path,
    program: &str,
    arguments: &[&str],
) -> Result<String, ExecError> {
    let mut command = Command::new(python);
    command.args(["-c", program]).args(arguments).current_dir("/");
    let failed = |reason| ExecError::NotRun { reason };
    answer(&mut command, ANSWER).await.map_err(|silence| silence.of(python, failed))
}

/// Normalised names, each once, sorted, and no more than fit.
fn listed(found: Vec<Package>) -> Vec<Package> {
    let mut packages: Vec<Package> = found
        .into_iter()
        .map(|package| Package { name: normalised(&package.name), ..package })
        .collect();
    // Python reports what it would import first; a stable sort keeps that one first.
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    packages.dedup_by(|later, earlier| later.name == earlier.name);
    if packages.len() > MOST_PACKAGES {
        packages.sort_by_key(|package| !WELL_KNOWN.contains(&package.name.as_str()));
        packages.truncate(MOST_PACKAGES);
        packages.sort();
    }
    packages
}

/// The name as package indexes compare it: lowercase, and one dash for any run of `-`, `_`, `.`.
pub(crate) fn normalised(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// The machine's memory, or less where a container was given less.
pub fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    // By the second and by the first version of control groups.
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let container = files.iter().find_map(|file| fs::read_to_string(file).ok());
    let container = container.and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(container).min().unwrap_or(0)
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Why a program printed nothing of use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Silence {
    /// There was no room for another process, for a quarter of a minute.
    #[error("could not be started: {0}")]
    NoRoom(io::Error),
    #[error("could not be started: {0}")]
    NotStarted(io::Error),
    #[error("did not answer within {} s", .0.as_secs())]
    TooLate(Duration),
    /// It failed, with this as the last line of its complaint.
    #[error("ended with {0}: {1}")]
    Failed(ExitStatus, String),
}

impl Silence {
    /// The error that says it of `program`: nothing is wrong with one that had no room.
    fn of(self, program: &Utf8Path, otherwise: impl FnOnce(String) -> ExecError) -> ExecError {
        match self {
            Self::NoRoom(source) => ExecError::Spawn { program: program.to_owned(), source },
            Self::NotStarted(_) | Self::TooLate(_) | Self::Failed(..) => {
                otherwise(self.to_string())
            }
        }
    }
}

/// What a trusted program prints, or why it printed nothing of use.
pub(crate) async fn answer(query: &mut Command, limit: Duration) -> Result<String, Silence> {
    let query =
        query.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = when_there_is_room(|| query.spawn()).await.map_err(|error| {
        if is_passing(&error) { Silence::NoRoom(error) } else { Silence::NotStarted(error) }
    })?;
    let output = timeout(limit, child.wait_with_output()).await;
    let output = output.map_err(|_| Silence::TooLate(limit))?;
    let Output { status, stdout, stderr } = output.map_err(Silence::NotStarted)?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let complaint = [stdout, stderr].concat(); // some complain where others answer
    let complaint = String::from_utf8_lossy(&complaint);
    if let Some(error) = starved(&complaint) {
        return Err(Silence::NoRoom(error));
    }
    let last = complaint.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Err(Silence::Failed(status, last.unwrap_or("no message").to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package { name: name.to_owned(), version: version.to_owned() }
    }

    /// An executable that stands in for python.
    fn program(lines: &str) -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("python")).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        (dir, path)
    }

    #[tokio::test]
    async fn this_machine_has_a_python_that_starts_without_a_shim() {
        let machine = detect(None).await.unwrap();

        assert!(Utf8Path::new(&machine.python).is_absolute(), "{machine:?}");
        assert!(!machine.python.contains("/shims/"), "{machine:?}");
        assert!(is_young_enough(&machine.python_version), "{machine:?}");
        assert!(machine.packages.is_sorted() && machine.packages.len() <= MOST_PACKAGES);
        assert!(machine.cores > 0 && machine.memory_bytes > 1 << 20, "{machine:?}");
        assert_eq!(machine.gpus.gpu_count, machine.gpus.gpu_names.len());
        let again = detect(Some(Utf8Path::new(&machine.python))).await.unwrap();
        assert_eq!(again, machine);
    }

    #[tokio::test]
    async fn a_shim_is_replaced_by_what_it_stands_for() {
        let (_dir, shim) = program("exec python3 \"$@\"");
        assert_ne!(detect(Some(&shim)).await.unwrap().python, shim);
    }

    #[tokio::test]
    async fn a_configured_python_that_is_missing_is_not_replaced() {
        let error = detect(Some(Utf8Path::new("/nonexistent/python"))).await.unwrap_err();
        let ExecError::NoPython { tried } = error else { panic!("{error}") };
        let reason = "could not be started: No such file or directory (os error 2)";
        assert_eq!(tried, [format!("`/nonexistent/python` {reason}")]);
    }

    #[tokio::test]
    async fn a_program_that_is_not_python_is_named_with_its_complaint() {
        let (_dir, path) = program("echo 'what do you want?' >&2; exit 3");
        let error = detect(Some(&path)).await.unwrap_err();
        let reason = "ended with exit status: 3: what do you want?";
        assert_eq!(error.to_string(), format!("no usable python interpreter: `{path}` {reason}"));

        let (_dir, path) = program("echo hello");
        let error = detect(Some(&path)).await.unwrap_err();
        assert!(matches!(error, ExecError::NoPython { .. }), "{error}");
    }

    #[tokio::test]
    async fn an_old_python_is_refused_by_its_version() {
        let (_dir, path) = program("printf '3.9.18\\n/opt/python3.9\\n'");
        let error = detect(Some(&path)).await.unwrap_err();
        assert_eq!(error.to_string(), "python 3.9.18 at `/opt/python3.9` is older than 3.10");
        assert!(is_young_enough("3.10.0") && is_young_enough("4.0.0"));
        assert!(!is_young_enough("2.7.18"));
    }

    #[test]
    fn packages_are_normalised_sorted_and_listed_once() {
        let found = vec![package("Zope._interface", "1"), package("PyYAML", "6")];
        let found = [found, vec![package("pyyaml", "5")]].concat();
        assert_eq!(listed(found), [package("pyyaml", "6"), package("zope-interface", "1")]);
    }

    #[test]
    fn a_long_list_keeps_what_solutions_need() {
        let filler = (0..500).map(|number| package(&format!("a{number:03}"), "1"));
        let listed =
            listed(filler.chain([package("xgboost", "2"), package("torch", "2")]).collect());
        assert_eq!(listed.len(), MOST_PACKAGES);
        assert!(listed.is_sorted());
        assert!(listed.ends_with(&[package("torch", "2"), package("xgboost", "2")]));
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(total_memory("MemTotal:       16 kB\nMemFree: 1 kB\n"), Some(16 * 1024));
        assert_eq!(total_memory("nothing"), None);
    }
}
