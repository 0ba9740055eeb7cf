//! What befalls a run from outside.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use camino::Utf8Path;
use fs_err as fs;
use rustix::process::Signal;

use crate::handicap::Handicap;
use crate::place::{Ended, Life, Place};
use crate::processes::{self, Part};
use crate::random::Random;
use crate::tracer::{Tracer, can_trace};

/// What a run says that can go on as soon as something else is mended.
const TO_GO_ON: &str = "hint: when that is mended: mle-star resume";

/// Something that happens to the processes or the files of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Fault {
    KillOrchestrator,
    KillSupervisor,
    KillKeeper,
    KillCli,
    KillScript,
    PauseOrchestrator,
    PauseSupervisor,
    PauseCli,
    PauseScript,
    Terminate,
    Interrupt,
    InterruptTwice,
    TwoResumes,
    DeleteWorkspaces,
    DeleteWorkspacesWhileDown,
    DiskFull,
    ReadOnly,
    JournalCut,
    JournalUnwritten,
    JournalUnsynced,
    JournalUnsyncedAtStart,
    NoProcesses,
    NoProcessesAtStart,
}

/// What came of a fault.
#[derive(Debug)]
pub enum Aftermath {
    /// The run was over before.
    TooLate(Life),
    /// The process goes on.
    Alive(Life),
    /// The process ended, and the run is to be resumed.
    Down,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::KillOrchestrator,
        Self::KillSupervisor,
        Self::KillKeeper,
        Self::KillCli,
        Self::KillScript,
        Self::PauseOrchestrator,
        Self::PauseSupervisor,
        Self::PauseCli,
        Self::PauseScript,
        Self::Terminate,
        Self::Interrupt,
        Self::InterruptTwice,
        Self::TwoResumes,
        Self::DeleteWorkspaces,
        Self::DeleteWorkspacesWhileDown,
        Self::DiskFull,
        Self::ReadOnly,
        Self::JournalCut,
        Self::JournalUnwritten,
        Self::JournalUnsynced,
        Self::JournalUnsyncedAtStart,
        Self::NoProcesses,
        Self::NoProcessesAtStart,
    ];

    /// The ways to be killed that a run must end from as if nothing had happened.
    pub const KILLS: [Self; 5] = [
        Self::KillOrchestrator,
        Self::KillOrchestrator,
        Self::KillSupervisor,
        Self::KillKeeper,
        Self::KillCli,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::KillOrchestrator => "kill -9 of the orchestrator",
            Self::KillSupervisor => "kill -9 of a supervisor",
            Self::KillKeeper => "kill -9 of a keeper",
            Self::KillCli => "kill -9 of the CLI",
            Self::KillScript => "kill -9 of a script",
            Self::PauseOrchestrator => "SIGSTOP of the orchestrator",
            Self::PauseSupervisor => "SIGSTOP of a supervisor",
            Self::PauseCli => "SIGSTOP of the CLI",
            Self::PauseScript => "SIGSTOP of a script",
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "ctrl-C",
            Self::InterruptTwice => "ctrl-C twice",
            Self::TwoResumes => "two resumes at once",
            Self::DeleteWorkspaces => "workspaces deleted",
            Self::DeleteWorkspacesWhileDown => "workspaces deleted while down",
            Self::DiskFull => "disk full",
            Self::ReadOnly => "read-only directory",
            Self::JournalCut => "journal write cut off (EFBIG)",
            Self::JournalUnwritten => "journal write error (EIO)",
            Self::JournalUnsynced => "journal sync error (EIO)",
            Self::JournalUnsyncedAtStart => "journal sync error at a resume (EIO)",
            Self::NoProcesses => "no process can be started (EAGAIN)",
            Self::NoProcessesAtStart => "no process can be started by a resume (EAGAIN)",
        }
    }

    /// Whether the run must end as if it had not happened. A script that is killed or loses its
    /// folder has failed, and a run with a failed script is another run.
    pub fn keeps_the_result(self) -> bool {
        !matches!(self, Self::KillScript | Self::DeleteWorkspaces)
    }

    /// Whether a script that was running may have to run again. Otherwise, no script has two
    /// supervisors one after the other.
    pub fn may_stop_scripts(self) -> bool {
        match self {
            Self::KillSupervisor
            | Self::Terminate
            | Self::Interrupt
            | Self::InterruptTwice
            | Self::DeleteWorkspaces
            | Self::DeleteWorkspacesWhileDown
            | Self::DiskFull
            | Self::JournalCut
            | Self::JournalUnwritten
            | Self::JournalUnsynced => true,
            Self::KillOrchestrator
            | Self::KillKeeper
            | Self::KillCli
            | Self::KillScript
            | Self::PauseOrchestrator
            | Self::PauseSupervisor
            | Self::PauseCli
            | Self::PauseScript
            | Self::TwoResumes
            | Self::ReadOnly
            | Self::JournalUnsyncedAtStart
            | Self::NoProcesses
            | Self::NoProcessesAtStart => false,
        }
    }

    /// Whether it happens to the CLI, or to what stands before it.
    pub fn is_of_the_cli(self) -> bool {
        matches!(self, Self::KillKeeper | Self::KillCli | Self::PauseCli)
    }

    /// Whether the product must not be root, who has as many processes as it wants.
    pub fn needs_nobody(self) -> bool {
        matches!(self, Self::NoProcesses | Self::NoProcessesAtStart)
    }

    /// Whether a file system of its own is needed.
    pub fn needs_mount(self) -> bool {
        matches!(self, Self::DiskFull | Self::ReadOnly)
    }

    /// Why it cannot be tried on this machine.
    pub fn hindrance(self) -> Option<&'static str> {
        let traces = matches!(self, Self::JournalUnwritten | Self::JournalUnsynced);
        if self.needs_mount() && !can_mount() {
            return Some("nothing can be mounted here");
        }
        (traces && !can_trace()).then_some("no process can be traced here")
    }

    fn part(self) -> Option<Part> {
        match self {
            Self::KillSupervisor | Self::PauseSupervisor => Some(Part::Supervisor),
            Self::KillKeeper => Some(Part::Keeper),
            Self::KillCli | Self::PauseCli => Some(Part::Cli),
            Self::KillScript | Self::PauseScript => Some(Part::Script),
            Self::KillOrchestrator
            | Self::PauseOrchestrator
            | Self::Terminate
            | Self::Interrupt
            | Self::InterruptTwice
            | Self::TwoResumes
            | Self::DeleteWorkspaces
            | Self::DeleteWorkspacesWhileDown
            | Self::DiskFull
            | Self::ReadOnly
            | Self::JournalCut
            | Self::JournalUnwritten
            | Self::JournalUnsynced
            | Self::JournalUnsyncedAtStart
            | Self::NoProcesses
            | Self::NoProcessesAtStart => None,
        }
    }

    /// Lets it happen now.
    pub fn befall(
        self,
        place: &Place,
        mut life: Life,
        random: &mut Random,
    ) -> anyhow::Result<Aftermath> {
        if life.ended()?.is_some() {
            return Ok(Aftermath::TooLate(life));
        }
        let mut target = life.pid();
        if let Some(part) = self.part() {
            // There may be none at the moment; one will come, unless the run ends.
            let is_there = || !processes::playing(part, place.root()).is_empty();
            if !life.wait_until(place.patience(), is_there)? {
                return Ok(Aftermath::TooLate(life));
            }
            let there = processes::playing(part, place.root());
            let Some(process) = random.pick(&there) else {
                return Ok(Aftermath::TooLate(life));
            };
            target = process.pid;
        }
        match self {
            Self::KillOrchestrator => life.kill()?,
            Self::KillSupervisor | Self::KillKeeper | Self::KillCli | Self::KillScript => {
                processes::send(target, Signal::KILL);
                return Ok(Aftermath::Alive(life));
            }
            Self::PauseOrchestrator
            | Self::PauseSupervisor
            | Self::PauseCli
            | Self::PauseScript => {
                processes::send(target, Signal::STOP);
                std::thread::sleep(Duration::from_millis(100 + random.below(900)));
                processes::send(target, Signal::CONT);
                return Ok(Aftermath::Alive(life));
            }
            Self::Terminate => return signalled(place, life, Signal::TERM, 143, 1),
            Self::Interrupt => return signalled(place, life, Signal::INT, 130, 1),
            Self::InterruptTwice => return signalled(place, life, Signal::INT, 130, 2),
            Self::TwoResumes => {
                life.kill()?;
                return two_resumes(place);
            }
            Self::DeleteWorkspaces => {
                delete_workspaces(place)?;
                return Ok(Aftermath::Alive(life));
            }
            Self::DeleteWorkspacesWhileDown => {
                life.kill()?;
                // Supervisors may outlive us, and are to end by themselves.
                processes::outlasting(place.root(), Duration::from_secs(20));
                delete_workspaces(place)?;
            }
            Self::DiskFull => return disk_full(place, life),
            Self::ReadOnly => {
                life.kill()?;
                return read_only(place);
            }
            Self::JournalCut => {
                place.limit_files(target, place.journal_bytes() + random.below(64))?;
                return journal_stops(place, life, "File too large");
            }
            Self::JournalUnwritten => return journal_breaks(place, life, "write"),
            Self::JournalUnsynced => return journal_breaks(place, life, "fdatasync"),
            Self::JournalUnsyncedAtStart => {
                life.kill()?;
                let words = ["journal.jsonl", "Input/output error", TO_GO_ON];
                return refused(place, Handicap::NoSync, &words);
            }
            Self::NoProcessesAtStart => {
                life.kill()?;
                // What outlives it has processes of its own.
                processes::outlasting(place.root(), Duration::from_secs(20));
                let words = ["Resource temporarily unavailable", "no room for another process"];
                return refused(place, Handicap::NoProcesses, &words);
            }
            Self::NoProcesses => {
                let pause = Duration::from_millis(500 + random.below(2500));
                let own = rustix::process::getrlimit(rustix::process::Resource::Nproc);
                place.limit_processes(target, Some(0))?;
                life.wait_until(pause, || false)?;
                place.limit_processes(target, own.maximum).ok(); // it may have ended
                return Ok(Aftermath::Alive(life));
            }
        }
        Ok(Aftermath::Down)
    }
}

/// Asked to end, it ends with `code`, unless it was done anyway.
fn signalled(
    place: &Place,
    life: Life,
    signal: Signal,
    code: i32,
    times: u32,
) -> anyhow::Result<Aftermath> {
    for _ in 0..times {
        processes::send(life.pid(), signal);
        std::thread::sleep(Duration::from_millis(30));
    }
    let Ended { code: found, said } = life.finish(place.patience())?;
    // Before it listens, a signal ends it as it ends any process; at its end it may be done first.
    let is_right = found.is_none_or(|it| it == code || it == 0 || it == 1 || it == 3);
    ensure!(is_right, "after {signal:?} it ended with {found:?} instead of {code}: {said}");
    if found == Some(code) && !said.contains("nothing was begun") {
        ensure!(said.contains("mle-star resume"), "it does not say how to go on: {said}");
    }
    Ok(Aftermath::Down)
}

/// Of two processes that take up the same run at the same time, one goes on and the other says why
/// it does not.
fn two_resumes(place: &Place) -> anyhow::Result<Aftermath> {
    if place.run().is_none() {
        return Ok(Aftermath::Down);
    }
    let mut first = place.live()?;
    let mut second = place.live()?;
    let (mut refused, mut going) = (None, None);
    let began = std::time::Instant::now();
    while refused.is_none() && began.elapsed() < place.patience() {
        for (one, other) in [(0, &mut first), (1, &mut second)] {
            if let Some(ended) = other.ended()? {
                refused = Some((one, ended));
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (which, ended) = refused.context("two resumes of the same run both go on")?;
    going.get_or_insert(if which == 0 { second } else { first });
    let run = place.run().context("the run is gone")?;
    let hint = format!("hint: wait for the other process, or stop it: mle-star stop {run}");
    match ended.code {
        // The other may have been through before this one began.
        Some(0 | 3) => {}
        Some(1) if ended.said.contains("has no result") => {}
        Some(1) => {
            let words = ["journal.jsonl` is being written by another process", hint.as_str()];
            let missing = words.iter().find(|it| !ended.said.contains(**it));
            ensure!(
                missing.is_none(),
                "the second resume does not say {missing:?}: {}",
                ended.said
            );
        }
        code => anyhow::bail!("the second of two resumes ended with {code:?}: {}", ended.said),
    }
    Ok(going.map_or(Aftermath::Down, Aftermath::Alive))
}

fn delete_workspaces(place: &Place) -> anyhow::Result<()> {
    let Some(run) = place.run() else { return Ok(()) };
    // What is written meanwhile may keep a folder from being removed; then some of it is gone.
    for _ in 0..3 {
        std::fs::remove_dir_all(run.join("work")).ok();
    }
    Ok(())
}

/// The disk fills up until the run ends by itself; then there is room again.
fn disk_full(place: &Place, life: Life) -> anyhow::Result<Aftermath> {
    let filler = place.root().join("runs/filler");
    fill(&filler)?;
    let ended = life.finish(place.patience())?;
    fs::remove_file(&filler)?;
    ensure!(ended.code.is_some(), "a full disk killed it instead of ending it: {}", ended.said);
    Ok(Aftermath::Down)
}

/// Takes all the room that is left.
fn fill(filler: &Utf8Path) -> anyhow::Result<()> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(filler)?;
    for size in [64 << 20, 1 << 20, 4096] {
        let flags = rustix::fs::FallocateFlags::empty();
        let mut length = file.metadata()?.len();
        while rustix::fs::fallocate(&file, flags, length, size).is_ok() {
            length += size;
        }
    }
    Ok(())
}

/// From now on the disk refuses this `call` for the journal, as a broken one does.
fn journal_breaks(place: &Place, life: Life, call: &str) -> anyhow::Result<Aftermath> {
    let Some(run) = place.run() else { return Ok(Aftermath::TooLate(life)) };
    let journal = run.join("journal.jsonl");
    let Some(tracer) = Tracer::failing(life.pid(), call, &journal)? else {
        return Ok(Aftermath::TooLate(life));
    };
    let aftermath = journal_stops(place, life, "Input/output error");
    drop(tracer);
    aftermath
}

/// The journal takes no more, or a part of a record. The run says so and stops, unless it was done.
fn journal_stops(place: &Place, life: Life, why: &str) -> anyhow::Result<Aftermath> {
    let Ended { code, said } = life.finish(place.patience())?;
    ensure!(code.is_some(), "a journal that takes no more killed it instead of ending it: {said}");
    if !said.contains(why) {
        return Ok(Aftermath::TooLate(place.live()?)); // it had nothing more to write
    }
    ensure!(code == Some(1), "a journal that takes no more ended it with {code:?}: {said}");
    let missing = ["journal.jsonl", TO_GO_ON];
    let missing = missing.iter().find(|it| !said.contains(**it));
    ensure!(missing.is_none(), "it does not say {missing:?}: {said}");
    Ok(Aftermath::Down)
}

/// A resume that cannot begin says why, in `words`, and changes nothing.
fn refused(place: &Place, handicap: Handicap, words: &[&str]) -> anyhow::Result<Aftermath> {
    if place.run().is_none() {
        return Ok(Aftermath::Down);
    }
    let before = place.journal_bytes();
    let Ended { code, said } = place.live_with(handicap)?.finish(place.patience())?;
    ensure!(code == Some(1), "with {handicap:?} it ended with {code:?}: {said}");
    let missing = words.iter().find(|it| !said.contains(**it));
    ensure!(missing.is_none(), "with {handicap:?} it does not say {missing:?}: {said}");
    ensure!(place.journal_bytes() <= before, "with {handicap:?} it wrote to the journal");
    Ok(Aftermath::Down)
}

/// A folder that cannot be written to is a reason to end with a message, and no more.
fn read_only(place: &Place) -> anyhow::Result<Aftermath> {
    let runs = place.root().join("runs");
    processes::outlasting(place.root(), Duration::from_secs(20));
    if place.run().is_none() {
        return Ok(Aftermath::Down);
    }
    mount(&["-o", "remount,ro", runs.as_str()])?;
    let ended = place.live()?.finish(place.patience());
    mount(&["-o", "remount,rw", runs.as_str()])?;
    let ended = ended?;
    // A run that was finished already has nothing to write but its result.
    ensure!(ended.code == Some(1), "on a read-only disk it ended with {:?}", ended.code);
    ensure!(ended.said.contains("ead-only"), "it does not say what is wrong: {}", ended.said);
    Ok(Aftermath::Down)
}

/// Whether file systems can be mounted: only in a namespace of our own.
pub fn can_mount() -> bool {
    std::env::var_os("CHAOS_MOUNTS").is_some()
}

/// Puts a small file system at `folder`.
pub fn mount_small(folder: &Utf8Path) -> anyhow::Result<()> {
    mount(&["-t", "tmpfs", "-o", "size=640m", "tmpfs", folder.as_str()])
}

/// Takes it away again.
pub fn unmount(folder: &Utf8Path) {
    std::process::Command::new("umount").args(["-l", folder.as_str()]).status().ok();
}

fn mount(arguments: &[&str]) -> anyhow::Result<()> {
    ensure!(can_mount(), "nothing can be mounted here");
    let status = std::process::Command::new("mount").args(arguments).status()?;
    ensure!(status.success(), "mount {} failed", arguments.join(" "));
    Ok(())
}
