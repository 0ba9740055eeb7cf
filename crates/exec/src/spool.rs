//! Keeps the first and the last megabytes of a stream in a file, however long the stream is.
//!
//! The head goes straight to the file. What follows goes to two smaller files in turn, each begun
//! anew when the other is full, so that between them they always hold the end. When the stream
//! ends, they are joined.

use std::io::{self, Read, Seek, SeekFrom, Write};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

/// How much of each end is kept.
const END_BYTES: u64 = 50_000_000;

/// A file that a stream goes to.
#[derive(Debug)]
pub(crate) struct Spool {
    path: Utf8PathBuf,
    head: fs::File,
    head_bytes: u64,
    tail: Option<Tail>,
    total: u64,
    end_bytes: u64,
}

/// The end of the stream: the older part, which is full, and the newer one.
#[derive(Debug)]
struct Tail {
    older: fs::File,
    newer: fs::File,
    newer_bytes: u64,
    /// Whether there is anything in the older one.
    is_turned: bool,
}

impl Spool {
    pub(crate) fn create(path: Utf8PathBuf) -> io::Result<Self> {
        Self::with_ends(path, END_BYTES)
    }

    fn with_ends(path: Utf8PathBuf, end_bytes: u64) -> io::Result<Self> {
        let head = fs::File::create(&path)?;
        Ok(Self { path, head, head_bytes: 0, tail: None, total: 0, end_bytes })
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.total += bytes.len() as u64;
        let room = usize::try_from(self.end_bytes - self.head_bytes).unwrap_or(usize::MAX);
        let (head, mut rest) = bytes.split_at(room.min(bytes.len()));
        self.head.write_all(head)?;
        self.head_bytes += head.len() as u64;
        while !rest.is_empty() {
            let tail = match &mut self.tail {
                Some(tail) => tail,
                none => none.insert(Tail::beside(&self.path)?),
            };
            let room = usize::try_from(self.end_bytes - tail.newer_bytes).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(room.min(rest.len()));
            tail.newer.write_all(now)?;
            tail.newer_bytes += now.len() as u64;
            if tail.newer_bytes == self.end_bytes {
                tail.turn()?;
            }
            rest = later;
        }
        Ok(())
    }

    /// Joins the parts, and names the file.
    pub(crate) fn finish(mut self) -> io::Result<Utf8PathBuf> {
        let Some(mut tail) = self.tail.take() else { return Ok(self.path) };
        let from_older = match tail.is_turned {
            true => self.end_bytes - tail.newer_bytes,
            false => 0,
        };
        let missing = self.total - self.head_bytes - from_older - tail.newer_bytes;
        if missing > 0 {
            writeln!(self.head, "\n[... {missing} bytes are missing here ...]")?;
        }
        tail.older.seek(SeekFrom::Start(self.end_bytes - from_older))?;
        tail.newer.seek(SeekFrom::Start(0))?;
        io::copy(&mut (&mut tail.older).take(from_older), &mut self.head)?;
        io::copy(&mut (&mut tail.newer).take(tail.newer_bytes), &mut self.head)?;
        if missing > 0 {
            writeln!(self.head, "\n[warning: {missing} of {} bytes were not kept]", self.total)?;
        }
        Ok(self.path)
    }
}

impl Tail {
    fn beside(path: &Utf8Path) -> io::Result<Self> {
        let open = |name: &str| {
            let path = path.with_extension(name);
            let options =
                fs::OpenOptions::new().create(true).truncate(true).read(true).write(true).clone();
            let file = options.open(&path)?;
            fs::remove_file(path)?; // gone with us, whatever happens
            Ok::<_, io::Error>(file)
        };
        Ok(Self { older: open("a")?, newer: open("b")?, newer_bytes: 0, is_turned: false })
    }

    fn turn(&mut self) -> io::Result<()> {
        std::mem::swap(&mut self.older, &mut self.newer);
        self.newer.set_len(0)?;
        self.newer.seek(SeekFrom::Start(0))?;
        self.newer_bytes = 0;
        self.is_turned = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a stream of so many numbered bytes, with ends of 100 bytes.
    fn spooled(length: usize, chunk: usize) -> (Vec<u8>, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("stdout")).unwrap();
        let stream: Vec<u8> = (0..length).map(|n| b'a' + (n % 26) as u8).collect();
        let mut spool = Spool::with_ends(path, 100).unwrap();
        for bytes in stream.chunks(chunk) {
            spool.push(bytes).unwrap();
        }
        let file = spool.finish().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the file is left");
        (stream, fs::read(file).unwrap())
    }

    #[test]
    fn what_fits_is_kept_whole() {
        for length in [0, 1, 99, 100, 101, 150, 199, 200] {
            for chunk in [1, 7, 1000] {
                let (stream, kept) = spooled(length, chunk);
                assert_eq!(kept, stream, "{length} bytes in chunks of {chunk}");
            }
        }
    }

    /// REQ-EX-038
    #[test]
    fn of_more_both_ends_are_kept() {
        for length in [201, 250, 299, 300, 301, 1000, 1234] {
            for chunk in [1, 7, 100, 333, 5000] {
                let (stream, kept) = spooled(length, chunk);
                let kept = String::from_utf8(kept).unwrap();
                let missing = length - 200;
                let (head, rest) = kept
                    .split_once(&format!("\n[... {missing} bytes are missing here ...]\n"))
                    .unwrap();
                let warning = format!("\n[warning: {missing} of {length} bytes were not kept]\n");
                let tail = rest.strip_suffix(&warning).unwrap();
                assert_eq!((head.len(), tail.len()), (100, 100), "{length} in {chunk}");
                assert!(stream.starts_with(head.as_bytes()) && stream.ends_with(tail.as_bytes()));
            }
        }
    }
}
