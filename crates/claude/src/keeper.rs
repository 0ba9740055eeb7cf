//! A small process between us and the program, which leaves nothing of it behind.
//!
//! Three things go wrong without it. If we are killed, the program reads the end of its input, but
//! goes on with what it is doing, and with what that costs. If the program is killed, its shells
//! go on: they are in sessions of their own. And what a shell has put into the background belongs
//! to nobody when the shell ends.
//!
//! The keeper starts the program with its own standard streams, adopts every process that loses
//! its parent, and ends all of them when the program ends, when it is told to (`SIGTERM`), or when
//! the writing side of its standard input is closed, which happens however we die.
//!
//! It is our own program started again, or the program `claude-keeper` that comes with this crate;
//! see [`Launch`](crate::Launch). It does not hold a process that has the right to kill it: that is
//! what a sandbox is for.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::tree::kill_descendants;

/// How long the program may go on after the end of its input: it writes its session down.
const AFTER_INPUT: Duration = Duration::from_secs(5);
/// How long it may take to end when it is told to.
const AFTER_SIGNAL: Duration = Duration::from_secs(2);
/// How long to go on killing.
const KILLING: Duration = Duration::from_secs(5);
/// How often the standard input is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the program that the first argument names with the other ones, and leaves nobody behind.
/// Gives the exit code of the program.
///
/// Takes over the process: call it in `main`, before anything else is done.
pub fn keep(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = runtime.and_then(|runtime| runtime.block_on(run(arguments.into_iter())));
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(127)
        }
    }
}

async fn run(mut arguments: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let program = arguments.next().ok_or_else(|| io::Error::other("no program to keep"))?;
    set_child_subreaper(Some(getpid()))?;
    let mut told = signal(SignalKind::terminate())?;
    let mut children = signal(SignalKind::child())?;
    // A terminal tells everybody; the program is told by us.
    let mut interrupts = signal(SignalKind::interrupt())?;
    let child = Command::new(&program).args(arguments).spawn().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot start {}: {error}", program.display()))
    })?;
    let mut kept = Kept { child, ended: None };

    let mut is_told = false;
    let mut closed: Option<Instant> = None;
    while kept.ended.is_none() && !is_told {
        tokio::select! {
            _ = told.recv() => is_told = true,
            _ = interrupts.recv() => {}
            _ = children.recv() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        kept.reap();
        if closed.is_none() && input_is_closed() {
            closed = Some(Instant::now());
        }
        is_told |= closed.is_some_and(|since| since.elapsed() > AFTER_INPUT);
    }
    if kept.ended.is_none() {
        kept.signal(Signal::TERM);
        let begun = Instant::now();
        while kept.ended.is_none() && begun.elapsed() < AFTER_SIGNAL {
            tokio::time::sleep(Duration::from_millis(10)).await;
            kept.reap();
        }
    }
    // Whoever is left has become our child, so there is nobody to look for if we have none.
    if kept.reap() == Left::Somebody {
        kill_descendants(getpid(), KILLING, || _ = kept.reap());
    }
    Ok(kept.ended.unwrap_or(128 + 9))
}

/// Whether there are children that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
}

/// The program, and how it ended if it has.
#[derive(Debug)]
struct Kept {
    child: Child,
    ended: Option<u8>,
}

impl Kept {
    /// Collects every child that has ended: the program, and whoever was adopted.
    fn reap(&mut self) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if Some(pid) == Pid::from_raw(self.child.id().cast_signed()) {
                        self.ended = Some(code(status));
                    }
                }
                Err(Errno::CHILD) => return Left::Nobody,
                Ok(None) | Err(_) => return Left::Somebody,
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            kill_process(pid, signal).ok(); // it may be gone by now
        }
    }
}

/// As a shell says it.
fn code(status: WaitStatus) -> u8 {
    let signaled = status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or(signaled).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Whether nobody can write to our standard input any more. Nothing is read: what is in it is for
/// the program.
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
