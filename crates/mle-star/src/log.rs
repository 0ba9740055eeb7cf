//! `log.jsonl`: a line of JSON for all that is worth one, and the same in `log_file` if one is set.
//!
//! The lines are made from the records of the run by [`mle_star_view::log`]. A log that cannot be
//! written must not spoil the run: lines are lost then, and nothing else.

use std::convert::Infallible;
use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use jiff::Timestamp;
use mle_star_search::Run;
use mle_star_search::event::Record;
use mle_star_search::models::{LogLevel, PipelineConfig};
use mle_star_search::rundir::RunDir;
use mle_star_view::log::{Entry, Log, is_logged};
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// A file that lines are appended to.
#[derive(Debug)]
pub struct LogFile {
    file: fs_err::File,
    /// Whether the last line may be there in part only.
    is_torn: bool,
}

impl LogFile {
    /// Opens a file for more lines.
    pub fn open(path: &Utf8Path) -> std::io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        // A pipe that nobody reads must not hold up the run: without waiting, its lines are lost.
        let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let mut options = fs_err::OpenOptions::new();
        options.create(true).append(true).custom_flags(nonblocking);
        Ok(Self { file: options.open(path)?, is_torn: false })
    }

    /// Appends a line, unless that does not work.
    pub fn write(&mut self, entry: &impl Serialize) {
        let Ok(mut line) = serde_json::to_string(entry) else { return };
        line.push('\n');
        // What follows a line that is there in part begins a new one.
        if self.is_torn {
            line.insert(0, '\n');
        }
        // One call for a whole line: others may append to the same file.
        self.is_torn = self.file.write(line.as_bytes()).ok() != Some(line.len());
    }
}

/// The files that the log of a run goes to.
pub fn paths(dir: &RunDir, config: &PipelineConfig) -> Vec<Utf8PathBuf> {
    std::iter::once(dir.log()).chain(config.log_file.clone()).collect()
}

/// Opens the files that can be opened, and says what is wrong with the others.
pub fn open_all(dir: &RunDir, config: &PipelineConfig) -> (Vec<LogFile>, Vec<std::io::Error>) {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for path in paths(dir, config) {
        match LogFile::open(&path) {
            Ok(file) => files.push(file),
            Err(error) => errors.push(error),
        }
    }
    (files, errors)
}

/// Writes the log of a run while it goes on. What is left is written when it is dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    records: Receiver<Record>,
    log: Log,
    least: LogLevel,
    files: Vec<LogFile>,
}

impl Follower {
    pub(crate) fn of(run: &Run) -> Self {
        let config = &run.header().config;
        let (files, _) = open_all(run.dir(), config);
        let mut follower =
            Self { records: run.subscribe(), log: Log::default(), least: config.log_level, files };
        let before: Vec<Record> = mle_star_journal::read(&run.dir().journal()).unwrap_or_default();
        match before.as_slice() {
            [opened] => follower.note(opened), // a run that has just begun
            before => before.iter().for_each(|record| follower.log.skip(record)),
        }
        follower
    }

    /// Writes as records come, for ever.
    pub(crate) async fn follow(&mut self) -> Infallible {
        loop {
            match self.records.recv().await {
                Ok(record) => self.note(&record),
                Err(RecvError::Lagged(count)) => self.lost(count),
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Writes that the run has ended without a result.
    pub(crate) fn failed(&mut self, error: &dyn std::error::Error) {
        self.drain();
        let error = mle_star_exec::in_full(error);
        self.say(LogLevel::Error, "the run ended without a result", json!({ "error": error }));
    }

    fn note(&mut self, record: &Record) {
        for entry in self.log.entries(record) {
            if is_logged(entry.level, self.least) {
                self.files.iter_mut().for_each(|file| file.write(&entry));
            }
        }
    }

    fn lost(&mut self, count: u64) {
        self.say(LogLevel::Warning, "records were not logged", json!({ "count": count }));
    }

    fn say(&mut self, level: LogLevel, message: &str, fields: serde_json::Value) {
        let fields = fields.as_object().cloned().unwrap_or_default();
        let message = message.to_owned();
        let entry = Entry { time: Timestamp::now(), level, target: "mle_star", message, fields };
        if is_logged(level, self.least) {
            self.files.iter_mut().for_each(|file| file.write(&entry));
        }
    }

    fn drain(&mut self) {
        loop {
            match self.records.try_recv() {
                Ok(record) => self.note(&record),
                Err(TryRecvError::Lagged(count)) => self.lost(count),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_after_one_that_is_there_in_part_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("deep/log.jsonl");
        let mut file = LogFile::open(&path).unwrap();
        file.write(&json!({"a": 1}));
        file.is_torn = true;
        file.write(&json!({"b": 2}));
        file.write(&json!({"c": 3}));
        let text = fs_err::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"a\":1}\n\n{\"b\":2}\n{\"c\":3}\n");
    }

    #[test]
    fn a_full_disk_or_a_pipe_that_nobody_reads_loses_lines_and_nothing_else() {
        let mut file = LogFile::open(Utf8Path::new("/dev/full")).unwrap();
        file.write(&json!({"a": 1}));
        assert!(file.is_torn);
        let folder = tempfile::tempdir().unwrap();
        let pipe = Utf8Path::from_path(folder.path()).unwrap().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            pipe.as_std_path(),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(LogFile::open(&pipe).is_err());
    }
}
