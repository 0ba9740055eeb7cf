//! Starts a program inside its confinement: a script, or the program of an agent.
//!
//! In the strong tier there is one more process: the first of the new namespaces. It furnishes the
//! root folder, starts the program, waits for it, and tells us by a pipe how it ended. With it
//! everything in the namespaces dies, and it dies with us. If the program may reach one port, the
//! first process waits there for connections on our behalf: it hands us the socket, and dials nobody.

use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, WaitOptions, wait};
use serde::{Deserialize, Serialize};

use super::landlock::Reach;
use super::lockdown::{Lockdown, die_with_parent};
use super::root::{
    self, ACCOUNTS, Identity, NAMES, OWN_PROCESS, PROCESSES, PROCESSOR_TIME, Plan, SHARED_MEMORY,
    SYSTEM, TEMPORARY,
};
use super::seccomp::Filters;
use super::{Confinement, Network, Tier};
use crate::Ended;
use crate::limits::Limits;
use crate::sys::{self, Split};

/// The kernel takes no more as the size of temporary files, and no machine has it.
const MOST_SHARED_MEMORY: u64 = 1 << 50;

/// The exit code of a process that did not become what it should; nobody sees it but who looks at
/// processes.
const NOT_STARTED: u8 = 127;

/// What a program is held by.
#[derive(Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) confinement: &'a Confinement,
    pub(crate) limits: &'a Limits,
    pub(crate) cores: &'a [usize],
    /// What it may read beside what the confinement says.
    pub(crate) readable: &'a [Utf8PathBuf],
    /// Where it may do anything.
    pub(crate) writable: &'a [Utf8PathBuf],
    /// The folder that is also `/tmp`.
    pub(crate) temporary: &'a Utf8Path,
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Inmate {
    /// The process whose end is the program's: itself, or the first process of its namespaces.
    pub(crate) top: Pid,
    /// Where it connects to the port that it may reach, if that is not the machine's own.
    pub(crate) port: Option<TcpListener>,
    /// Is closed when the program takes over; before that, it is told here why it cannot.
    begun: PipeReader,
    /// By which the first process of the namespaces tells how the program ended.
    told: Option<PipeReader>,
}

/// How a program ended, or why it did not begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Told {
    Exited(i32),
    Signaled(i32),
    Failed(String),
}

impl Inmate {
    /// What is closed when the program takes over from what prepared all for it.
    pub(crate) fn begun(&self) -> BorrowedFd<'_> {
        self.begun.as_fd()
    }

    /// How the program ended, given how the top process did.
    pub(crate) fn ended(&mut self, status: ExitStatus) -> io::Result<Ended> {
        let failed = heard(&mut self.begun)?;
        let told = self.told.take().map(heard).transpose()?.flatten();
        match failed.or(told) {
            Some(Told::Exited(code)) => Ok(Ended::Exited { code }),
            Some(Told::Signaled(signal)) => Ok(Ended::Signaled { signal }),
            Some(Told::Failed(reason)) => Err(io::Error::other(reason)),
            None => Ok(ended(status)), // it is the program's own, or was killed before it could tell
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited { code },
        (None, signal) => Ended::Signaled { signal: signal.unwrap_or_default() },
    }
}

impl Cell<'_> {
    /// Starts inside what `command` gives, which is asked when all is prepared.
    pub(crate) fn start(
        &self,
        command: impl FnOnce() -> io::Result<Command>,
    ) -> io::Result<Inmate> {
        let lockdown = self.lockdown()?;
        match self.confinement.tier {
            Tier::Strong => self.start_in_namespaces(command, lockdown),
            Tier::Fallback | Tier::Limits | Tier::Off => self.start_here(command, lockdown),
        }
    }

    fn start_here(
        &self,
        command: impl FnOnce() -> io::Result<Command>,
        mut lockdown: Lockdown,
    ) -> io::Result<Inmate> {
        lockdown.reach.readable.push(PROCESSES.into());
        lockdown.reach.readable.extend(ACCOUNTS.map(Utf8PathBuf::from));
        if !self.confinement.devices.is_empty() {
            lockdown.reach.writable.push(OWN_PROCESS.into());
        }
        lockdown.reach.readable.extend(PROCESSOR_TIME.iter().map(Utf8PathBuf::from));
        let (begun, fail) = io::pipe()?;
        let top = start(fail, || {
            die_with_parent()?;
            lockdown.enter()?;
            command()
        })?;
        Ok(Inmate { top, port: None, begun, told: None })
    }

    fn start_in_namespaces(
        &self,
        command: impl FnOnce() -> io::Result<Command>,
        mut lockdown: Lockdown,
    ) -> io::Result<Inmate> {
        let mut namespaces = libc::CLONE_NEWUSER
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS;
        if self.confinement.network != Network::Allow {
            namespaces |= libc::CLONE_NEWNET;
        }
        let (told, mut tell) = io::pipe()?;
        let (begun, fail) = io::pipe()?;
        let (mut wait_for_go, mut go) = io::pipe()?;
        let (get, give) = UnixStream::pair()?;
        let outside = Identity::own();
        match sys::split(namespaces)? {
            Split::Parent(first) => {
                drop((give, fail));
                go.write_all(b"!")?;
                let port = match self.confinement.network {
                    Network::Port(_) => receive_socket(&get)?,
                    Network::Deny | Network::Allow => None,
                };
                Ok(Inmate { top: first, port, begun, told: Some(told) })
            }
            Split::Child => {
                drop((told, begun, go, get));
                // If the supervisor died before this, there is nobody to say go.
                let ready = die_with_parent().and_then(|()| wait_for_go.read_exact(&mut [0]));
                let said = ready
                    .and_then(|()| self.furnish(outside, &lockdown.reach))
                    .and_then(|()| self.hand_over_port(give))
                    .and_then(|()| {
                        // Now that these are theirs.
                        lockdown.reach.writable.push(TEMPORARY.into());
                        lockdown.reach.readable.push(PROCESSES.into());
                        lockdown.reach.readable.extend(ACCOUNTS.map(Utf8PathBuf::from));
                        if !self.confinement.devices.is_empty() {
                            lockdown.reach.writable.push(PROCESSES.into());
                        }
                        // It may do as it likes in a network of its own.
                        lockdown.reach.network = Network::Allow;
                        run_to_its_end(fail, || {
                            lockdown.enter()?;
                            command()
                        })
                    });
                let said = said.unwrap_or_else(|error| Told::Failed(error.to_string()));
                sys::end_at_once(if say(&said, &mut tell).is_ok() { 0 } else { 1 })
            }
        }
    }

    /// Prepares the inside of new namespaces.
    fn furnish(&self, (user, group): (u32, u32), reach: &Reach) -> io::Result<()> {
        let identity = Identity::assume(user, group)?;
        if self.confinement.network != Network::Allow {
            sys::bring_up_loopback()?;
        }
        rustix::system::sethostname(b"sandbox").ok(); // only a name
        root::enter(&Plan {
            reach,
            identity,
            temporary: self.temporary,
            shared_memory_bytes: self.limits.memory_bytes.min(MOST_SHARED_MEMORY),
        })?;
        bound_processes(self.limits.processes);
        // A script that must die for want of memory dies before anything else here does.
        fs_err::write("/proc/self/oom_score_adj", "1000").ok();
        // To the kernel, the superuser's number without any capability may still change its
        // settings, which are the whole machine's.
        match self.confinement.devices.is_empty() {
            true => sys::make_read_only(Utf8Path::new(PROCESSES), sys::Depth::Here),
            false => root::lock_kernel_settings(),
        }
    }

    /// Waits at the port in the new network. Who connects there talks to whoever gets the socket.
    fn hand_over_port(&self, give: UnixStream) -> io::Result<()> {
        let Network::Port(port) = self.confinement.network else { return Ok(()) };
        send_socket(&give, &TcpListener::bind((Ipv4Addr::LOCALHOST, port))?)
    }

    /// What the program gives up.
    fn lockdown(&self) -> io::Result<Lockdown> {
        let tier = self.confinement.tier;
        let filters = match tier {
            Tier::Strong => Some(Filters::new(self.confinement.network, true)?),
            Tier::Fallback => Some(Filters::new(self.confinement.network, false)?),
            Tier::Limits | Tier::Off => None,
        };
        Ok(Lockdown {
            tier,
            cores: self.cores.to_vec(),
            largest_file: self.limits.file_bytes,
            reach: self.reach(),
            filters,
        })
    }

    /// What the program may touch.
    fn reach(&self) -> Reach {
        let Confinement { network, readable: also, devices, shared, .. } = self.confinement;
        let all = |paths: &[&str]| paths.iter().map(Utf8PathBuf::from).collect::<Vec<_>>();
        let mut readable = all(SYSTEM);
        if *network == Network::Allow {
            readable.extend(all(NAMES));
        }
        if !devices.is_empty() {
            readable.push("/sys".into()); // drivers look for their devices there
        }
        readable.extend(also.iter().cloned());
        readable.extend(self.readable.iter().cloned());
        let mut writable = all(&[SHARED_MEMORY]);
        writable.extend(all(root::DEVICES));
        writable.extend(devices.iter().cloned());
        writable.extend(self.writable.iter().cloned());
        writable.extend(shared.clone());
        Reach { readable, writable, network: *network }
    }
}

fn send_socket(way: &UnixStream, socket: &TcpListener) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let sockets = [socket.as_fd()];
    message.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(way, &[IoSlice::new(b"!")], &mut message, SendFlags::empty())?;
    Ok(())
}

/// `None` if the other side has gone, which says elsewhere why.
fn receive_socket(way: &UnixStream) -> io::Result<Option<TcpListener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(way, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = message.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(mut sockets) = message else { return None };
        sockets.next()
    });
    Ok(sockets.map(TcpListener::from))
}

/// Kernels since 6.14 count the processes of each namespace by themselves.
fn bound_processes(most: u64) {
    const LEAST: u64 = 301; // the kernel takes no less
    // On an older one this would be the limit of the whole machine.
    if kernel_version() >= (6, 14) {
        fs_err::write("/proc/sys/kernel/pid_max", most.max(LEAST).to_string()).ok();
    }
}

fn kernel_version() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|it: char| !it.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (0, 0),
    }
}

/// Starts a process that becomes what `command` gives. If it cannot, it tells why.
fn start(mut fail: PipeWriter, command: impl FnOnce() -> io::Result<Command>) -> io::Result<Pid> {
    match sys::split(0)? {
        Split::Parent(program) => Ok(program),
        Split::Child => {
            let reason = match command() {
                Ok(mut command) => {
                    let error = command.exec();
                    let folder = command.get_current_dir().filter(|folder| !folder.is_dir());
                    let missing = folder.map_or(command.get_program(), |folder| folder.as_os_str());
                    format!("{}: {error}", missing.display())
                }
                Err(error) => error.to_string(),
            };
            say(&Told::Failed(reason), &mut fail).ok(); // there is nobody else to tell
            sys::end_at_once(NOT_STARTED)
        }
    }
}

fn say(told: &Told, to: &mut impl Write) -> io::Result<()> {
    to.write_all(serde_json::to_string(told)?.as_bytes())
}

/// What was said, if anything was.
fn heard(mut from: impl Read) -> io::Result<Option<Told>> {
    let mut text = String::new();
    from.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text).ok())
}

/// The life of the first process: starts the program, and collects orphans until it ends.
fn run_to_its_end(
    fail: PipeWriter,
    command: impl FnOnce() -> io::Result<Command>,
) -> io::Result<Told> {
    let program = start(fail, command)?;
    let_go_of_streams()?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                return Ok(match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Told::Exited(code),
                    (None, signal) => Told::Signaled(signal.unwrap_or_default()),
                });
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whoever waits for the end of our own streams waits for the program alone.
fn let_go_of_streams() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}
