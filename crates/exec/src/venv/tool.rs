//! The programs that make environments, and how they are run.

use std::collections::VecDeque;
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::join3;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

use super::complaint::Complaint;
use super::{Tell, VenvError};
use crate::machine;
use crate::room::when_there_is_room;

/// How many of a program's last lines are kept, for the case that it fails.
const KEPT_LINES: usize = 60;
/// From how many megabytes on a download is worth a line.
const LARGE: f64 = 10.0;
/// How long `uv` may take to say that it is there.
const ANSWER: Duration = Duration::from_secs(10);
/// What would make a program look at, or install into, another place than the environment. All
/// else passes: proxies, certificates, the index.
const NOT_PASSED: [&str; 7] =
    ["PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"];

/// Imports modules one by one, and names the first that does not load.
const IMPORT: &str = "\
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        sys.exit('%s: %s: %s' % (name, type(error).__name__, error))
";

/// What makes environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Maker {
    Uv(Utf8PathBuf),
    Pip,
}

impl Maker {
    /// `uv`, if it is there and works: a shim may stand for nothing.
    pub(super) async fn find(uv: &Utf8Path) -> Self {
        match machine::answer(Command::new(uv).arg("--version"), ANSWER).await {
            Ok(_) => Self::Uv(uv.to_owned()),
            Err(_) => Self::Pip,
        }
    }

    /// The command that makes an empty environment.
    pub(super) fn create(&self, base: &Utf8Path, folder: &Utf8Path) -> Vec<String> {
        match self {
            Self::Uv(uv) => words(&[uv.as_str(), "venv", "--python", base.as_str()], folder),
            Self::Pip => words(&[base.as_str(), "-m", "venv"], folder),
        }
    }

    /// The command that fills it. Both compile bytecode: a script cannot, because what is not its
    /// own is read-only to it, and would compile every import anew.
    pub(super) fn install(&self, python: &Utf8Path, requirements: &Utf8Path) -> Vec<String> {
        let python = python.as_str();
        let uv = ["pip", "install", "--compile-bytecode", "--python", python, "-r"];
        let pip = ["-m", "pip", "install", "--compile", "--no-input", "-r"];
        match self {
            Self::Uv(program) => words(&[&[program.as_str()], &uv[..]].concat(), requirements),
            Self::Pip => words(&[&[python], &pip[..]].concat(), requirements),
        }
    }
}

impl std::fmt::Display for Maker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uv(_) => "uv",
            Self::Pip => "pip",
        })
    }
}

/// The command that sees whether `modules` load.
pub(super) fn import(python: &Utf8Path, modules: &[&str]) -> Vec<String> {
    let start = [python.as_str(), "-I", "-c", IMPORT];
    start.into_iter().chain(modules.iter().copied()).map(str::to_owned).collect()
}

fn words(start: &[&str], last: &Utf8Path) -> Vec<String> {
    start.iter().copied().chain([last.as_str()]).map(str::to_owned).collect()
}

/// Runs programs on behalf of whoever holds the lock.
pub(super) struct Tool<'a> {
    pub(super) lock: &'a File,
    pub(super) tell: &'a Tell<'a>,
    /// Where programs start. Python looks for modules there, so it must not be anyone's folder.
    pub(super) folder: &'a Utf8Path,
    /// How long all of them together may take, and when that is over.
    pub(super) limit: Duration,
    pub(super) deadline: Instant,
}

impl Tool<'_> {
    pub(super) fn tell(&self, line: &str) {
        (self.tell)(line);
    }

    /// Runs a command to its end: `Ok(Err(…))` is what it complained about.
    pub(super) async fn run(&self, words: &[String]) -> Result<Result<(), Complaint>, VenvError> {
        let (program, arguments) = words.split_first().map_or(("", words), |(it, rest)| (it, rest));
        let failed = |source| VenvError::Start { program: program.to_owned(), source };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder)
            .env("NO_COLOR", "1")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("PIP_PROGRESS_BAR", "off")
            // The lock file is empty, so this is an empty input. And while a program has it open
            // the lock is held, even if we are killed and the program goes on without us.
            .stdin(Stdio::from(self.lock.try_clone()?))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        NOT_PASSED.iter().for_each(|name| {
            command.env_remove(name);
        });
        let mut child = when_there_is_room(|| command.spawn()).await.map_err(failed)?;
        // Killing the child alone is not enough: what it started would go on.
        let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (mut said, mut complained) = (VecDeque::new(), VecDeque::new());
        let all = join3(self.read(out, &mut said), self.read(err, &mut complained), child.wait());
        let ((), (), status) = timeout_at(self.deadline, all)
            .await
            .map_err(|_| VenvError::TimedOut { limit: self.limit, command: words.to_vec() })?;
        let status = status?;
        group.spare();
        if status.success() {
            return Ok(Ok(()));
        }
        said.append(&mut complained);
        Ok(Err(Complaint { lines: said.into(), status: status.to_string() }))
    }

    /// Reads a stream to its end, passes on what people want to know, and keeps its last lines.
    async fn read(&self, stream: Option<impl AsyncRead + Unpin>, last: &mut VecDeque<String>) {
        let Some(stream) = stream else { return };
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
            let text = without_passwords(String::from_utf8_lossy(&line).trim_end());
            if let Some(news) = news(&text) {
                self.tell(&news);
            }
            if last.len() == KEPT_LINES {
                last.pop_front();
            }
            last.push_back(text);
            line.clear();
        }
    }
}

/// A process group that is killed unless its leader ended by itself.
struct Group(Option<Pid>);

impl Group {
    fn spare(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            kill_process_group(group, Signal::KILL).ok(); // all may be gone by now
        }
    }
}

/// A line in which addresses name no user and no password: that of an index may have both.
pub(super) fn without_passwords(line: &str) -> String {
    let mut parts = line.split("://");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', ' ', '`', '"', '\'', ')']).unwrap_or(part.len());
        let (host, rest) = part.split_at(end);
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        text.extend(["://", host, rest]);
    }
    text
}

/// What is worth telling in a line of an installer: large downloads, and that unpacking began.
pub(super) fn news(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(file) = line.strip_prefix("Downloading ") {
        let (name, size) = file.rsplit_once(" (")?;
        let size = size.strip_suffix(')')?;
        let number = size.trim_end_matches(|it: char| it.is_ascii_alphabetic()).trim_end();
        let is_large = match size.get(number.len()..).unwrap_or_default().trim_start() {
            "MB" | "MiB" => number.parse().is_ok_and(|number: f64| number >= LARGE),
            unit => unit == "GB" || unit == "GiB",
        };
        let name = name.rsplit('/').next().unwrap_or(name);
        let name = if name.ends_with(".whl") { name.split("-cp").next()? } else { name };
        let name = name.split("-py").next()?;
        return is_large.then(|| format!("downloading {name} ({size})"));
    }
    if line.starts_with("Installing collected packages") {
        return Some("unpacking and compiling".to_owned());
    }
    let package = line.strip_prefix("Building wheel for ")?;
    Some(format!("building {}", package.split_whitespace().next()?))
}
