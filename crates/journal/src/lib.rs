//! An append-only file of JSON records, one per line, that survives a crash at any byte.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = &camino::Utf8PathBuf::try_from(dir.path().join("journal.jsonl"))?;
//! use mle_star_journal::Journal;
//!
//! let mut journal = Journal::create(path)?;
//! journal.append(&"first")?;
//! drop(journal); // or lose power: the record is on disk
//!
//! let (_journal, records) = Journal::open::<String>(path)?;
//! assert_eq!(records, ["first"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Three promises:
//!
//! - *What was appended stays.* [`Journal::append`] returns when the record is on disk.
//! - *What was half written never was.* A crash leaves at most one torn line, at the end, and
//!   [`Journal::open`] cuts it. A failed write is taken back on the spot.
//! - *What somebody else broke is not repaired.* Any other bad line is [`JournalError::Damaged`],
//!   and the file is left as it was found.
//!
//! A journal has one writer, which holds an advisory lock on the file, and any number of readers,
//! which need no lock ([`read`], and [`Tail`] for one that grows).
//!
//! Deliberately absent: what records mean, and any way to change or remove one.

mod lines;
mod tail;

use std::fs::TryLockError;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use tail::{News, Tail, read_at};

/// A journal open for writing. No other process can write to it while this lives.
#[derive(Debug)]
pub struct Journal {
    file: fs::File,
    path: Utf8PathBuf,
    /// The length of the file up to the end of its last whole line.
    whole: u64,
    /// Set when the file may no longer end where `whole` says, or the disk may not hold it.
    stopped: bool,
}

/// Why a journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system said no. The message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),

    /// The journal has a writer already.
    #[error("`{path}` is being written by another process")]
    Locked {
        /// The journal.
        path: Utf8PathBuf,
    },

    /// A finished line is not a record, so something other than a crash changed the file.
    #[error("damaged record at {path}:{line}")]
    Damaged {
        /// The journal.
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it. Positions in this message count from the start of the line.
        source: serde_json::Error,
    },

    /// A new journal was to be created where a file is already.
    #[error("`{path}` already exists")]
    Exists {
        /// The file.
        path: Utf8PathBuf,
    },

    /// The record cannot be written as JSON. The journal is unchanged.
    #[error("failed to encode a record as json")]
    Encode(#[source] serde_json::Error),

    /// An earlier write failed and left the file in doubt; only opening it again can tell.
    #[error("`{path}` takes no more records: an earlier write failed and could not be undone")]
    Stopped {
        /// The journal.
        path: Utf8PathBuf,
    },
}

impl Journal {
    /// Creates an empty journal. A file that is at `path` already is an error.
    pub fn create(path: &Utf8Path) -> Result<Self, JournalError> {
        let file = fs::OpenOptions::new().read(true).append(true).create_new(true).open(path);
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(JournalError::Exists { path: path.to_owned() });
            }
            other => other?,
        };
        lock(&file, path)?;
        sync_name(path)?;
        Ok(Self { file, path: path.to_owned(), whole: 0, stopped: false })
    }

    /// Opens the journal at `path` to write more, and returns the records it holds.
    ///
    /// A line that a crash left unfinished is cut off.
    pub fn open<R: DeserializeOwned>(path: &Utf8Path) -> Result<(Self, Vec<R>), JournalError> {
        let file = fs::OpenOptions::new().read(true).append(true).open(path)?;
        // The lock comes before the reading: what looks torn may be a line that the other writer
        // has not finished.
        lock(&file, path)?;
        let mut journal = Self { file, path: path.to_owned(), whole: 0, stopped: false };

        let mut bytes = Vec::new();
        journal.file.read_to_end(&mut bytes)?;
        let (records, whole) = parse(path, &bytes)?;
        journal.whole = whole;
        if whole < bytes.len() as u64 {
            journal.file.set_len(whole)?;
        }
        // The last writer may have died between writing and syncing. The caller will act on these
        // records, so they must not be able to vanish any more.
        journal.file.sync_data()?;
        Ok((journal, records))
    }

    /// Appends one record and returns when it is on disk, with all that were appended before it.
    pub fn append(&mut self, record: &impl Serialize) -> Result<(), JournalError> {
        let before = self.whole;
        self.append_unsynced(record)?;
        if let Err(error) = self.file.sync_data() {
            // The kernel reports a lost page once and then forgets it, so that a second sync would
            // succeed without the data. Nothing that this handle says is worth anything now.
            self.cut_to(before);
            self.stopped = true;
            return Err(error.into());
        }
        Ok(())
    }

    /// Appends one record without waiting for the disk: the next [`append`](Self::append) makes it
    /// durable too.
    ///
    /// Such a record survives the death of this process, but perhaps not that of the machine. On a
    /// file system that may write the blocks of a file out of order, a power cut can then even
    /// leave a hole before a finished line, which is reported as damage: keep such runs short.
    pub fn append_unsynced(&mut self, record: &impl Serialize) -> Result<(), JournalError> {
        if self.stopped {
            return Err(JournalError::Stopped { path: self.path.clone() });
        }
        let mut line = serde_json::to_vec(record).map_err(JournalError::Encode)?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // A full disk takes the part that fits. The next record must not be glued to it.
            self.cut_to(self.whole);
            return Err(error.into());
        }
        self.whole += line.len() as u64;
        Ok(())
    }

    /// Where the journal is.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Takes back what was written after `length`, or stops the journal.
    fn cut_to(&mut self, length: u64) {
        match self.file.set_len(length) {
            Ok(()) => self.whole = length,
            // The caller is about to report the failure that led here, which says more.
            Err(_) => self.stopped = true,
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Closing is not enough. The lock belongs to the open file, and a process that is being
        // spawned by another thread right now shares it until its `exec`.
        self.file.unlock().ok();
    }
}

/// Reads the journal at `path` without a lock and without changing it, for viewers of a live run.
///
/// An unfinished last line is ignored: it may be a record that is being written.
pub fn read<R: DeserializeOwned>(path: &Utf8Path) -> Result<Vec<R>, JournalError> {
    let bytes = fs::read(path)?;
    let (records, _) = parse(path, &bytes)?;
    Ok(records)
}

/// Reads only the first record of the journal at `path`; `None` if no whole line is there yet.
pub fn read_first<R: DeserializeOwned>(path: &Utf8Path) -> Result<Option<R>, JournalError> {
    let mut line = Vec::new();
    io::BufReader::new(fs::File::open(path)?).read_until(b'\n', &mut line)?;
    let (records, _) = parse(path, &line)?;
    Ok(records.into_iter().next())
}

/// Whether some process holds the writer's lock right now.
pub fn is_locked(path: &Utf8Path) -> Result<bool, JournalError> {
    let file = fs::File::open(path)?;
    // A lock can be tested only by taking it. A shared one lets any number of viewers ask at once,
    // and network file systems grant it on a file that is open for reading.
    match file.try_lock_shared() {
        Ok(()) => {
            file.unlock()?;
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(cannot_lock(path, &error)),
    }
}

/// Takes the writer's lock.
fn lock(file: &fs::File, path: &Utf8Path) -> Result<(), JournalError> {
    // A viewer inside `is_locked` holds the lock for an instant. Asking again for a tenth of a
    // second tells it from a writer, which stays.
    const ATTEMPTS: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(10);

    for _ in 0..ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(cannot_lock(path, &error)),
        }
    }
    Err(JournalError::Locked { path: path.to_owned() })
}

/// Names the path, which `fs_err` does for every other call but not for these.
fn cannot_lock(path: &Utf8Path, error: &io::Error) -> JournalError {
    io::Error::new(error.kind(), format!("failed to lock file `{path}`: {error}")).into()
}

/// Makes a new file's name survive a power cut: it is data of the directory, not of the file.
fn sync_name(path: &Utf8Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != "" => parent,
        _ => Utf8Path::new("."),
    };
    fs::File::open(directory)?.sync_all()
}

/// Returns the records in `bytes` and the length of the part that is whole.
fn parse<R: DeserializeOwned>(
    path: &Utf8Path,
    bytes: &[u8],
) -> Result<(Vec<R>, u64), JournalError> {
    match lines::parse(bytes) {
        Ok(lines) => Ok((lines.records, lines.whole as u64)),
        Err(lines::BadLine { line, source }) => {
            Err(JournalError::Damaged { path: path.to_owned(), line, source })
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")] // the devices
mod tests {
    use super::*;

    /// A journal on a device, which cannot be truncated.
    fn on_device(path: &str) -> Journal {
        let file = fs::OpenOptions::new().append(true).open(path).unwrap();
        Journal { file, path: path.into(), whole: 0, stopped: false }
    }

    #[test]
    fn a_write_that_cannot_be_undone_stops_the_journal() {
        let mut journal = on_device("/dev/full");

        let first = journal.append_unsynced(&"lost").unwrap_err();
        let second = journal.append_unsynced(&"refused").unwrap_err();

        assert!(
            matches!(&first, JournalError::Io(it) if it.kind() == io::ErrorKind::StorageFull),
            "{first}"
        );
        assert_eq!(
            second.to_string(),
            "`/dev/full` takes no more records: an earlier write failed and could not be undone"
        );
    }

    #[test]
    fn a_failed_sync_stops_the_journal() {
        let mut journal = on_device("/dev/null"); // takes every write and refuses every sync

        let first = journal.append(&"in doubt").unwrap_err();
        let second = journal.append(&"refused").unwrap_err();

        assert!(matches!(first, JournalError::Io(_)), "{first}");
        assert!(matches!(second, JournalError::Stopped { .. }), "{second}");
    }
}
