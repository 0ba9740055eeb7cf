//! A root folder that holds what a script was given, under the names it has outside, and nothing
//! else.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    unmount,
};
use rustix::process::{chdir, getgid, getuid, pivot_root};

use super::landlock::Reach;
use crate::sys;

/// The system's programs, libraries and tables. None of them holds secrets.
pub(crate) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki",
    "/etc/ssl",
    "/sys/devices/system",
];

/// What finding other machines takes.
pub(crate) const NAMES: &[&str] = &[
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
];

/// Who has which number. In a root of its own, a script finds only itself there.
pub(crate) const ACCOUNTS: [&str; 2] = ["/etc/passwd", "/etc/group"];

/// Devices that are harmless, and that programs expect.
pub(crate) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Where a script finds shared memory.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// Where the kernel shows processes.
pub(crate) const PROCESSES: &str = "/proc";

/// Where a process can change itself. The driver of graphics cards gives up where it cannot name
/// its threads there.
pub(crate) const OWN_PROCESS: &str = "/proc/self";

/// How much processor time a container has. Joblib opens these if it sees them, and fails if it
/// may not; so they can be read where they can be seen, which is without a root of one's own.
pub(crate) const PROCESSOR_TIME: &[&str] = &[
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
];

/// Where programs put temporary files that do not ask.
pub(crate) const TEMPORARY: &str = "/tmp";

/// Under which number a script sees its user where that is the superuser's.
const NOBODY_SPECIAL: u32 = 1000;

/// The new root, seen from within the temporary one in which both roots lie.
const NEW: &str = "/new";
/// The old root, likewise.
const OLD: &str = "/old";

/// Numbers of a user and a group inside namespaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    user: u32,
    group: u32,
}

impl Identity {
    /// Becomes the user of a new user namespace: the same one as outside, but never the superuser.
    pub(crate) fn assume(outside_user: u32, outside_group: u32) -> io::Result<Self> {
        let plain = |id: u32| if id == 0 { NOBODY_SPECIAL } else { id };
        let (user, group) = (plain(outside_user), plain(outside_group));
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {outside_user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {outside_group} 1"))?;
        Ok(Self { user, group })
    }

    /// The user and group of this process.
    pub(crate) fn own() -> (u32, u32) {
        (getuid().as_raw(), getgid().as_raw())
    }
}

/// What the new root is made of.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) reach: &'a Reach,
    pub(crate) identity: Identity,
    /// The folder that is also `/tmp`.
    pub(crate) temporary: &'a Utf8Path,
    pub(crate) shared_memory_bytes: u64,
}

/// Makes the new root and moves into it. The process must be alone in its namespaces.
pub(crate) fn enter(plan: &Plan<'_>) -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    named("making mounts private", mount_change("/", private))?;
    // A temporary root that has both the old one and the new one in it.
    let staging = TEMPORARY;
    temporary_files(Utf8Path::new(staging), "mode=0755,size=16m")?;
    for folder in [NEW, OLD] {
        fs::create_dir(format!("{staging}{folder}"))?;
    }
    let new = format!("{staging}{NEW}");
    named("mounting the new root", mount_bind_recursive(&new, &new))?;
    named("changing the root", pivot_root(staging, format!("{staging}{OLD}")))?;
    chdir("/")?;

    furnish(plan)?;

    chdir(NEW)?;
    named("changing the root", pivot_root(".", "."))?;
    // The old root lies on top of the new one now, and goes.
    named("leaving the old root", unmount(".", UnmountFlags::DETACH))?;
    chdir("/")?;
    named("locking the new root", sys::make_read_only(Utf8Path::new("/"), sys::Depth::Here))
}

fn furnish(plan: &Plan<'_>) -> io::Result<()> {
    let temporary = real_path(plan.temporary).ok_or(io::ErrorKind::NotFound)?;
    let place = inside(Utf8Path::new(TEMPORARY));
    fs::create_dir(&place)?;
    let mut given = plan.reach.readable.iter().chain(&plan.reach.writable);
    match given.any(|path| path.starts_with(TEMPORARY)) {
        false => bind(&temporary, &place, Access::Write)?,
        // To give something in a folder, a place is made there first, and not in theirs.
        true => temporary_files(&place, "mode=1777,size=256m")?,
    }
    for path in &plan.reach.readable {
        give(path, Access::Read)?;
    }
    for path in DEVICES.iter().map(Utf8Path::new) {
        give(path, Access::Write)?;
    }
    let size = format!("mode=1777,size={}", plan.shared_memory_bytes);
    fs::create_dir_all(inside(Utf8Path::new(SHARED_MEMORY)))?;
    temporary_files(&inside(Utf8Path::new(SHARED_MEMORY)), &size)?;
    for path in plan.reach.writable.iter().filter(|path| !path.starts_with("/dev")) {
        give(path, Access::Write)?;
    }
    for device in plan.reach.writable.iter().filter(|path| path.starts_with("/dev")) {
        if device != SHARED_MEMORY && !inside(device).exists() {
            give(device, Access::Write)?;
        }
    }

    let processes = inside(Utf8Path::new(PROCESSES));
    fs::create_dir_all(&processes)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    named("mounting /proc", mount("proc", processes.as_str(), "proc", flags, None))?;
    for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
    {
        let link = inside(Utf8Path::new("/dev")).join(name);
        fs::os::unix::fs::symlink(format!("/proc/self/{target}"), link)?;
    }

    let Identity { user, group } = plan.identity;
    fs::create_dir_all(inside(Utf8Path::new("/etc")))?;
    let passwd = format!("script:x:{user}:{group}:script:/tmp:/bin/sh\n");
    let [users, groups] = ACCOUNTS.map(|file| inside(Utf8Path::new(file)));
    fs::write(users, passwd)?;
    fs::write(groups, format!("script:x:{group}:\n"))
}

/// Makes everything under `/proc` read-only but the processes.
pub(crate) fn lock_kernel_settings() -> io::Result<()> {
    for entry in Utf8Path::new(PROCESSES).read_dir_utf8()?.flatten() {
        let is_process = entry.file_name().bytes().all(|byte| byte.is_ascii_digit());
        if is_process || entry.file_type()?.is_symlink() {
            continue;
        }
        named("locking /proc", mount_bind_recursive(entry.path().as_str(), entry.path().as_str()))?;
        named("locking /proc", sys::make_read_only(entry.path(), sys::Depth::AndBelow))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// Puts what is at `path` outside at `path` inside. What is not there outside is left out.
fn give(path: &Utf8Path, access: Access) -> io::Result<()> {
    let Some(real) = real_path(path) else { return Ok(()) };
    if access == Access::Write || !inside(&real).exists() {
        make_place(&real)?;
        bind(&real, &inside(&real), access)?;
    }
    if real != path && fs::symlink_metadata(inside(path)).is_err() {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(inside(folder))?;
        }
        fs::os::unix::fs::symlink(&real, inside(path))?;
    }
    Ok(())
}

/// `path` of the old root without links, if it exists there.
fn real_path(path: &Utf8Path) -> Option<Utf8PathBuf> {
    // Absolute links would lead out of the old root, which is not the root here.
    let mut real = Utf8PathBuf::from("/");
    let mut rest: Vec<String> = path.components().rev().map(|part| part.to_string()).collect();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        match part.as_str() {
            "/" => real = "/".into(),
            ".." => {
                real.pop();
            }
            "." => {}
            name => {
                let next = real.join(name);
                match fs::read_link(outside(&next)) {
                    Ok(target) => {
                        links += 1;
                        if links > 40 {
                            return None;
                        }
                        let target = Utf8PathBuf::from_path_buf(target).ok()?;
                        rest.extend(target.components().rev().map(|part| part.to_string()));
                    }
                    Err(_) => real = next,
                }
            }
        }
    }
    fs::symlink_metadata(outside(&real)).ok().map(|_| real)
}

/// Makes an empty folder or file inside, to mount something on.
fn make_place(real: &Utf8Path) -> io::Result<()> {
    let place = inside(real);
    if place.exists() {
        return Ok(());
    }
    if outside(real).is_dir() {
        return fs::create_dir_all(place);
    }
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::create(place).map(|_| ())
}

fn bind(real: &Utf8Path, place: &Utf8Path, access: Access) -> io::Result<()> {
    let doing =
        |error: io::Error| io::Error::new(error.kind(), format!("mounting {real}: {error}"));
    mount_bind_recursive(outside(real).as_str(), place.as_str()).map_err(|e| doing(e.into()))?;
    match access {
        Access::Write => Ok(()),
        Access::Read => sys::make_read_only(place, sys::Depth::AndBelow).map_err(doing),
    }
}

fn temporary_files(place: &Utf8Path, options: &str) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = std::ffi::CString::new(options)?;
    let mounted = mount("tmpfs", place.as_str(), "tmpfs", flags, Some(options.as_c_str()));
    named("mounting temporary files", mounted)
}

fn inside(path: &Utf8Path) -> Utf8PathBuf {
    format!("{NEW}{path}").into()
}

fn outside(path: &Utf8Path) -> Utf8PathBuf {
    format!("{OLD}{path}").into()
}

fn named<E: Into<io::Error>>(doing: &str, result: Result<(), E>) -> io::Result<()> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("{doing}: {error}"))
    })
}
