//! How much disk a script uses, also where it does not show.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::Pid;

/// In which the system counts what a file takes.
const BLOCK: u64 = 512;

/// How often to look at all files, and how seldom at most if there are many.
const SELDOM: Duration = Duration::from_secs(1);
const MORE_SELDOM: Duration = Duration::from_secs(10);
/// How long to look at files before looking at anything else again.
const SLICE: Duration = Duration::from_millis(20);

/// Looks at all files below some folders again and again, a little at a time.
#[derive(Debug)]
pub(crate) struct Files {
    folders: Vec<Utf8PathBuf>,
    /// A look that is not at its end, and when it began.
    scan: Option<(Instant, Scan)>,
    next: Instant,
}

impl Files {
    /// The files below `folders`, which are not looked at at once.
    pub(crate) fn below(folders: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        let folders = folders.into_iter().collect();
        Self { folders, scan: None, next: Instant::now() + SELDOM }
    }

    /// When it is time to look at them.
    pub(crate) fn next_look(&self) -> Instant {
        self.next
    }

    /// What they take as far as was seen by now, those included that `processes` have open and that
    /// have no name.
    pub(crate) fn look(&mut self, processes: &[Pid]) -> u64 {
        let now = Instant::now();
        let (begun, mut scan) = self.scan.take().unwrap_or_else(|| (now, Scan::of(&self.folders)));
        scan.go_on(now + SLICE);
        let used = scan.bytes() + size_of_nameless(processes).disk;
        let pause = match scan.is_done() {
            true => (begun.elapsed() * 10).clamp(SELDOM, MORE_SELDOM),
            false => SLICE,
        };
        if !scan.is_done() {
            self.scan = Some((begun, scan));
        }
        self.next = Instant::now() + pause;
        used
    }

    /// What they take in the end, as far as can be seen within so long.
    pub(crate) fn last_look(&self, within: Duration) -> u64 {
        let mut scan = Scan::of(&self.folders);
        scan.go_on(Instant::now() + within);
        scan.bytes()
    }
}

/// What files take, by where they are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// On disk.
    pub(super) disk: u64,
    /// In memory.
    pub(super) memory: u64,
}

/// A look at all files below some folders. It can be interrupted, because there may be a great many.
///
/// Links are not followed, nothing here recurses, and folders may be nested deeper than any path
/// can be long.
#[derive(Debug)]
struct Scan {
    /// Folders still to come, each as the way to it from another one, which is open.
    folders: Vec<(Rc<OwnedFd>, PathBuf)>,
    current: Option<Listing>,
    seen: BTreeSet<(u64, u64)>,
    sum: u64,
}

/// A folder of which a part was seen.
#[derive(Debug)]
struct Listing {
    entries: Dir,
    folder: Rc<OwnedFd>,
    /// Where the ways to the folders in it begin, and how far they are the same.
    from: Rc<OwnedFd>,
    way: PathBuf,
}

impl Scan {
    fn of(folders: &[Utf8PathBuf]) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |folder: &Utf8PathBuf| {
            let top = rustix::fs::open(folder.as_str(), flags, Mode::empty()).ok()?;
            Some((Rc::new(top), PathBuf::from(".")))
        };
        let folders = folders.iter().filter_map(open).collect();
        Self { folders, current: None, seen: BTreeSet::new(), sum: 0 }
    }

    /// Goes on until all was seen or `deadline` comes.
    fn go_on(&mut self, deadline: Instant) {
        while !self.is_done() && Instant::now() < deadline {
            let Some(listing) = &mut self.current else {
                self.current = self.folders.pop().and_then(|(from, way)| Listing::of(from, way));
                continue;
            };
            match listing.entries.next() {
                Some(Ok(entry)) => self.count(entry.file_name()),
                Some(Err(_)) | None => self.current = None,
            }
        }
    }

    fn is_done(&self) -> bool {
        self.current.is_none() && self.folders.is_empty()
    }

    /// What the files take that were seen so far.
    fn bytes(&self) -> u64 {
        self.sum
    }

    fn count(&mut self, name: &CStr) {
        let Some(Listing { folder, from, way, .. }) = &self.current else { return };
        if [c".", c".."].contains(&name) {
            return;
        }
        let look = AtFlags::SYMLINK_NOFOLLOW;
        let Ok(found) = rustix::fs::statat(folder, name, look) else { return };
        let is_dir = FileType::from_raw_mode(found.st_mode).is_dir();
        if found.st_nlink > 1 && !is_dir && !self.seen.insert((found.st_dev, found.st_ino)) {
            return;
        }
        self.sum += u64::try_from(found.st_blocks).unwrap_or_default().saturating_mul(BLOCK);
        if is_dir {
            let way = way.join(OsStr::from_bytes(name.to_bytes()));
            self.folders.push((Rc::clone(from), way));
        }
    }
}

impl Listing {
    fn of(from: Rc<OwnedFd>, way: PathBuf) -> Option<Self> {
        const LONG: usize = 1024;
        let folder = Rc::new(open_folder(&from, &way)?);
        let entries = Dir::read_from(&folder).ok()?;
        let (from, way) = match way.as_os_str().len() > LONG {
            true => (Rc::clone(&folder), PathBuf::from(".")),
            false => (from, way),
        };
        Some(Self { entries, folder, from, way })
    }
}

/// Opens a folder of a script's. One that cannot be listed, because the script took that right
/// from everybody, can be listed afterwards: there may be anything in it.
fn open_folder(from: &OwnedFd, way: &Path) -> Option<OwnedFd> {
    // The script may put a link in place of any of these folders at any time.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let open = |flags: OFlags| {
        let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat2(from, way, flags, Mode::empty(), resolve)
    };
    match open(OFlags::RDONLY) {
        Ok(folder) => Some(folder),
        Err(Errno::ACCESS) => {
            let locked = open(OFlags::PATH).ok()?;
            let itself = format!("/proc/self/fd/{}", locked.as_raw_fd());
            rustix::fs::chmod(itself, Mode::RWXU).ok()?;
            open(OFlags::RDONLY).ok()
        }
        // Some containers do not know that call.
        Err(Errno::NOSYS | Errno::PERM) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(from, way, flags, Mode::empty()).ok()
        }
        Err(_) => None,
    }
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

/// Whether two places are on one file system.
pub(super) fn is_same_device(one: &str, other: &str) -> bool {
    let device = |place| std::fs::metadata(place).map(|found| found.dev()).ok();
    device(one) == device(other)
}

fn is_in_memory(file: &std::path::Path) -> bool {
    const TEMPORARY_FILES: u64 = 0x0102_1994;
    rustix::fs::statfs(file).is_ok_and(|found| found.f_type.cast_unsigned() == TEMPORARY_FILES)
}

fn taken(found: &std::fs::Metadata) -> u64 {
    found.blocks().saturating_mul(BLOCK)
}
