//! Watches a script until it ends or must end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use super::disk::{Files, free_bytes, is_same_device, size_of_nameless, used_bytes};
use super::spec::{Records, Spec};
use super::start::Running;
use super::tree::{self, Process, descendants, look_at, signal_all};
use crate::capture::Capture;
use crate::limits::{FREE_DISK_BYTES, Resource, Usage};
use crate::sandbox::Tier;
use crate::sandbox::root::SHARED_MEMORY;
use crate::{Captured, Ended, sys};

/// How long a script may take to clean up after it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait for killed processes; only one stuck inside the kernel takes any time at all.
const DYING: Duration = Duration::from_secs(10);
/// How long to go on reading from a dead script: what it wrote is in the pipe already.
const DRAIN: Duration = Duration::from_millis(500);
/// How often to look at the processes: seldom while there is room, often when it gets tight.
const SELDOM: Duration = Duration::from_millis(100);
const OFTEN: Duration = Duration::from_millis(20);
/// How fast a script can fill memory, about, per second.
const FILLING: u64 = 4 << 30;
/// How seldom to look at most at files in memory that have no name.
const NAMELESS: Duration = Duration::from_secs(1);
/// How long to look at the files that a script left.
const LAST_LOOK: Duration = Duration::from_secs(2);
/// How much is read at once; a pipe holds as much.
const CHUNK_BYTES: usize = 64 * 1024;

/// A script and all that is known of it so far.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    spec: &'a Spec,
    running: Running,
    signals: OwnedFd,
    begun: Instant,
    stdout: Stream,
    stderr: Stream,
    usage: Usage,
    /// Files in memory that have no name, when they were last looked at.
    nameless_memory: u64,
    /// What was shared on the whole machine in the beginning.
    shared_before: u64,
    files: Files,
    next_look: Instant,
    next_nameless: Instant,
    chunk: Vec<u8>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Verdict {
    /// `None` if somebody stopped us.
    pub(super) ended: Option<Ended>,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) duration: Duration,
    pub(super) usage: Usage,
}

#[derive(Debug)]
struct Stream {
    capture: Capture,
    is_open: bool,
}

/// Whether we have children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Some,
}

/// Why a script ends.
#[derive(Debug)]
enum End {
    ByItself(ExitStatus),
    Cancelled,
    TimedOut,
    Exceeded { resource: Resource, used: u64, limit: u64 },
}

impl<'a> Watch<'a> {
    /// Starts the script at `script`.
    pub(super) fn begin(spec: &'a Spec, records: &Records, script: &Utf8Path) -> io::Result<Self> {
        // Orphans of the script become our children, so that they cannot get away.
        set_child_subreaper(Some(getpid()))?;
        let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD];
        let signals = sys::signals_by_descriptor(&signals)?;
        let begun = Instant::now();
        let running = Running::start(spec, script)?;
        for stream in [&running.stdout, &running.stderr] {
            rustix::io::ioctl_fionbio(stream, true)?;
        }
        let stream =
            |name| Stream { capture: Capture::with_file(records.stream(name)), is_open: true };
        Ok(Self {
            spec,
            running,
            signals,
            begun,
            stdout: stream("stdout"),
            stderr: stream("stderr"),
            usage: Usage::default(),
            nameless_memory: 0,
            shared_before: tree::shared_on_machine(),
            files: Files::below([spec.workspace.clone()]),
            next_look: begun,
            next_nameless: begun,
            chunk: vec![0; CHUNK_BYTES],
        })
    }

    /// Watches until the end, and leaves nobody behind.
    pub(super) fn until_the_end(mut self) -> io::Result<Verdict> {
        let mut end = self.wait(self.begun + self.spec.time_limit)?;
        if matches!(end, End::TimedOut) {
            let others: Vec<Pid> =
                self.processes().into_iter().filter(|&pid| !self.is_first(pid)).collect();
            signal_all(&others, Signal::TERM);
            if let End::Cancelled = self.wait(Instant::now() + GRACE)? {
                end = End::Cancelled;
            }
        }
        let status = match end {
            End::ByItself(status) => Some(status),
            End::Cancelled | End::TimedOut | End::Exceeded { .. } => None,
        };
        let status = self.kill_all(status)?;
        let duration = self.begun.elapsed();
        // What came and went between two looks.
        self.usage.memory_bytes = self.usage.memory_bytes.max(sys::largest_child_bytes());
        self.drain();
        let left = self.files.last_look(LAST_LOOK);
        self.usage.workspace_bytes = self.usage.workspace_bytes.max(left);

        let ended = match (end, status) {
            (End::Cancelled, _) => None,
            (End::TimedOut, _) => {
                let after_seconds = self.spec.time_limit.as_secs_f64();
                Some(Ended::TimedOut { after_seconds })
            }
            (End::Exceeded { resource, used, limit }, _) => {
                Some(Ended::Exceeded { resource, used, limit })
            }
            (End::ByItself(_), None) => Some(Ended::Signaled { signal: libc::SIGKILL }),
            (End::ByItself(_), Some(status)) => Some(self.how_it_ended(status)?),
        };
        Ok(Verdict {
            ended,
            stdout: self.stdout.capture.finish(),
            stderr: self.stderr.capture.finish(),
            duration,
            usage: self.usage,
        })
    }

    fn how_it_ended(&mut self, status: ExitStatus) -> io::Result<Ended> {
        match self.running.ended(status)? {
            Ended::Signaled { signal: libc::SIGXFSZ } => {
                let limit = self.spec.limits.file_bytes;
                Ok(Ended::Exceeded { resource: Resource::File, used: limit, limit })
            }
            ended @ (Ended::Exited { .. }
            | Ended::Signaled { .. }
            | Ended::TimedOut { .. }
            | Ended::Exceeded { .. }) => Ok(ended),
        }
    }

    /// Waits until the script ends, must end, or `deadline` comes.
    fn wait(&mut self, deadline: Instant) -> io::Result<End> {
        loop {
            let now = Instant::now();
            if let Some(end) = self.signaled()? {
                return Ok(end);
            }
            if let Some(status) = self.collect()?.0 {
                return Ok(End::ByItself(status));
            }
            if now >= deadline {
                return Ok(End::TimedOut);
            }
            if let Some(end) = self.exceeded(now) {
                return Ok(end);
            }
            let until = deadline.min(self.next_look).min(self.files.next_look());
            self.listen(until.saturating_duration_since(now))?;
        }
    }

    /// Reads what the script prints until nothing comes for so long, or something happens.
    fn listen(&mut self, at_most: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        let (out, err) = (self.stdout.is_open, self.stderr.is_open);
        let mut descriptors = vec![PollFd::new(&self.signals, PollFlags::IN)];
        descriptors.extend(out.then(|| PollFd::new(&self.running.stdout, PollFlags::IN)));
        descriptors.extend(err.then(|| PollFd::new(&self.running.stderr, PollFlags::IN)));
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.stdout.read(&self.running.stdout, &mut self.chunk);
        self.stderr.read(&self.running.stderr, &mut self.chunk);
        Ok(())
    }

    /// Whether somebody told us to stop.
    fn signaled(&self) -> io::Result<Option<End>> {
        let mut signal = [0_u8; 128]; // as long as the kernel's description of one
        loop {
            match rustix::io::read(&self.signals, &mut signal) {
                Ok(_) => {
                    let number = signal.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
                    if number != Some(libc::SIGCHLD) {
                        return Ok(Some(End::Cancelled));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether the script has gone beyond one of its limits.
    fn exceeded(&mut self, now: Instant) -> Option<End> {
        let limits = self.spec.limits;
        let over = |resource, used: u64, limit: u64| {
            (used > limit).then_some(End::Exceeded { resource, used, limit })
        };
        let printed = self.stdout.capture.total_bytes() + self.stderr.capture.total_bytes();
        if let Some(end) = over(Resource::Output, printed, limits.output_bytes) {
            return Some(end);
        }
        if now >= self.next_look {
            let (threads, memory) = self.look_at_processes();
            let memory_limit = limits.memory_bytes;
            let room = memory_limit.saturating_sub(memory);
            let pause = Duration::from_secs_f64(room as f64 / FILLING as f64);
            self.next_look = now + pause.clamp(OFTEN, SELDOM);
            let end = over(Resource::Processes, threads, limits.processes)
                .or_else(|| over(Resource::Memory, memory, memory_limit));
            if end.is_some() {
                return end;
            }
            let free = free_bytes(&self.spec.workspace);
            if let Some(used) = free.filter(|&free| free < FREE_DISK_BYTES) {
                let limit = FREE_DISK_BYTES;
                return Some(End::Exceeded { resource: Resource::Disk, used, limit });
            }
        }
        if now >= self.files.next_look() {
            let used = self.files.look(&self.processes());
            self.usage.workspace_bytes = self.usage.workspace_bytes.max(used);
            return over(Resource::Workspace, used, limits.workspace_bytes);
        }
        None
    }

    /// Threads and memory of all processes of the script.
    fn look_at_processes(&mut self) -> (u64, u64) {
        let processes: Vec<Process> = self.processes().into_iter().filter_map(look_at).collect();
        let threads: u64 = processes.iter().map(|process| process.threads).sum();
        let resident: u64 = processes.iter().map(|process| process.resident_bytes).sum();
        let files = self.shared_memory_files() + self.nameless_memory(&processes);
        let limits = &self.spec.limits;
        let mut memory = resident + files;
        // Shared memory can be in use without being part of any process just now. Whose it is
        // cannot be seen, only how much there is of it, and how much of it could be theirs.
        let mut unseen = tree::shared_on_machine().saturating_sub(self.shared_before);
        if memory + unseen > limits.memory_bytes {
            unseen = unseen.min(tree::shareable_bytes(&processes));
        }
        // What processes share is in there once for each of them. Counting it once takes longer.
        if memory + unseen > limits.memory_bytes
            && threads <= limits.processes // or else it ends anyway
            && let Some(exact) = tree::exact_memory(&processes)
        {
            memory = exact.private + exact.shared.max(files).max(unseen);
        }
        self.usage.memory_bytes = self.usage.memory_bytes.max(memory);
        self.usage.processes = self.usage.processes.max(threads);
        (threads, memory)
    }

    /// What files take that are in memory and have no name. Many open files take long to look at.
    fn nameless_memory(&mut self, processes: &[Process]) -> u64 {
        let now = Instant::now();
        if now >= self.next_nameless {
            let processes: Vec<Pid> = processes.iter().map(|process| process.pid).collect();
            self.nameless_memory = size_of_nameless(&processes).memory;
            self.next_nameless = now + (now.elapsed() * 10).min(NAMELESS);
        }
        self.nameless_memory
    }

    /// What is in the script's own `/dev/shm`.
    fn shared_memory_files(&self) -> u64 {
        if self.spec.confinement.tier != Tier::Strong {
            return 0;
        }
        let theirs = format!("/proc/{}/root{SHARED_MEMORY}", self.running.top.as_raw_pid());
        // In its very beginning the first process still sees the machine's.
        match is_same_device(&theirs, SHARED_MEMORY) {
            true => 0,
            false => used_bytes(&theirs).unwrap_or(0),
        }
    }

    fn processes(&self) -> Vec<Pid> {
        descendants(getpid())
    }

    /// Whether this is the first process of the namespaces, which is ours.
    fn is_first(&self, pid: Pid) -> bool {
        self.spec.confinement.tier == Tier::Strong && pid == self.running.top
    }

    /// Kills every process of the script and collects them all: then there is none left. Gives the
    /// status of the top one.
    fn kill_all(&mut self, mut status: Option<ExitStatus>) -> io::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        if status.is_none() {
            // With the first process of a namespace, all others go.
            kill_process(self.running.top, Signal::KILL).ok();
        }
        loop {
            let (top, left) = self.collect()?;
            status = status.or(top);
            if left == Left::Nobody || begun.elapsed() > DYING {
                return Ok(status);
            }
            signal_all(&self.processes(), Signal::KILL);
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Collects all children that have ended, orphans among them. Gives the status of the top
    /// process if it was one of them, and whether any child is left.
    fn collect(&self) -> io::Result<(Option<ExitStatus>, Left)> {
        let mut top = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.running.top => {
                    top = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Ok((top, Left::Some)),
                Err(rustix::io::Errno::CHILD) => return Ok((top, Left::Nobody)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what is left in the pipes.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        while (self.stdout.is_open || self.stderr.is_open) && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            if self.signaled().and_then(|_| self.listen(left)).is_err() {
                return;
            }
        }
    }
}

impl Stream {
    /// Reads what there is, but not for ever: a script can print faster than we read.
    fn read(&mut self, from: &impl AsFd, chunk: &mut [u8]) {
        for _ in 0..16 {
            if !self.is_open {
                return;
            }
            match rustix::io::read(from, &mut *chunk) {
                Ok(0) => self.is_open = false,
                Ok(length) => self.capture.push(chunk.get(..length).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.is_open = false,
            }
        }
    }
}
