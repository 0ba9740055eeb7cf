//! What this command line has done to files so far, as far as later parts of it depend on that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::glob;
use crate::place::{Cwd, tidy};
use crate::text::Text;

/// What has been done to files, in whatever shell or branch. It is only ever added to: a part that
/// may have been skipped counts as done.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// Files that were written, with what is in them if that is known.
    written: BTreeMap<PathBuf, Option<String>>,
    /// All that is known to have been written to a file, one after the other.
    pieces: BTreeMap<PathBuf, String>,
    /// Folders that were made.
    folders: BTreeSet<PathBuf>,
    /// Links that were made, which are not yet there to be looked at.
    links: BTreeSet<PathBuf>,
    /// Whether any of them leads upwards, and so elsewhere from another folder.
    climbs: bool,
    /// Whether any of them leads to a folder further up than its name says.
    pub(crate) leads_up: bool,
    /// Whether anything has been removed or moved away.
    pub(crate) removes: bool,
    /// Whether files may have changed of which nothing is known.
    pub(crate) unseen: bool,
}

/// Files larger than this are not looked into.
const MAX_FILE: u64 = 1 << 20;

impl Disk {
    /// A file is written, with this content if it is known.
    pub(crate) fn write(&mut self, target: &Text, cwd: &Cwd, content: Option<&str>) {
        let (Some(name), Cwd::Among(places)) = (target.as_literal(), cwd) else {
            self.unseen = true;
            return;
        };
        self.unseen |= glob::is_wild(name);
        if let Some(content) = content {
            self.say(target, cwd, content);
        }
        for place in places {
            let path = tidy(&place.join(name));
            let before = self.written.get(&path).map(Option::as_deref);
            // Which of two comes last is not looked at.
            let known = content.filter(|_| before.is_none_or(|before| before == content));
            self.written.insert(path, known.map(str::to_owned));
        }
    }

    /// Something is added to a file. What was in it before stays.
    pub(crate) fn append(&mut self, target: &Text, cwd: &Cwd, content: Option<&str>) {
        let is_new = paths(target, cwd).is_some_and(|paths| {
            paths.iter().all(|path| !path.exists() && !self.written.contains_key(path))
        });
        let before = if is_new { Some(String::new()) } else { self.content_of(target, cwd) };
        let whole = before.clone().zip(content).map(|(before, content)| before + content);
        let before = before.unwrap_or_default();
        self.say(target, cwd, &format!("{before}\n{}", content.unwrap_or_default()));
        self.write(target, cwd, whole.as_deref());
    }

    /// This is known to be written to a file, though it may not be all of it.
    pub(crate) fn say(&mut self, target: &Text, cwd: &Cwd, content: &str) {
        for path in paths(target, cwd).unwrap_or_default() {
            let pieces = self.pieces.entry(path).or_default();
            pieces.push_str(content);
            pieces.push('\n');
        }
    }

    /// A folder is made.
    pub(crate) fn make_folder(&mut self, target: &Text, cwd: &Cwd) {
        match paths(target, cwd) {
            Some(paths) => self.folders.extend(paths),
            None => self.unseen = true,
        }
    }

    /// A link is made, of this name or in a folder of this name.
    pub(crate) fn make_link(&mut self, name: &Text, cwd: &Cwd, climbs: bool) {
        self.climbs |= climbs;
        match paths(name, cwd) {
            Some(paths) => self.links.extend(paths),
            // It may be anywhere: whatever is moved may be it.
            None => drop(self.links.insert(PathBuf::from("/"))),
        }
    }

    /// Whether moving this may move a link that was made to where it leads somewhere else.
    pub(crate) fn may_hold_links(&self, source: &Text, cwd: &Cwd) -> bool {
        self.climbs
            && paths(source, cwd).is_none_or(|paths| {
                paths.iter().any(|path| {
                    self.links.iter().any(|link| link.starts_with(path) || path.starts_with(link))
                })
            })
    }

    /// Whether what has this name by now may be a link that was made, or lie behind one.
    pub(crate) fn may_be_linked(&self, target: &Text, cwd: &Cwd) -> bool {
        let is_linked = |path: &PathBuf| self.links.iter().any(|link| path.starts_with(link));
        paths(target, cwd).is_some_and(|paths| paths.iter().any(is_linked))
    }

    /// Whether a folder is there, or may be by now.
    pub(crate) fn may_be_folder(&self, target: &Text, cwd: &Cwd) -> bool {
        paths(target, cwd).is_none_or(|paths| {
            paths.iter().any(|path| {
                path.is_dir()
                    || (!path.exists()
                        && (self.unseen || self.folders.iter().any(|it| it.starts_with(path))))
            })
        })
    }

    /// Whether a file is there that is no folder, or was written.
    pub(crate) fn is_file(&self, target: &Text, cwd: &Cwd) -> bool {
        paths(target, cwd).is_some_and(|paths| {
            paths.iter().all(|path| {
                let was_written = self.written.contains_key(path) && !self.unseen;
                !self.folders.contains(path) && (path.is_file() || was_written)
            })
        })
    }

    /// What is in a file, if this command line did not write something unknown to it.
    pub(crate) fn content_of(&self, file: &Text, cwd: &Cwd) -> Option<String> {
        let Cwd::Among(places) = cwd else { return None };
        let ([place], Some(name)) = (places.as_slice(), file.as_literal()) else { return None };
        let path = tidy(&place.join(name));
        match self.written.get(&path) {
            Some(content) => content.clone(),
            None => read(&path),
        }
    }

    /// What is in a file, or as much as is known of it.
    pub(crate) fn said_in(&self, file: &Text, cwd: &Cwd) -> Option<String> {
        let pieces = || {
            let paths = paths(file, cwd)?;
            let known: String =
                paths.iter().filter_map(|path| self.pieces.get(path)).cloned().collect();
            (!known.is_empty()).then_some(known)
        };
        self.content_of(file, cwd).or_else(pieces)
    }

    /// What is in a file, if nothing that was run before can have changed it.
    pub(crate) fn script_in(&self, file: &Text, cwd: &Cwd) -> Option<String> {
        self.content_of(file, cwd).filter(|_| !self.unseen)
    }

    /// Whether a file is there and has not been touched.
    pub(crate) fn is_as_before(&self, name: &str, cwd: &Cwd) -> bool {
        let Cwd::Among(places) = cwd else { return false };
        !self.unseen
            && places.iter().all(|place| {
                let path = tidy(&place.join(name));
                path.is_file() && !self.written.contains_key(&path)
            })
    }
}

/// Where a name leads from each folder in which the shell may be, if that can be told.
fn paths(name: &Text, cwd: &Cwd) -> Option<Vec<PathBuf>> {
    let (Some(name), Cwd::Among(places)) = (name.as_literal(), cwd) else { return None };
    let known = !glob::is_wild(name);
    known.then(|| places.iter().map(|place| tidy(&place.join(name))).collect())
}

fn read(path: &Path) -> Option<String> {
    let about = path.metadata().ok()?;
    // A pipe or a device would never end.
    if !about.is_file() || about.len() > MAX_FILE {
        return None;
    }
    String::from_utf8(std::fs::read(path).ok()?).ok()
}
