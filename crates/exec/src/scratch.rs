//! Temporary folders that do not outlive their owner for long.
//!
//! A folder is removed when its owner drops it. An owner that is killed cannot do that, so whoever
//! makes the next folder of the same kind removes those that nobody holds any more: each has a file
//! in it that its owner keeps locked.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fs_err as fs;
use tempfile::TempDir;

/// The file that is locked.
const LOCK: &str = ".held";

/// A temporary folder.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: std::fs::File,
}

impl Scratch {
    /// A new folder among the temporary files. `kind` says in its name what it is for.
    pub fn new(kind: &str) -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), kind)
    }

    fn new_in(place: &Path, kind: &str) -> io::Result<Self> {
        let prefix = format!("mle-star-{kind}-");
        sweep(place, &prefix);
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(place)?;
        // Under its name it is never seen without its lock.
        let unnamed = folder.path().join(".new");
        let lock = std::fs::File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of those who were killed. What cannot be removed is in nobody's way.
fn sweep(place: &Path, prefix: &str) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(prefix)
            && entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == own);
        if is_ours
            && let Ok(lock) = std::fs::File::open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
        let place = tempfile::tempdir().unwrap();
        let kept = Scratch::new_in(place.path(), "trial").unwrap();
        let killed = Scratch::new_in(place.path(), "trial").unwrap();
        let left = killed.path().to_owned();
        fs::write(left.join("file"), "").unwrap();
        let Scratch { folder, _lock } = killed;
        std::mem::forget(folder); // as if there had been no time for it
        drop(_lock);

        let next = Scratch::new_in(place.path(), "trial").unwrap();

        assert!(!left.exists());
        assert!(kept.path().exists() && next.path().exists());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
