//! Holds a program that works for long and is talked to through its standard streams, such as the
//! one behind an agent, by the same means as scripts.
//!
//! Between us and the program stands a process with one thread: our own program started again, which
//! calls [`hold`]. It can be started before anybody knows what it is to hold, so that all is prepared
//! by then. The program has the standard streams of that process. It is ended, with every process
//! that it started, when it ends by itself, when the holder is told to (`SIGTERM`), or
//! when the writing side of the holder's standard input is closed, which happens however we die.
//!
//! A program that goes beyond its limits is not ended: what it has started is. It will hear of that
//! as of any other failure.
//!
//! Deliberately absent: a limit of time (whoever talks to the program knows when to stop), and
//! anything that is kept of what it says.

mod relay;

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use serde::{Deserialize, Serialize};

use self::relay::Relay;
use crate::limits::{FREE_DISK_BYTES, Limits, Resource};
use crate::sandbox::cell::{Cell, Inmate};
use crate::sandbox::{Confinement, Gap, Network, Tier, gaps};
use crate::shim::disk::{Files, free_bytes};
use crate::shim::tree::{Process, descendants, exact_memory, look_at, signal_all};
use crate::{Ended, sys};

/// How long a program may go on after the end of its input.
const AFTER_INPUT: Duration = Duration::from_secs(5);
/// How long it may take to end when it is told to.
const AFTER_SIGNAL: Duration = Duration::from_secs(2);
/// How long to wait for killed processes; only one stuck inside the kernel takes any time at all.
const DYING: Duration = Duration::from_secs(10);
/// How often to look at the processes.
const LOOK: Duration = Duration::from_millis(200);

/// What shells read when they start.
const OF_SHELLS: [&str; 5] =
    ["/etc/bash.bashrc", "/etc/bashrc", "/etc/profile", "/etc/profile.d", "/etc/inputrc"];

/// How a program is to be held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    confinement: Confinement,
    limits: Limits,
    writable: Vec<Utf8PathBuf>,
    temporary: Utf8PathBuf,
}

impl Hold {
    /// As scripts are held.
    pub(crate) fn new(mut confinement: Confinement, limits: Limits) -> Self {
        confinement.network = Network::Deny;
        confinement.shared = None;
        if confinement.tier == Tier::Fallback {
            // What can be seen and not read makes shells complain, whatever they are used for.
            confinement.readable.extend(OF_SHELLS.iter().map(Utf8PathBuf::from));
        }
        Self { confinement, limits, writable: Vec::new(), temporary: Utf8PathBuf::new() }
    }

    /// It has this folder for temporary files. There must be one.
    #[must_use]
    pub fn keeping_temporary_files_in(mut self, folder: impl Into<Utf8PathBuf>) -> Self {
        self.temporary = folder.into();
        self.writable.push(self.temporary.clone());
        self
    }

    /// It may also read these, and what is in them.
    #[must_use]
    pub fn reading(mut self, paths: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.confinement.readable.extend(paths);
        self
    }

    /// It may do anything in this folder.
    #[must_use]
    pub fn writing(mut self, folder: impl Into<Utf8PathBuf>) -> Self {
        self.writable.push(folder.into());
        self
    }

    /// It may reach this.
    #[must_use]
    pub fn reaching(mut self, network: Network) -> Self {
        self.confinement.network = network;
        self
    }

    /// How tightly it is held.
    pub fn tier(&self) -> Tier {
        self.confinement.tier
    }

    /// What it can do although it should not.
    pub fn gaps(&self) -> Vec<Gap> {
        gaps(self.confinement.tier, self.confinement.network)
    }

    /// Writes down what the process that holds the program is told: [`hold`] is given this file, which
    /// the program must not be able to write to.
    pub fn write(&self, file: &Utf8Path) -> io::Result<()> {
        fs_err::write(file, serde_json::to_vec(self)?)
    }
}

/// Runs a program as `file` says. Gives its exit code, or 127 if it could not be started.
///
/// Which program that is may be found out late: `program` is called when all is prepared for it,
/// with the file system of the program. It may wait for as long as it likes, but not for anybody
/// who has given up: then it must fail.
///
/// Takes over the process, which must have one thread: call it first in `main`.
pub fn hold(file: impl AsRef<Path>, program: impl FnOnce() -> io::Result<Command>) -> ExitCode {
    match carry_out(file.as_ref(), program) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(127)
        }
    }
}

fn carry_out(file: &Path, program: impl FnOnce() -> io::Result<Command>) -> io::Result<u8> {
    let how: Hold = serde_json::from_slice(&fs_err::read(file)?)?;
    // Orphans of the program become our children, so that they cannot get away.
    set_child_subreaper(Some(getpid()))?;
    let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD];
    let signals = sys::signals_by_descriptor(&signals)?;
    let cell = Cell {
        confinement: &how.confinement,
        limits: &how.limits,
        cores: &[],
        readable: &[],
        writable: &how.writable,
        temporary: &how.temporary,
    };
    let failed = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot start the program: {error}"))
    };
    let mut inmate = cell.start(program).map_err(failed)?;
    let relay = match (inmate.port.take(), how.confinement.network) {
        (Some(port), Network::Port(number)) => {
            Some(Relay::new(port, SocketAddr::from((Ipv4Addr::LOCALHOST, number)))?)
        }
        (_, Network::Port(_) | Network::Deny | Network::Allow) => None,
    };
    let files = Files::below(how.writable.iter().cloned());
    let mut held = Held {
        how: &how,
        inmate,
        is_begun: false,
        signals,
        relay,
        ended: None,
        next_look: None,
        files,
    };
    held.until_it_must_end()?;
    held.end()?;
    match held.ended {
        Some(status) => held.inmate.ended(status).map(code).map_err(failed),
        None => Ok(128 + 9),
    }
}

/// As a shell says it.
fn code(ended: Ended) -> u8 {
    match ended {
        Ended::Exited { code } => u8::try_from(code).unwrap_or(1),
        Ended::Signaled { signal } => u8::try_from(128 + signal).unwrap_or(1),
        Ended::TimedOut { .. } | Ended::Exceeded { .. } => 1,
    }
}

/// A program at work.
struct Held<'a> {
    how: &'a Hold,
    inmate: Inmate,
    /// Whether the program has taken over. Until then, however long it takes, there is nothing to
    /// look at.
    is_begun: bool,
    signals: OwnedFd,
    relay: Option<Relay>,
    ended: Option<ExitStatus>,
    next_look: Option<Instant>,
    /// All that it may write.
    files: Files,
}

impl Held<'_> {
    /// Lets the program work until it ends, somebody tells us to end it, or nobody is left to talk
    /// to it.
    fn until_it_must_end(&mut self) -> io::Result<()> {
        let mut closed: Option<Instant> = None;
        loop {
            let at_most = (self.is_begun || closed.is_some()).then_some(LOOK);
            let is_told = self.listen(at_most, closed.is_none())?;
            self.collect()?;
            if closed.is_none() && input_is_closed() {
                closed = Some(Instant::now());
            }
            let is_over = closed.is_some_and(|since| since.elapsed() > AFTER_INPUT);
            if self.ended.is_some() || is_told || is_over {
                return Ok(());
            }
            self.look();
        }
    }

    /// Tells the program to end if it has not, and leaves nothing of it behind.
    fn end(&mut self) -> io::Result<()> {
        if self.ended.is_none() {
            if let Some(program) = self.program() {
                kill_process(program, Signal::TERM).ok(); // it may be gone by now
            }
            let until = Instant::now() + AFTER_SIGNAL;
            while self.ended.is_none() && Instant::now() < until {
                self.listen(Some(Duration::from_millis(10)), false)?;
                self.collect()?;
            }
        }
        if self.ended.is_none() {
            // With the first process of a namespace, all others go.
            kill_process(self.inmate.top, Signal::KILL).ok();
        }
        let begun = Instant::now();
        while self.collect()? == Left::Some && begun.elapsed() < DYING {
            signal_all(&descendants(getpid()), Signal::KILL);
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    /// Passes on what the program sends and gets, at most so long, or until something happens. Says
    /// whether somebody told us to stop.
    fn listen(&mut self, at_most: Option<Duration>, to_input: bool) -> io::Result<bool> {
        let timeout = at_most.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        let (stdin, begun) = (io::stdin(), self.inmate.begun());
        let mut descriptors = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if to_input {
            // Nothing is read: what is in it is for the program. Its end is told unasked.
            descriptors.push(PollFd::new(&stdin, PollFlags::empty()));
        }
        if let Some(relay) = &self.relay {
            relay.awaited(&mut descriptors);
        }
        if !self.is_begun {
            // The last one, so that it can be told from the others.
            descriptors.push(PollFd::from_borrowed_fd(begun, PollFlags::empty()));
        }
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.is_begun |= descriptors.last().is_some_and(|it| it.revents().contains(PollFlags::HUP));
        if let Some(relay) = &mut self.relay {
            relay.pass_on();
        }
        self.is_told()
    }

    /// Whether a signal came other than that of a child's end.
    fn is_told(&self) -> io::Result<bool> {
        let mut signal = [0_u8; 128]; // as long as the kernel's description of one
        let mut is_told = false;
        loop {
            match rustix::io::read(&self.signals, &mut signal) {
                Ok(_) => {
                    let number = signal.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
                    // A terminal tells everybody; the program is told by us.
                    is_told |= !matches!(number, Some(libc::SIGCHLD | libc::SIGINT));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(is_told),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The process of the program itself.
    fn program(&self) -> Option<Pid> {
        match self.how.confinement.tier {
            Tier::Strong => descendants(self.inmate.top).first().copied(),
            Tier::Fallback | Tier::Limits | Tier::Off => Some(self.inmate.top),
        }
    }

    /// Collects all children that have ended, orphans among them.
    fn collect(&mut self) -> io::Result<Left> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.inmate.top => {
                    self.ended = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Ok(Left::Some),
                Err(rustix::io::Errno::CHILD) => return Ok(Left::Nobody),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills what the program has started if all of it together goes beyond the limits.
    fn look(&mut self) {
        if !self.is_begun {
            return;
        }
        let now = Instant::now();
        // In its very beginning it needs its time more than we do.
        if now < *self.next_look.get_or_insert(now + LOOK) {
            return;
        }
        self.next_look = Some(now + LOOK);
        let all = descendants(getpid());
        let processes: Vec<Process> = all.iter().copied().filter_map(look_at).collect();
        let limits = &self.how.limits;
        let written = || match now >= self.files.next_look() {
            true => over(Resource::Workspace, self.files.look(&all), limits.workspace_bytes),
            false => None,
        };
        let exceeded = exceeded(&processes, limits).or_else(written);
        let Some((what, why)) = exceeded.or_else(|| lack_of_disk(&self.how.temporary)) else {
            return;
        };
        let kept = [Some(self.inmate.top), self.program()];
        let (kept, started): (Vec<Pid>, Vec<Pid>) =
            all.into_iter().partition(|pid| kept.contains(&Some(*pid)));
        let killed = match (started.is_empty(), what) {
            (false, _) => started,
            (true, Resource::Memory | Resource::Processes) => kept,
            // By itself it writes next to nothing, and what others have written stays.
            (true, Resource::Workspace | Resource::Disk | Resource::File | Resource::Output) => {
                return;
            }
        };
        writeln!(io::stderr(), "what it had started was killed: all of it {why}").ok();
        signal_all(&killed, Signal::KILL);
    }
}

/// Which limit these processes have gone beyond, also in words.
fn exceeded(processes: &[Process], limits: &Limits) -> Option<(Resource, String)> {
    let threads: u64 = processes.iter().map(|process| process.threads).sum();
    let mut memory: u64 = processes.iter().map(|process| process.resident_bytes).sum();
    if memory > limits.memory_bytes
        && let Some(exact) = exact_memory(processes)
    {
        memory = exact.private + exact.shared;
    }
    over(Resource::Processes, threads, limits.processes)
        .or_else(|| over(Resource::Memory, memory, limits.memory_bytes))
}

fn lack_of_disk(place: &Utf8Path) -> Option<(Resource, String)> {
    let free = free_bytes(place).filter(|&free| free < FREE_DISK_BYTES)?;
    Some((Resource::Disk, Resource::Disk.exceeded(free, FREE_DISK_BYTES)))
}

fn over(resource: Resource, used: u64, limit: u64) -> Option<(Resource, String)> {
    (used > limit).then(|| (resource, resource.exceeded(used, limit)))
}

/// Whether we have children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Some,
}

/// Whether nobody can write to our standard input any more.
fn input_is_closed() -> bool {
    let stdin = io::stdin();
    let mut descriptors = [PollFd::new(&stdin, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let [descriptor] = match poll(&mut descriptors, Some(&now)) {
        Ok(_) => descriptors,
        Err(_) => return false,
    };
    descriptor.revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
