//! The few calls to the system for which there is no safe function. All unsafe code is here.

#![expect(unsafe_code, reason = "each function says why it is sound")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use camino::Utf8Path;
use rustix::process::Pid;

/// The two processes that there are after [`split`].
pub(crate) enum Split {
    /// The one that called it, with the other one's number.
    Parent(Pid),
    /// The new one: the first process of its namespaces, if it has any of its own.
    Child,
}

/// Makes a copy of this process that is alone in new namespaces of these kinds.
///
/// Only for a process with one thread: other threads may hold locks that the copy needs.
pub(crate) fn split(namespaces: libc::c_int) -> io::Result<Split> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    let none = 0 as libc::c_long;
    // SAFETY: without CLONE_VM the child has its own copy of all memory, as after fork. There is
    // one thread, so nothing in that copy is locked or half-written.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    let pid = i32::try_from(pid).ok().filter(|&pid| pid >= 0);
    let pid = pid.ok_or_else(io::Error::last_os_error)?;
    Ok(Pid::from_raw(pid).map_or(Split::Child, Split::Parent)) // there is no number 0
}

/// Ends this process, and does nothing else: what its copy or its original has still to do is left to
/// that.
pub(crate) fn end_at_once(code: u8) -> ! {
    // SAFETY: returns to nobody, and runs nothing of this program.
    unsafe { libc::_exit(i32::from(code)) }
}

/// How far a change of a mount goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// This mount alone.
    Here,
    /// Also what is mounted inside it.
    AndBelow,
}

/// Makes what is mounted at `path` read-only.
pub(crate) fn make_read_only(path: &Utf8Path, depth: Depth) -> io::Result<()> {
    let path = std::ffi::CString::new(path.as_str())?;
    // SAFETY: plain numbers, for which zero is a value.
    let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
    let flags = match depth {
        Depth::Here => 0,
        Depth::AndBelow => libc::AT_RECURSIVE,
    };
    attributes.attr_set = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
    // SAFETY: the path ends with a zero byte, the attributes are as long as is said, and both
    // live until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Switches on the loopback device of a new network namespace.
pub(crate) fn bring_up_loopback() -> io::Result<()> {
    // SAFETY: creates a descriptor, which is ours to close.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: plain numbers and a name, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes_with_nul()) {
        *to = from.cast_signed() as libc::c_char;
    }
    let up = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
    request.ifr_ifru.ifru_flags = up;
    // SAFETY: the request is of the type that this call takes, and lives until it returns.
    let result = unsafe {
        libc::ioctl(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            libc::SIOCSIFFLAGS,
            &raw const request,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Signals that arrive by a descriptor from now on, instead of interrupting this process.
pub(crate) fn signals_by_descriptor(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: a set of signals is initialised by the first call and only changed after that. The
    // descriptor that is returned is new and ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let descriptor = libc::signalfd(-1, &raw const set, flags);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Lets all signals through again.
pub(crate) fn unblock_signals() {
    // SAFETY: as above; the set is empty, which blocks nothing.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Has every descriptor but the standard ones close when a program takes over.
pub(crate) fn close_on_exec() {
    let flag = libc::c_long::from(libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: marks descriptors and closes none. On kernels without the call, those that we open
    // are marked already.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3 as libc::c_long, libc::c_long::from(u32::MAX), flag)
    };
}

/// Which version of Landlock the kernel has; 0 if none.
pub(crate) fn landlock_version() -> u32 {
    const ASK_FOR_VERSION: libc::c_long = 1;
    // SAFETY: with this flag and no attributes, the call returns a number and does nothing else.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0 as libc::c_long,
            ASK_FOR_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// The memory of the largest process that was collected so far.
pub(crate) fn largest_child_bytes() -> u64 {
    // SAFETY: plain numbers, for which zero is a value, filled in by a call that takes that type.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_maxrss).unwrap_or_default() * 1024
}
