//! Data that was downloaded as archives, as Kaggle hands it out: unpacked into `input` beside them.
//!
//! Archives come from strangers. Nothing is written outside the new folder, no link is made, nothing
//! is overwritten, and neither the bytes nor the number of files are without limit. Everything is
//! unpacked into a hidden folder first: `input` is there whole or not at all, and the archives stay.
//!
//! Archives within archives are unpacked once more. Absent on purpose: hidden files, other formats
//! than zip, archives with a password.

use std::collections::BTreeSet;
use std::io::{self, Read};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::task_file::{self, DATA_FOLDERS};

/// Where data is unpacked to.
const FOLDER: &str = "input";

/// How much is unpacked at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together. Nine tenths of the free disk are a limit too.
    pub bytes: u64,
    /// Files and folders.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 << 30, entries: 2_000_000 }
    }
}

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The folder that was made.
    pub folder: Utf8PathBuf,
    /// From how many archives.
    pub archives: usize,
    /// How many files it holds.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
}

/// Why archives were not unpacked. Then nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// A file cannot be read or written. The message names it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An archive is damaged, has a password, or is none.
    #[error("`{archive}` cannot be unpacked")]
    Archive {
        /// The archive.
        archive: Utf8PathBuf,
        /// What is wrong with it.
        source: ZipError,
    },
    /// An archive holds what no data set should.
    #[error("`{archive}` cannot be unpacked: its entry `{entry}` {reason}")]
    Entry {
        /// The archive.
        archive: Utf8PathBuf,
        /// The entry.
        entry: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The archives hold too much.
    #[error("`{archive}` cannot be unpacked: {reason}")]
    TooLarge {
        /// The archive at which the limit was reached.
        archive: Utf8PathBuf,
        /// Which limit it was.
        reason: String,
    },
}

impl UnpackError {
    /// What can be done about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io(_) => "check the path and its permissions, and the room on the disk",
            Self::Archive { .. } => "download it again, or unpack it yourself into `input`",
            Self::Entry { .. } => "if you trust it, unpack it yourself into `input`",
            Self::TooLarge { .. } => "unpack what is needed into `input` yourself",
        }
    }
}

/// The archives in `folder`, by name.
pub fn archives(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut archives = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let path = entry?.into_path();
        let is_hidden = path.file_name().is_none_or(|it| it.starts_with('.'));
        if is_archive(&path) && !is_hidden && path.is_file() {
            archives.push(path);
        }
    }
    archives.sort();
    Ok(archives)
}

/// Unpacks the archives in `folder` into `input` beside them, if the data is not there yet. Other
/// data beside the archives is copied, so that `input` is all there is.
pub fn unpack(folder: &Utf8Path, limits: Limits) -> Result<Option<Unpacked>, UnpackError> {
    let archives = archives(folder)?;
    if archives.is_empty() || DATA_FOLDERS.iter().any(|it| folder.join(it).exists()) {
        return Ok(None);
    }
    let mut is_done = true;
    for archive in &archives {
        is_done &= is_unpacked(archive, folder)?;
    }
    if is_done {
        return Ok(None);
    }
    let staging = tempfile::Builder::new().prefix(".input-").tempdir_in(folder)?;
    let root = Utf8Path::from_path(staging.path())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the path is not UTF-8"))?;
    let free = rustix::fs::statvfs(root.as_std_path()).map_err(io::Error::from)?;
    let free = free.f_bavail.saturating_mul(free.f_frsize);
    let bytes = limits.bytes.min(free / 10 * 9);
    let mut unpacking =
        Unpacking { limits: Limits { bytes, ..limits }, bytes: 0, files: 0, entries: 0 };

    for archive in &archives {
        unpacking.unpack(archive, root, archives.len() > 1)?;
    }
    for archive in nested(root)? {
        let beside = archive.parent().unwrap_or(root).to_owned();
        unpacking.unpack(&archive, &beside, true)?;
        fs::remove_file(&archive)?;
        unpacking.files -= 1;
    }
    unpacking.copy_beside(folder, root)?;

    // The folder of a temporary file is for its owner only; data is as open as where it lies.
    fs::set_permissions(root, fs::metadata(folder)?.permissions())?;
    let unpacked = folder.join(FOLDER);
    fs::rename(root, &unpacked)?;
    // It is not at its old place any more, so there is nothing to remove.
    let _moved = staging.keep();
    let Unpacking { files, bytes, .. } = unpacking;
    Ok(Some(Unpacked { folder: unpacked, archives: archives.len(), files, bytes }))
}

/// What has been unpacked so far.
struct Unpacking {
    limits: Limits,
    bytes: u64,
    files: usize,
    entries: usize,
}

impl Unpacking {
    /// Unpacks `archive` into `folder`; if there are `others`, into a folder of its own where its
    /// files would mix with theirs.
    fn unpack(
        &mut self,
        archive: &Utf8Path,
        folder: &Utf8Path,
        others: bool,
    ) -> Result<(), UnpackError> {
        let mut opened = open(archive)?;
        let entries = entries(archive, &mut opened)?;
        self.entries += entries.len();
        if self.entries > self.limits.entries {
            let reason = format!("there are more than {} entries", self.limits.entries);
            return Err(UnpackError::TooLarge { archive: archive.to_owned(), reason });
        }
        let tops: BTreeSet<Option<Utf8Component<'_>>> = entries
            .iter()
            .map(|(_, path)| {
                let mut parts = path.components();
                parts.next().filter(|_| parts.next().is_some())
            })
            .collect();
        let has_one_top = tops.len() == 1 && !tops.contains(&None);
        let folder = match archive.file_stem() {
            Some(stem) if others && entries.len() > 1 && !has_one_top => folder.join(stem),
            _ => folder.to_owned(),
        };
        for (index, path) in &entries {
            let target = folder.join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            let damaged = |source| UnpackError::Archive { archive: archive.to_owned(), source };
            let mut entry = opened.by_index(*index).map_err(damaged)?;
            let created = fs::OpenOptions::new().write(true).create_new(true).open(&target);
            let mut file = created.map_err(|error| {
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return UnpackError::Io(error);
                }
                let (archive, entry) = (archive.to_owned(), path.to_string());
                UnpackError::Entry { archive, entry, reason: "is there already" }
            })?;
            // What the archive says of its sizes need not be true.
            let left = self.limits.bytes - self.bytes;
            let written = io::copy(&mut entry.by_ref().take(left.saturating_add(1)), &mut file)
                .map_err(|error| damaged(ZipError::Io(error)))?;
            self.take(written, archive)?;
            self.files += 1;
        }
        Ok(())
    }

    fn take(&mut self, bytes: u64, archive: &Utf8Path) -> Result<(), UnpackError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            let most = mle_star_exec::limits::size(self.limits.bytes);
            let reason = format!("there are more than {most}");
            return Err(UnpackError::TooLarge { archive: archive.to_owned(), reason });
        }
        Ok(())
    }

    /// Copies what lies beside the archives and is neither one nor about the task.
    fn copy_beside(&mut self, folder: &Utf8Path, to: &Utf8Path) -> Result<(), UnpackError> {
        for entry in folder.read_dir_utf8()? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let is_data = entry.file_type()?.is_file()
                && !name.starts_with('.')
                && !is_archive(path)
                && !task_file::is_about_the_task(name);
            if is_data && !to.join(name).exists() {
                self.take(fs::metadata(path)?.len(), path)?;
                fs::copy(path, to.join(name))?;
                self.files += 1;
            }
        }
        Ok(())
    }
}

fn is_archive(path: &Utf8Path) -> bool {
    path.extension().is_some_and(|it| it.eq_ignore_ascii_case("zip"))
}

fn open(archive: &Utf8Path) -> Result<ZipArchive<io::BufReader<fs::File>>, UnpackError> {
    let file = io::BufReader::new(fs::File::open(archive)?);
    ZipArchive::new(file)
        .map_err(|source| UnpackError::Archive { archive: archive.to_owned(), source })
}

/// The files of an archive: their numbers, and where they belong.
fn entries(
    archive: &Utf8Path,
    opened: &mut ZipArchive<io::BufReader<fs::File>>,
) -> Result<Vec<(usize, Utf8PathBuf)>, UnpackError> {
    let mut entries = Vec::new();
    for index in 0..opened.len() {
        let damaged = |source| UnpackError::Archive { archive: archive.to_owned(), source };
        let entry = opened.by_index(index).map_err(damaged)?;
        let refused = |reason| UnpackError::Entry {
            archive: archive.to_owned(),
            entry: entry.name().map(|it| it.into_owned()).unwrap_or_default(),
            reason,
        };
        if entry.is_symlink() {
            return Err(refused("is a link"));
        }
        let path = entry.enclosed_name().and_then(|it| Utf8PathBuf::from_path_buf(it).ok());
        let path = path.ok_or_else(|| refused("leads out of the folder"))?;
        if !path.components().all(|it| matches!(it, Utf8Component::Normal(_))) {
            return Err(refused("leads out of the folder"));
        }
        let is_hidden =
            |it: Utf8Component<'_>| it.as_str().starts_with('.') || it.as_str() == "__MACOSX";
        if !entry.is_dir() && !path.components().any(is_hidden) {
            entries.push((index, path));
        }
    }
    Ok(entries)
}

/// Whether somebody has unpacked an archive where it lies.
fn is_unpacked(archive: &Utf8Path, folder: &Utf8Path) -> Result<bool, UnpackError> {
    let entries = entries(archive, &mut open(archive)?)?;
    Ok(!entries.is_empty() && entries.iter().all(|(_, path)| folder.join(path).exists()))
}

/// The archives below `folder`.
fn nested(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.into_path());
            } else if is_archive(entry.path()) {
                found.push(entry.into_path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
