//! What a supervisor is told, and what it says in the end: two files in a folder of the job.

use std::io::{self, Write};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::sandbox::Confinement;
use crate::{Job, Outcome};

const SPEC: &str = "spec.json";
const REPORT: &str = "exit.json";
const LOCK: &str = "lock";
/// What the supervisor itself complains about.
const LOG: &str = "supervisor.log";

/// Everything a supervisor needs to know of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) python: Utf8PathBuf,
    pub(crate) script: String,
    pub(crate) filename: String,
    pub(crate) workspace: Utf8PathBuf,
    pub(crate) data_dir: Utf8PathBuf,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) time_limit: Duration,
    pub(crate) limits: Limits,
    pub(crate) cores: Vec<usize>,
    pub(crate) confinement: Confinement,
    /// The process that waits for the result and writes it down itself.
    pub(crate) awaited_by: u32,
}

/// What a supervisor says in the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there is one, and the large variant is the usual")]
pub(crate) enum Report {
    /// The script ran.
    Ended(Outcome),
    /// Somebody stopped it before it ended.
    Cancelled,
    /// The disk is too full, and not because of the script.
    NoRoom {
        /// The bytes that are free.
        free: u64,
        /// The bytes that must be.
        needed: u64,
    },
    /// It could not be run.
    Failed {
        /// Why.
        reason: String,
    },
}

/// The folder of a job, outside the workspace and out of the script's reach. The same folder is
/// the same job: it runs once, whoever asks and however often.
#[derive(Debug, Clone)]
pub(crate) struct Records(Utf8PathBuf);

/// Whether a job may have been begun before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    New,
    Old,
}

/// Held by the supervisor of a job for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock ends with the file")] std::fs::File);

impl Records {
    pub(crate) fn at(folder: impl Into<Utf8PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Makes the folder, and says whether anybody can have used it before.
    pub(crate) fn open(&self) -> io::Result<Age> {
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::create_dir(&self.0) {
            Ok(()) => Ok(Age::New),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Age::Old),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn folder(&self) -> &Utf8Path {
        &self.0
    }

    pub(crate) fn log(&self) -> Utf8PathBuf {
        self.0.join(LOG)
    }

    pub(crate) fn stream(&self, name: &str) -> Utf8PathBuf {
        self.0.join(name)
    }

    pub(crate) fn spec(&self) -> io::Result<Spec> {
        read(&self.0.join(SPEC))
    }

    pub(crate) fn write_spec(&self, spec: &Spec) -> io::Result<()> {
        // After a loss of power it may be missing. Then the job just runs again.
        write(&self.0.join(SPEC), spec, Lasts::UntilPowerIsLost)
    }

    /// What the supervisor said; nothing while the job has not ended.
    pub(crate) fn report(&self) -> io::Result<Option<Report>> {
        match read(&self.0.join(REPORT)) {
            Ok(report) => Ok(Some(report)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says how it went. Whoever waits for it syncs its own record; if nobody does, this is the only
    /// one.
    pub(crate) fn write_report(&self, report: &Report, spec: &Spec) -> io::Result<()> {
        let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid().cast_unsigned());
        let lasts = match parent == Some(spec.awaited_by) {
            true => Lasts::UntilPowerIsLost,
            false => Lasts::ForGood,
        };
        write(&self.0.join(REPORT), report, lasts)
    }

    /// Forgets what was said, so that the job runs again.
    pub(crate) fn forget_report(&self) -> io::Result<()> {
        match fs::remove_file(self.0.join(REPORT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Waits until no supervisor works on the job, and keeps others from it. Leaves our number in
    /// the file, for those who want to stop us.
    pub(crate) fn lock(&self) -> io::Result<Lock> {
        let mut file = self.lock_file()?;
        file.lock()?;
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        Ok(Lock(file))
    }

    /// The number of the supervisor that works on the job, if there is one.
    pub(crate) fn supervisor(&self) -> io::Result<Option<i32>> {
        match self.lock_file()?.try_lock() {
            Ok(()) => Ok(None),
            Err(std::fs::TryLockError::WouldBlock) => {
                let number = fs::read_to_string(self.0.join(LOCK))?;
                // To signal 1 or a number below 0 would be to signal far more than a supervisor.
                let number = number.trim().parse().ok().filter(|&number| number > 1);
                Ok(Some(number.unwrap_or_default()))
            }
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_file(&self) -> io::Result<std::fs::File> {
        let options =
            std::fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).clone();
        options.open(self.0.join(LOCK))
    }
}

impl Spec {
    pub(crate) fn is_for(&self, job: &Job) -> bool {
        self.script == job.script
    }
}

fn read<T: DeserializeOwned>(file: &Utf8Path) -> io::Result<T> {
    let text = fs::read(file)?;
    serde_json::from_slice(&text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{file}: {error}")))
}

/// How long a file is sure to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// Waiting for the disk takes a good part of what it takes to start a script.
    UntilPowerIsLost,
    ForGood,
}

/// Either the whole file is there afterwards, or the one that was there before.
fn write(file: &Utf8Path, value: &impl Serialize, lasts: Lasts) -> io::Result<()> {
    let part = file.with_extension("part");
    let mut written = fs::File::create(&part)?;
    written.write_all(&serde_json::to_vec(value)?)?;
    if lasts == Lasts::ForGood {
        written.sync_all()?;
    }
    fs::rename(&part, file)
}
