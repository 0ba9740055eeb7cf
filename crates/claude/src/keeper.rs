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
use std::io::{self, PipeReader, Write as _};
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use crate::order::told;
use crate::tree::kill_descendants;

/// How long the program may go on after the end of its input: it writes its session down.
const AFTER_INPUT: Duration = Duration::from_secs(5);
/// How long it may take to end when it is told to.
const AFTER_SIGNAL: Duration = Duration::from_secs(2);
/// How long to go on killing.
const KILLING: Duration = Duration::from_secs(5);

/// Runs the program that the first argument names with the other ones, or the one that it is
/// [told] to, and leaves nobody behind. Gives the exit code of the program.
///
/// Takes over the process: call it in `main`, before anything else is done.
pub fn keep(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(127)
        }
    }
}

// A runtime would do this in half as many lines, but every call waits until the keeper has begun.
fn run(arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    let mut command = told(arguments)()?;
    set_child_subreaper(Some(getpid()))?;
    let is_told = woken_by(&[SIGTERM])?;
    // A terminal tells everybody; the program is told by us.
    let happened = woken_by(&[SIGCHLD, SIGINT])?;
    let child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        io::Error::new(error.kind(), format!("cannot start {program}: {error}"))
    })?;
    drop(command);
    let mut kept = Kept { child, ended: None };
    kept.until_it_must_end(&is_told, &happened)?;
    if kept.ended.is_none() {
        kept.signal(Signal::TERM);
        let until = Instant::now() + AFTER_SIGNAL;
        while kept.ended.is_none() && Instant::now() < until {
            await_any(&mut [awaited(&happened)], Some(until))?;
            forget(&happened)?;
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
    /// Lets the program work until it ends, somebody tells us to end it, or nobody is left to talk
    /// to it.
    fn until_it_must_end(&mut self, told: &PipeReader, happened: &PipeReader) -> io::Result<()> {
        let stdin = io::stdin();
        let mut patience: Option<Instant> = None;
        while self.ended.is_none() && patience.is_none_or(|until| Instant::now() < until) {
            let mut descriptors = vec![awaited(told), awaited(happened)];
            if patience.is_none() {
                // Nothing is read: what is in it is for the program. Its end is told unasked.
                descriptors.push(PollFd::new(&stdin, PollFlags::empty()));
            }
            await_any(&mut descriptors, patience)?;
            let is_so =
                |number: usize| descriptors.get(number).is_some_and(|it| !it.revents().is_empty());
            let (is_told, is_closed) = (is_so(0), is_so(2));
            forget(happened)?;
            self.reap();
            if is_told {
                return Ok(());
            }
            if is_closed {
                patience = Some(Instant::now() + AFTER_INPUT);
            }
        }
        Ok(())
    }

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

/// Something that can be read as soon as one of these signals came.
fn woken_by(signals: &[i32]) -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    for &signal in signals {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}

/// Makes room for signals to come.
fn forget(signals: &PipeReader) -> io::Result<()> {
    match rustix::io::read(signals, &mut [0_u8; 64]) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn awaited(signals: &PipeReader) -> PollFd<'_> {
    PollFd::new(signals, PollFlags::IN)
}

/// Waits until something happens to one of them, at most until then.
fn await_any(descriptors: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<()> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
    match poll(descriptors, left.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
