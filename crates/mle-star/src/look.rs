//! Looking at a run from outside: any run, at any moment.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_journal::JournalError;
use mle_star_search::event::Record;
use mle_star_search::models::nearest;
use mle_star_search::rundir::{RunDir, write_whole};
use mle_star_view::report::{self, Extras};
use mle_star_view::{Overview, PhaseOutcome, State, plain, plain_json};

use crate::RunError;

/// How a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// There is nothing in its journal.
    Empty,
    /// Somebody works on it.
    Running,
    /// It has not reached its end, and nobody works on it.
    Stopped,
    /// It has ended without a solution.
    Failed,
    /// It has reached its end.
    Finished,
}

/// Who may be working on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// Whoever holds its journal.
    Anybody,
    /// Nobody any more: we did, and have ended.
    Nobody,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file cannot be written. The message names it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The report itself.
    #[error(transparent)]
    Report(#[from] report::ReportError),
}

/// The records of a run.
pub fn read(dir: &RunDir) -> Result<Vec<Record>, RunError> {
    mle_star_journal::read(&dir.journal())
        .map_err(|error| RunError::Open { run: dir.root().to_owned(), source: error.into() })
}

/// The run that may have been meant by `path`: the one whose name is nearest, of those beside it and
/// of those in `runs`.
pub fn nearest_run(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let name = path.file_name()?;
    let beside = match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    };
    [beside, Utf8Path::new("runs")].into_iter().find_map(|folder| {
        let runs = folder.read_dir_utf8().ok()?.flatten();
        let mut names: Vec<String> = runs
            .filter(|entry| RunDir::at(entry.path()).journal().is_file())
            .map(|entry| entry.file_name().to_owned())
            .collect();
        names.sort();
        let near = nearest(name, names.iter().map(String::as_str))?;
        Some(folder.strip_prefix(".").unwrap_or(folder).join(near))
    })
}

/// What the records of a run come to.
pub fn look_at(records: &[Record], dir: &RunDir, worker: Worker) -> (Overview, Condition) {
    let mut overview = Overview::of(records);
    let is_running = match worker {
        Worker::Anybody => mle_star_journal::is_locked(&dir.journal()).unwrap_or(false),
        Worker::Nobody => false,
    };
    if !is_running {
        overview.stop();
    }
    let has_failed = overview.phases().iter().any(|it| it.outcome == PhaseOutcome::Failed);
    let condition = match overview.state() {
        State::Finished => Condition::Finished,
        State::Unfinished if is_running => Condition::Running,
        State::Unfinished if has_failed => Condition::Failed,
        State::Unfinished => Condition::Stopped,
        State::Empty => Condition::Empty,
    };
    (overview, condition)
}

/// A report of a run, as a page and as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The page.
    pub html: String,
    /// The same as Markdown.
    pub markdown: String,
}

impl Report {
    /// A report of the run in `dir` as it is now.
    pub fn of(dir: &RunDir, worker: Worker) -> Result<Self, ReportError> {
        let records = mle_star_journal::read(&dir.journal())?;
        let (overview, condition) = look_at(&records, dir, worker);
        let script = overview
            .submission
            .as_ref()
            .and_then(|_| fs_err::read_to_string(dir.root().join("final/solution.py")).ok());
        let extras = Extras { run: dir.root().to_string(), state: condition.to_string(), script };
        Ok(Self {
            html: report::html(&overview, &extras)?,
            markdown: report::markdown(&overview, &extras)?,
        })
    }

    /// Puts it where people look for it.
    pub fn write(&self, dir: &RunDir) -> Result<(), ReportError> {
        write_whole(&dir.report("html"), self.html.as_bytes())?;
        write_whole(&dir.report("md"), self.markdown.as_bytes())?;
        Ok(())
    }
}

/// The overview of a run as JSON that a terminal can be shown.
pub fn json(overview: &Overview) -> serde_json::Result<String> {
    Ok(plain_json(&serde_json::to_string_pretty(&overview.whole())?))
}

/// Writes the report of a run that has ended, one way or another. A report that cannot be written
/// must not spoil the run.
pub fn report_the_end(dir: &RunDir) {
    let written = Report::of(dir, Worker::Nobody).and_then(|report| report.write(dir));
    if let Err(error) = written {
        let error = plain(&mle_star_exec::in_full(&error));
        tracing::warn!(error, "no report was written");
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Empty => "empty",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Finished => "finished",
        })
    }
}
