//! Following a journal that somebody else writes.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::de::DeserializeOwned;

use crate::{JournalError, lines};

/// A place in a journal up to which it was read. Holds neither the file nor a lock.
#[derive(Debug)]
pub struct Tail {
    path: Utf8PathBuf,
    /// Device and number of the file that was read.
    file: Option<(u64, u64)>,
    /// The end of the last whole line that was read.
    read: u64,
    /// How many lines that were.
    lines: usize,
}

/// What is new in a journal.
#[derive(Debug, PartialEq, Eq)]
pub struct News<R> {
    /// Whether this is another journal than before, from its beginning.
    pub is_another: bool,
    /// The new records, each with the bytes of the file that hold it.
    pub records: Vec<(Range<u64>, R)>,
}

impl Tail {
    /// Follows the journal at `path` from its beginning.
    pub fn new(path: &Utf8Path) -> Self {
        Self { path: path.to_owned(), file: None, read: 0, lines: 0 }
    }

    /// What was appended since the last time. An unfinished last line is left for the next time.
    ///
    /// Records before a damaged one are handed out first; after that it is an error each time.
    pub fn read_on<R: DeserializeOwned>(&mut self) -> Result<News<R>, JournalError> {
        let mut file = fs::File::open(&self.path)?;
        let metadata = file.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        let was = self.file.replace(identity);
        // Only a torn line is ever cut off, and none was read: a shorter file is another one.
        let is_another = metadata.len() < self.read || was.is_some_and(|it| it != identity);
        if is_another {
            (self.read, self.lines) = (0, 0);
        }
        let mut bytes = Vec::new();
        if metadata.len() > self.read {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut bytes)?;
        }
        let mut records = Vec::new();
        for with_newline in bytes.split_inclusive(|&byte| byte == b'\n') {
            let Some(line) = with_newline.strip_suffix(b"\n") else { break };
            match lines::parse_line(line) {
                Ok(record) => {
                    let end = self.read + with_newline.len() as u64;
                    records.push((self.read..end, record));
                    self.read = end;
                    self.lines += 1;
                }
                Err(_) if !records.is_empty() => break,
                Err(source) => {
                    let (path, line) = (self.path.clone(), self.lines + 1);
                    return Err(JournalError::Damaged { path, line, source });
                }
            }
        }
        Ok(News { is_another, records })
    }
}

/// Reads one record again, by the bytes that hold it.
pub fn read_at<R: DeserializeOwned>(
    path: &Utf8Path,
    bytes: &Range<u64>,
) -> Result<R, JournalError> {
    let mut file = fs::File::open(path)?;
    file.seek(SeekFrom::Start(bytes.start))?;
    let mut line = Vec::new();
    file.take(bytes.end.saturating_sub(bytes.start)).read_to_end(&mut line)?;
    serde_json::from_slice(&line).map_err(|source| JournalError::Damaged {
        path: path.to_owned(),
        line: 0,
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// A file that grows by pieces, and what was read of it after each.
    fn followed(pieces: &[&[u8]]) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("journal.jsonl")).unwrap();
        let mut file = fs::File::create(&path).unwrap();
        let mut tail = Tail::new(&path);
        let mut read = Vec::new();
        for piece in pieces {
            file.write_all(piece).unwrap();
            let news = tail.read_on::<String>().unwrap();
            assert!(!news.is_another);
            for (range, record) in &news.records {
                assert_eq!(read_at::<String>(&path, range).unwrap(), *record);
            }
            read.push(news.records.into_iter().map(|(_, record)| record).collect());
        }
        read
    }

    #[test]
    fn a_line_is_read_once_it_is_whole() {
        let read = followed(&[b"\"a\"\n\"b", b"", b"\"\n\"c\"\n", b""]);
        assert_eq!(read, [vec!["a"], vec![], vec!["b", "c"], vec![]]);
    }

    #[test]
    fn a_damaged_line_hides_nothing_that_comes_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("journal.jsonl")).unwrap();
        fs::write(&path, "\"a\"\n{{{\n\"b\"\n").unwrap();
        let mut tail = Tail::new(&path);

        assert_eq!(tail.read_on::<String>().unwrap().records, [(0..4, "a".to_owned())]);
        for _ in 0..2 {
            let error = tail.read_on::<String>().unwrap_err().to_string();
            assert_eq!(error, format!("damaged record at {path}:2"));
        }
    }

    #[test]
    fn a_journal_in_the_place_of_another_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("journal.jsonl")).unwrap();
        let other = path.with_extension("new");
        fs::write(&path, "\"a\"\n").unwrap();
        fs::write(&other, "\"b\"\n\"c\"\n").unwrap();
        let mut tail = Tail::new(&path);
        tail.read_on::<String>().unwrap();

        fs::rename(&other, &path).unwrap();

        let news = tail.read_on::<String>().unwrap();
        let records = vec![(0..4, "b".to_owned()), (4..8, "c".to_owned())];
        assert_eq!(news, News { is_another: true, records });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn however_it_grows_every_record_is_read_once(records: Vec<String>, at: prop::sample::Index) {
            let mut bytes = Vec::new();
            for record in &records {
                bytes.extend(serde_json::to_vec(record).unwrap());
                bytes.push(b'\n');
            }
            let (first, second) = bytes.split_at(at.index(bytes.len() + 1));
            prop_assert_eq!(followed(&[first, second]).concat(), records);
        }
    }
}
