//! How much disk a script uses, also where it does not show.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use camino::Utf8Path;
use rustix::process::Pid;

/// What files take, by where they are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// On disk.
    pub(super) disk: u64,
    /// In memory.
    pub(super) memory: u64,
}

/// What the files below `folder` take. Links are not followed, and nothing here recurses.
pub(super) fn size_of_folder(folder: &Utf8Path) -> u64 {
    let mut folders = vec![PathBuf::from(folder)];
    let mut seen = BTreeSet::new();
    let mut sum = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.nlink() > 1 && !found.is_dir() && !seen.insert((found.dev(), found.ino())) {
                continue;
            }
            sum += taken(&found);
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    sum
}

/// What files take that are open in one of `processes` but have no name any more, or never had.
pub(super) fn size_of_nameless(processes: &[Pid]) -> Kept {
    let mut seen = BTreeSet::new();
    let mut sum = Kept::default();
    for pid in processes {
        let descriptors = format!("/proc/{}/fd", pid.as_raw_pid());
        let Ok(entries) = std::fs::read_dir(descriptors) else { continue };
        for entry in entries.flatten() {
            let Ok(found) = std::fs::metadata(entry.path()) else { continue };
            let nameless = found.is_file() && found.nlink() == 0;
            if !nameless || !seen.insert((found.dev(), found.ino())) {
                continue;
            }
            match is_in_memory(&entry.path()) {
                true => sum.memory += taken(&found),
                false => sum.disk += taken(&found),
            }
        }
    }
    sum
}

/// What the file system that holds `place` has left for us.
pub(crate) fn free_bytes(place: &Utf8Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place.as_str()).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// What is used of the temporary files at `place`.
pub(super) fn used_bytes(place: &str) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    Some(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

fn is_in_memory(file: &std::path::Path) -> bool {
    const TEMPORARY_FILES: u64 = 0x0102_1994;
    rustix::fs::statfs(file).is_ok_and(|found| found.f_type.cast_unsigned() == TEMPORARY_FILES)
}

fn taken(found: &std::fs::Metadata) -> u64 {
    found.blocks().saturating_mul(512)
}
