//! The processes of a place, told by its folder, which all of them name somewhere.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use rustix::process::{Pid, Signal, kill_process};

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// That of its parent.
    pub parent: i32,
    /// What it was started with, separated by blanks.
    pub command: String,
}

/// What a process is to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `mle-star run` or `mle-star resume`.
    Orchestrator,
    /// The supervisor of a script.
    Supervisor,
    /// What stands between us and the CLI.
    Keeper,
    /// The CLI.
    Cli,
    /// A script.
    Script,
}

/// All processes that name `folder` in what they were started with, in their environment, or as the
/// folder they work in. The one that asks is left out.
pub fn in_folder(folder: &Utf8Path) -> Vec<Process> {
    let own = std::process::id().to_string();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = all.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let pid = name.parse().ok().filter(|_| name != own)?;
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let names_it = command.contains(folder.as_str())
            || String::from_utf8_lossy(&read("environ")).contains(folder.as_str())
            || std::fs::read_link(entry.path().join("cwd")).is_ok_and(|it| it.starts_with(folder));
        let status = String::from_utf8_lossy(&read("stat")).into_owned();
        let mut after_name = status.rsplit_once(") ")?.1.split(' ');
        let is_dead = after_name.next() == Some("Z");
        let parent = after_name.next()?.parse().ok()?;
        (names_it && !is_dead).then_some(Process { pid, parent, command })
    });
    found.collect()
}

/// Those of `part` among the processes of `folder`.
pub fn playing(part: Part, folder: &Utf8Path) -> Vec<Process> {
    let all = in_folder(folder);
    let is = |process: &Process, word: &str| process.command.split(' ').any(|it| it == word);
    let supervisors: Vec<i32> = all.iter().filter(|it| is(it, "__shim")).map(|it| it.pid).collect();
    let plays = |process: &&Process| match part {
        Part::Orchestrator => is(process, "run") || is(process, "resume"),
        // In a sandbox the supervisor is in turn the parent of one like itself.
        Part::Supervisor => is(process, "__shim") && !supervisors.contains(&process.parent),
        Part::Keeper => is(process, "__hold"),
        // Asked for its version, it is not at work on anything yet.
        Part::Cli => is(process, "__claude") && !is(process, "__hold") && !is(process, "--version"),
        Part::Script => supervisors.contains(&process.parent) && !is(process, "__shim"),
    };
    all.iter().filter(plays).cloned().collect()
}

/// The supervisors that are at work for `folder`, each with the folder of its job. Takes less than
/// [`playing`], to be asked again and again.
pub fn supervisors(folder: &Utf8Path) -> Vec<(i32, String)> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8(command).ok()?;
        let mut words = command.split('\0').skip_while(|word| *word != "__shim").skip(1);
        let job = words.next().filter(|job| job.starts_with(folder.as_str()))?;
        Some((pid, job.to_owned()))
    });
    let found: Vec<(i32, String)> = found.collect();
    let parent = |pid: i32| -> Option<i32> {
        let status = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        status.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    // In a sandbox the supervisor is in turn the parent of one like itself.
    let is_inner =
        |pid: i32| parent(pid).is_none_or(|parent| found.iter().any(|(other, _)| *other == parent));
    found.iter().filter(|(pid, _)| !is_inner(*pid)).cloned().collect()
}

/// Sends a signal, if the process is still there.
pub fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
        kill_process(pid, signal).ok();
    }
}

/// Waits until none of the processes of `folder` is left; gives those that are after `patience`.
pub fn outlasting(folder: &Utf8Path, patience: Duration) -> Vec<Process> {
    let began = Instant::now();
    loop {
        let left = in_folder(folder);
        if left.is_empty() || began.elapsed() > patience {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
