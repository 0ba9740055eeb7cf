//! Looking at a run from outside: any run, at any moment.

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_journal::JournalError;
use mle_star_search::event::Record;
use mle_star_search::models::nearest;
use mle_star_search::rundir::{RunDir, write_whole};
use mle_star_view::report::{self, Extras};
use mle_star_view::{Condition, Overview, Work, plain, plain_json};

use crate::RunError;

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

/// What the records of a run come to, and how it is doing.
pub fn look_at(records: &[Record], work: Work) -> (Overview, Condition) {
    let mut overview = Overview::of(records);
    let condition = overview.settle(work);
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
    /// A report of the run in `dir` as it is now. Whoever has just worked on it says that it rests.
    pub fn of(dir: &RunDir, work: Work) -> Result<Self, ReportError> {
        let records = mle_star_journal::read(&dir.journal())?;
        let (overview, condition) = look_at(&records, work);
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
    let written = Report::of(dir, Work::Rests).and_then(|report| report.write(dir));
    if let Err(error) = written {
        let error = plain(&mle_star_exec::in_full(&error));
        tracing::warn!(error, "no report was written");
    }
}
