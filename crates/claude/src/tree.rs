//! All processes below one, for ending them together.
//!
//! The program starts its shells in sessions of their own, so ending its group is not enough.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often the tree is looked at again before what still grows is left alone.
const ROUNDS: usize = 20;

/// The living descendants of `root`, parents before children.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let parents = all_parents();
    let mut found: Vec<Pid> = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        let children = parents.iter().filter(|(_, of)| *of == parent.as_raw_pid());
        let children: Vec<Pid> = children.filter_map(|(pid, _)| Pid::from_raw(*pid)).collect();
        next.extend(&children);
        found.extend(children);
    }
    found
}

/// Kills everything below `root`, until there is nothing left or it is clear that there always
/// will be. `reap` is called in between, for those that have become our children.
pub(crate) fn kill_descendants(root: Pid, within: Duration, mut reap: impl FnMut()) {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let left = descendants(root);
        if left.is_empty() || begun.elapsed() > within {
            return;
        }
        for pid in left {
            kill_process(pid, Signal::KILL).ok(); // it may be gone by now
        }
        reap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every living process with its parent. The list of a thread's children would be less to read,
/// but not every kernel has it.
fn all_parents() -> Vec<(i32, i32)> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pair = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, living_parent(&entry.path())?))
    };
    processes.flatten().filter_map(pair).collect()
}

/// The parent of a process, unless it is dead and only waits to be collected.
fn living_parent(process: &Path) -> Option<i32> {
    let stat = std::fs::read(process.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(") ")?; // the name before it may hold anything
    let mut fields = rest.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.next()?.parse().ok(),
    }
}
