//! Finds the files below a folder, without hidden ones and without running in circles.
//!
//! Real folders are walked before links to folders, and each folder once, under the first name
//! met: what is found does not depend on the order in which the system lists entries.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;

use camino::Utf8Path;

use crate::ProfileError;

/// One regular file, or a link to one. Ordered by its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    /// Relative to the root, separated by `/`, with anything that is not Unicode replaced.
    pub(crate) path: String,
    /// Where to open it.
    pub(crate) at: PathBuf,
    pub(crate) bytes: u64,
}

/// How a walk went.
pub(crate) struct Walked {
    /// Whether it reached the end, rather than its bound.
    pub(crate) complete: bool,
    pub(crate) unreadable_folders: usize,
}

/// Calls `visit` for each file below `root`, in no particular order, until `max_entries` files and
/// folders were seen.
pub(crate) fn walk(
    root: &Utf8Path,
    max_entries: usize,
    visit: &mut dyn FnMut(Found),
) -> Result<Walked, ProfileError> {
    match fs_err::metadata(root) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(ProfileError::NotAFolder { path: root.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ProfileError::NoFolder { path: root.to_owned() });
        }
        Err(error) => return Err(error.into()),
    }
    // Only the root must be readable; below it, an unreadable folder is counted.
    fs_err::read_dir(root)?;

    let mut walked = Walked { complete: true, unreadable_folders: 0 };
    let mut entries_left = max_entries;
    let mut entered = HashSet::new();
    let mut folders = vec![(String::new(), root.as_std_path().to_owned())];
    let mut links = BTreeSet::new();
    while let Some((prefix, folder)) = folders.pop().or_else(|| links.pop_first()) {
        let listed = fs_err::canonicalize(&folder)
            .and_then(|real| Ok((entered.insert(real), fs_err::read_dir(&folder)?)));
        let entries = match listed {
            Ok((true, entries)) => entries,
            Ok((false, _)) => continue,
            Err(_) => {
                walked.unreadable_folders += 1;
                continue;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            if entries_left == 0 {
                walked.complete = false;
                return Ok(walked);
            }
            entries_left -= 1;

            let at = entry.path();
            let path = format!("{prefix}{name}");
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            // This follows links; one that leads nowhere is no file of ours.
            let Ok(metadata) = fs_err::metadata(&at) else { continue };
            if metadata.is_file() {
                visit(Found { path, at, bytes: metadata.len() });
            } else if metadata.is_dir() && is_link {
                links.insert((path + "/", at));
            } else if metadata.is_dir() {
                folders.push((path + "/", at));
            }
            // Pipes, sockets and devices are left alone: opening one may block forever.
        }
    }
    Ok(walked)
}
