//! All processes that a script started, however they tried to get away.

use std::collections::BTreeMap;
use std::str::FromStr;

use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process};

/// One process, as far as limits are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) threads: u64,
    /// Memory that is its own or shared with others.
    pub(crate) resident_bytes: u64,
}

/// The descendants of `root`, parents before children. A process that begins or ends meanwhile may
/// be missing.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    // Asking each process for its children costs as much as the tree is large. Looking through all
    // processes of a busy machine costs far more, but works on every kernel.
    let parents = if children_are_listed() { None } else { Some(all_parents()) };
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        let children = match &parents {
            None => listed_children(parent),
            Some(parents) => {
                let ours = parents.iter().filter(|(_, of)| **of == parent.as_raw_pid());
                ours.filter_map(|(&pid, _)| Pid::from_raw(pid)).collect()
            }
        };
        next.extend(&children);
        found.extend(children);
    }
    found
}

/// What limits need to know of a process that still lives.
pub(crate) fn look_at(pid: Pid) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?; // the name before it may hold anything
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| u64::from_str(field).ok());
    if matches!(fields.first(), Some(&("Z" | "X"))) {
        return None;
    }
    let page = rustix::param::page_size() as u64;
    Some(Process { pid, threads: number(17)?, resident_bytes: number(21)? * page })
}

/// Memory of these processes, with what they share among them counted once and with what can be
/// read from disk again not at all. `None` if the system does not let us look.
pub(crate) fn exact_memory(processes: &[Process]) -> Option<Memory> {
    let mut sum = Memory::default();
    for process in processes {
        let file = format!("/proc/{}/smaps_rollup", process.pid.as_raw_pid());
        match fs::read_to_string(file) {
            Ok(text) => {
                sum.private += kilobytes(&text, "Pss_Anon:")?;
                sum.shared += kilobytes(&text, "Pss_Shmem:")?;
            }
            Err(_) if look_at(process.pid).is_none() => {} // it has ended
            Err(_) => return None,
        }
    }
    Some(sum)
}

/// How large the memory is that these processes could share with others, used or not.
pub(crate) fn shareable_bytes(processes: &[Process]) -> u64 {
    let mut sizes: BTreeMap<(String, String), u64> = BTreeMap::new();
    for process in processes {
        let maps = format!("/proc/{}/maps", process.pid.as_raw_pid());
        for line in fs::read_to_string(maps).unwrap_or_default().lines() {
            let mut fields = line.split_ascii_whitespace();
            let mut field = || fields.next().unwrap_or_default();
            let (range, rights, offset, device, file) =
                (field(), field(), field(), field(), field());
            let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or_default();
            let (from, to) = range.split_once('-').unwrap_or_default();
            // What is on a disk has a device that is not the kernel's own.
            if rights.ends_with('s') && device.starts_with("00:") {
                let length = number(to).saturating_sub(number(from));
                let end = number(offset).saturating_add(length);
                let size = sizes.entry((device.to_owned(), file.to_owned())).or_default();
                *size = end.max(*size);
            }
        }
    }
    // A script can map what begins at the end of the world.
    sizes.values().fold(0, |sum, &size| sum.saturating_add(size))
}

/// How much memory is shared on the whole machine.
pub(crate) fn shared_on_machine() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kilobytes(&text, "Shmem:").unwrap_or_default()
}

/// Memory by kind, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) private: u64,
    pub(crate) shared: u64,
}

/// Sends `signal` to all of them. Those that ended meanwhile do not mind.
pub(crate) fn signal_all(processes: &[Pid], signal: Signal) {
    for &pid in processes {
        kill_process(pid, signal).ok();
    }
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number * 1024)
}

fn children_are_listed() -> bool {
    std::path::Path::new("/proc/thread-self/children").exists()
}

/// Children belong to the thread that started them.
fn listed_children(parent: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", parent.as_raw_pid());
    let Ok(threads) = std::fs::read_dir(tasks) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let of_list = |list: String| -> Vec<Pid> {
        list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    };
    lists.flat_map(of_list).collect()
}

/// The parent of every process on the machine.
fn all_parents() -> BTreeMap<i32, i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pair = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        Some((pid, rest.split_ascii_whitespace().nth(1)?.parse().ok()?))
    };
    processes.flatten().filter_map(pair).collect()
}
