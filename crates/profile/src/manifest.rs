//! The files of a data folder by path, size and content, to notice that data changed under a run
//! or is not the same on another machine. Hidden files are no part of it, as in the profile: what
//! desktops and network file systems leave behind is not data.

use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Read, Seek, SeekFrom};

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use crate::ProfileError;
use crate::describe::{MAX_PATH_CHARS, clean};
use crate::walk::{Found, walk};

const MAX_FILES: usize = 100_000;
const MAX_FILES_WALKED: usize = 1_000_000;
const MAX_WHOLE_BYTES: u64 = 64 * 1024 * 1024;
const END_BYTES: u64 = 4 * 1024 * 1024;
const UNREADABLE: &str = "unreadable";

/// What a data folder held at one time, at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The files, sorted by path; the first 100,000 of them.
    pub files: Vec<ManifestFile>,
    /// How many more files there are.
    pub omitted_files: usize,
}

/// One file of a [`Manifest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Where it is, relative to the data folder and separated by `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// The BLAKE3 hash of its content. Above 64 MiB, of its size and its first and last 4 MiB: a
    /// change in the middle that keeps the size is not noticed. `unreadable` where it could not be
    /// read.
    pub digest: String,
}

impl Manifest {
    /// Reads every file of the folder `dir`.
    pub fn of(dir: &Utf8Path) -> Result<Self, ProfileError> {
        let mut total = 0;
        let mut kept = BinaryHeap::new();
        walk(dir, MAX_FILES_WALKED, &mut |found: Found| {
            total += 1;
            kept.push(found);
            if kept.len() > MAX_FILES {
                kept.pop();
            }
        })?;
        if total == 0 {
            return Err(ProfileError::Empty { path: dir.to_owned() });
        }
        let files: Vec<ManifestFile> = kept
            .into_sorted_vec()
            .into_iter()
            .map(|found| ManifestFile {
                digest: digest(&found).unwrap_or_else(|_| UNREADABLE.to_owned()),
                path: found.path,
                bytes: found.bytes,
            })
            .collect();
        Ok(Self { omitted_files: total - files.len(), files })
    }

    /// How `other`, taken later or elsewhere, differs from this one: a line for each file that is
    /// missing, new or changed, sorted by path. Empty when they are the same.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut both: BTreeMap<&str, (Option<&ManifestFile>, Option<&ManifestFile>)> =
            BTreeMap::new();
        for file in &self.files {
            both.entry(&file.path).or_default().0 = Some(file);
        }
        for file in &other.files {
            both.entry(&file.path).or_default().1 = Some(file);
        }
        let mut lines: Vec<String> = both
            .into_iter()
            .filter_map(|(path, sides)| {
                let change = match sides {
                    (Some(before), Some(after)) if before == after => return None,
                    (Some(_), Some(after)) if after.digest == UNREADABLE => "cannot be read",
                    (Some(before), Some(_)) if before.digest == UNREADABLE => "can be read now",
                    (Some(_), Some(_)) => "content changed",
                    (Some(_), None) => "missing",
                    (None, _) => "new",
                };
                Some(format!("{}: {change}", clean(path, MAX_PATH_CHARS)))
            })
            .collect();
        if self.omitted_files != other.omitted_files {
            lines.push(format!(
                "files beyond the first {MAX_FILES}: {} instead of {}",
                other.omitted_files, self.omitted_files
            ));
        }
        lines
    }
}

fn digest(found: &Found) -> io::Result<String> {
    let mut file = fs_err::File::open(&found.at)?;
    let mut hasher = blake3::Hasher::new();
    if found.bytes <= MAX_WHOLE_BYTES {
        // The file may grow while it is read.
        hasher.update_reader(file.take(MAX_WHOLE_BYTES))?;
    } else {
        hasher.update(&found.bytes.to_le_bytes());
        hasher.update_reader(file.by_ref().take(END_BYTES))?;
        file.seek(SeekFrom::Start(found.bytes - END_BYTES))?;
        hasher.update_reader(file.take(END_BYTES))?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}
