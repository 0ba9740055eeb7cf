//! Where a path leads, links and all.

use std::collections::VecDeque;
use std::fs::{DirEntry, ReadDir};
use std::path::{Component, Path, PathBuf};

use crate::text::{Piece, Text};
use crate::{Denial, Judged, Policy, denied, glob};

/// Where the shell may be. A `cd` that may fail makes two places of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cwd {
    /// One of these: absolute, and by the names that the shell uses, not where links lead.
    Among(Vec<PathBuf>),
    Unknown,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Below a folder in which writing is allowed.
    Inside,
    /// A null device, or a stream that is open anyway.
    Device,
    /// A folder in which writing is allowed, itself.
    Border,
    /// Below a folder that any program may read.
    Readable,
    /// It cannot be told; the path so far leads here.
    Unknown(PathBuf),
    Outside(PathBuf),
    Secret(PathBuf),
}

/// Whether the last name of a path is followed if it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Followed,
    Kept,
}

/// More links than this on one way are a loop, as for the kernel.
const MOST_LINKS: u32 = 40;
/// Among more entries than this, there may be a link that leads out. Folders of many images are usual.
pub(crate) const MOST_ENTRIES: usize = 200_000;

impl Cwd {
    pub(crate) fn at(path: &Path) -> Self {
        if path.is_absolute() { Self::Among(vec![tidy(path)]) } else { Self::Unknown }
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Among(some), Self::Among(more)) => {
                let mut all = some.clone();
                all.extend(more.iter().filter(|path| !some.contains(path)).cloned());
                if all.len() > 16 { Self::Unknown } else { Self::Among(all) }
            }
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        }
    }
}

impl Policy {
    /// The worst place where a text may lead.
    pub(crate) fn place(&self, text: &Text, cwd: &Cwd, last: Last) -> Place {
        if text.prefix().starts_with('/') {
            return self.place_from(Path::new("/"), text, last);
        }
        let starts: &[PathBuf] = match cwd {
            Cwd::Among(paths) => paths,
            Cwd::Unknown => return Place::Unknown(PathBuf::from("/")),
        };
        starts
            .iter()
            .map(|start| self.place_from(start, text, last))
            .max_by_key(Place::badness)
            .unwrap_or_else(|| Place::Unknown(PathBuf::from("/")))
    }

    /// Whether anything secret lies below a path that is about to be read whole.
    pub(crate) fn is_above_secrets(&self, text: &Text, cwd: &Cwd) -> bool {
        let Place::Outside(path) = self.place(text, cwd, Last::Followed) else { return false };
        self.all_secrets().any(|secret| secret.starts_with(&path))
    }

    /// Writing, creating or removing what the text names.
    pub(crate) fn may_write(&self, text: &Text, cwd: &Cwd, last: Last) -> Judged {
        let reason = match self.place(text, cwd, last) {
            Place::Inside | Place::Device | Place::Border => return Ok(()),
            Place::Readable => format!("{text} is read-only"),
            Place::Unknown(_) => {
                format!(
                    "it cannot be told where {text} leads; it may be outside the working directory"
                )
            }
            Place::Outside(path) => {
                format!("{} is outside the working directory", shown(text, &path))
            }
            Place::Secret(path) => format!("{} must not be touched", shown(text, &path)),
        };
        Err(Denial::new(format_args!("{reason}; write below {}", self.working_dir.display())))
    }

    /// Handing the text to a program that may do anything with it.
    pub(crate) fn may_hand_over(&self, text: &Text, cwd: &Cwd) -> Judged {
        match self.place(text, cwd, Last::Followed) {
            Place::Readable => Ok(()),
            Place::Unknown(_) if !text.has_any() => Ok(()),
            Place::Inside
            | Place::Device
            | Place::Border
            | Place::Unknown(_)
            | Place::Outside(_)
            | Place::Secret(_) => self.may_write(text, cwd, Last::Followed),
        }
    }

    /// Reading what the text names. What cannot be told is left to the sandbox.
    pub(crate) fn may_read(&self, text: &Text, cwd: &Cwd) -> Judged {
        match self.place(text, cwd, Last::Followed) {
            Place::Secret(path) => {
                Err(Denial::new(format_args!("{} must not be read", shown(text, &path))))
            }
            Place::Inside
            | Place::Device
            | Place::Border
            | Place::Readable
            | Place::Unknown(_)
            | Place::Outside(_) => Ok(()),
        }
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        let variable = self.variables.get("HOME").map(Path::new);
        self.home.as_deref().or(variable)
    }

    fn place_from(&self, start: &Path, text: &Text, last: Last) -> Place {
        let named = tidy(&start.join(pattern_of(text)));
        if text.as_literal().is_some() && denied::is_device(&named) {
            return Place::Device;
        }
        if self.is_secret(&named) {
            return Place::Secret(named);
        }
        let way = match self.follow(start, text, last) {
            Ok(way) => way,
            Err(so_far) if self.is_secret(&so_far) => return Place::Secret(so_far),
            Err(so_far) => return Place::Unknown(so_far),
        };
        if self.is_secret(&way) {
            return Place::Secret(way);
        }
        if text.pieces().contains(&Piece::Beneath)
            && let Some(folder) = way.parent()
            && self.all_secrets().any(|secret| secret.starts_with(folder))
        {
            return Place::Secret(way);
        }
        let folders = std::iter::once(&self.working_dir).chain(&self.writable);
        let mut border = false;
        for folder in folders.map(|folder| real(folder)) {
            if way != folder && way.starts_with(&folder) {
                return Place::Inside;
            }
            border |= way == folder;
        }
        if border {
            return Place::Border;
        }
        if self.readable.iter().any(|folder| way.starts_with(real(folder))) {
            return Place::Readable;
        }
        Place::Outside(way)
    }

    /// The path at the end of all links, or how far it could be followed.
    fn follow(&self, start: &Path, text: &Text, last: Last) -> Result<PathBuf, PathBuf> {
        let mut current = PathBuf::from("/");
        let mut ahead: VecDeque<Text> = components_of(start);
        ahead.extend(text.components());
        let mut links = 0;
        let mut left_proc = false;
        let mut found_in: Option<PathBuf> = None;
        while let Some(name) = ahead.pop_front() {
            let followed = !ahead.is_empty() || last == Last::Followed;
            match name.as_literal() {
                Some("" | ".") => {}
                // What `find` comes by may be the very folder where it begins.
                Some("..") if found_in.is_some() => return Err(current),
                Some("..") => {
                    current.pop();
                }
                Some(_) | None
                    if followed
                        && name.pieces() != [Piece::Beneath]
                        && found_in.as_ref().is_some_and(|it| self.leads_out_below(it, &name)) =>
                {
                    return Err(current);
                }
                Some(literal) if !glob::is_wild(literal) => {
                    let next = current.join(literal);
                    match followed.then(|| next.read_link()) {
                        Some(Ok(target)) => {
                            links += 1;
                            if links > MOST_LINKS {
                                return Err(next);
                            }
                            if target.is_absolute() {
                                current = PathBuf::from("/");
                            }
                            for component in components_of(&target).into_iter().rev() {
                                ahead.push_front(component);
                            }
                        }
                        Some(Err(_)) | None => current = next,
                    }
                }
                _ if name.pieces() == [Piece::Beneath] => {
                    found_in.get_or_insert_with(|| current.clone());
                    current.push("*");
                }
                _ => {
                    if may_be_dots(&name) || (followed && self.leads_out(&current, &name)) {
                        return Err(current);
                    }
                    current.push("*");
                }
            }
            // Links below /proc mean something else to every process that follows them.
            left_proc |= current.starts_with("/proc");
        }
        if left_proc && !current.starts_with("/proc") { Err(current) } else { Ok(current) }
    }

    /// Whether a name with unknown parts may be a link in this folder that leads out.
    fn leads_out(&self, folder: &Path, name: &Text) -> bool {
        let pattern = pattern_of(name);
        // What is not there cannot be gone through.
        let Ok(entries) = folder.read_dir() else { return false };
        entries
            .flatten()
            .enumerate()
            .any(|(index, entry)| index >= MOST_ENTRIES || self.is_way_out(&entry, &pattern))
    }

    /// Whether a name may be a link that leads out, in this folder or in any below it.
    fn leads_out_below(&self, folder: &Path, name: &Text) -> bool {
        let pattern = pattern_of(name);
        below(folder)
            .enumerate()
            .any(|(index, entry)| index >= MOST_ENTRIES || self.is_way_out(&entry, &pattern))
    }

    /// Whether an entry of a folder is a link that a pattern matches and that leads out.
    fn is_way_out(&self, entry: &DirEntry, pattern: &str) -> bool {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !entry.file_type().is_ok_and(|kind| kind.is_symlink())
            || (name != pattern && !glob::matches(pattern, &name))
        {
            return false;
        }
        let end = real(&entry.path());
        let mut folders = std::iter::once(&self.working_dir).chain(&self.writable);
        !folders.any(|folder| end.starts_with(real(folder)))
    }

    fn is_secret(&self, path: &Path) -> bool {
        denied::is_secret_anywhere(path)
            || self.all_secrets().any(|secret| may_start_with(path, &secret))
    }

    fn all_secrets(&self) -> impl Iterator<Item = PathBuf> {
        let home = self.home();
        let below_home =
            denied::secrets_below_home().filter_map(move |name| Some(home?.join(name)));
        below_home.chain(self.secrets.iter().flat_map(|path| [path.clone(), real(path)]))
    }
}

impl Place {
    fn badness(&self) -> u8 {
        match self {
            Self::Device => 0,
            Self::Inside => 1,
            Self::Border => 2,
            Self::Readable => 3,
            Self::Unknown(_) => 4,
            Self::Outside(_) => 5,
            Self::Secret(_) => 6,
        }
    }
}

/// Whether a path, which may have wildcards in it, may lie in a folder or be it.
pub(crate) fn may_start_with(path: &Path, folder: &Path) -> bool {
    let mut names = path.components();
    folder.components().all(|wanted| {
        let (Some(name), wanted) = (names.next(), wanted.as_os_str().to_string_lossy()) else {
            return false;
        };
        let name = name.as_os_str().to_string_lossy();
        // Wildcards do not match a leading dot.
        name == wanted
            || (glob::is_wild(&name)
                && wanted.starts_with('.') == name.starts_with('.')
                && glob::matches(&name, &wanted))
    })
}

/// A path without `.` and `..`, as the shell's `cd` understands it: links are not looked at.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => {
                tidied.push(component);
            }
        }
    }
    tidied
}

/// The end of all links, as far as the path exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

fn components_of(path: &Path) -> VecDeque<Text> {
    path.components()
        .filter(|component| !matches!(component, Component::RootDir))
        .map(|component| Text::literal(component.as_os_str().to_string_lossy()))
        .collect()
}

fn may_be_dots(name: &Text) -> bool {
    let mut could = true;
    for piece in name.pieces() {
        could &= match piece {
            Piece::Literal(text) => text.chars().all(|character| "*?[].".contains(character)),
            Piece::Plain | Piece::Job => false,
            Piece::Name => true,
            Piece::Beneath | Piece::Any => return true,
        };
    }
    // The shell's `*` and `?` do not match a leading dot, so only a written one makes `..`.
    let wild_only = matches!(name.pieces(), [Piece::Literal(text)] if !text.starts_with('.'));
    could && !wild_only
}

/// All that is below a folder. Links are not followed.
pub(crate) fn below(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let mut ahead = vec![folder.to_owned()];
    let mut entries: Option<ReadDir> = None;
    std::iter::from_fn(move || {
        loop {
            if let Some(entry) = entries.as_mut().and_then(|it| it.by_ref().flatten().next()) {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    ahead.push(entry.path());
                }
                return Some(entry);
            }
            entries = ahead.pop()?.read_dir().ok();
        }
    })
}

/// A text with `*` for what is not known of it.
pub(crate) fn pattern_of(name: &Text) -> String {
    let pieces = name.pieces().iter().map(|piece| match piece {
        Piece::Literal(text) => text.as_str(),
        Piece::Plain | Piece::Name | Piece::Beneath | Piece::Job | Piece::Any => "*",
    });
    pieces.collect()
}

fn shown(text: &Text, path: &Path) -> String {
    let (written, leads) = (text.to_string(), path.display().to_string());
    if written == leads { written } else { format!("{written} (that is {leads})") }
}
