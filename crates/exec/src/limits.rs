//! How much of the machine one script may use.

use std::fmt;

use bytesize::ByteSize;
use camino::Utf8Path;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::machine::memory_bytes;
use crate::shim::disk::free_bytes;

/// Bounds that end a script which goes beyond them; time is a matter of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of all its processes together, shared memory counted once.
    pub memory_bytes: u64,
    /// Its processes and their threads.
    pub processes: u64,
    /// What it prints, both streams together. Far less is kept.
    pub output_bytes: u64,
    /// What it writes into its workspace, temporary and deleted files included.
    pub workspace_bytes: u64,
    /// The largest file it may write.
    pub file_bytes: u64,
}

/// What a script can have too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Memory.
    Memory,
    /// Processes and threads.
    Processes,
    /// Printed output.
    Output,
    /// Files in the workspace.
    Workspace,
    /// One file.
    File,
    /// The disk that the workspace is on, which others need too.
    Disk,
}

/// What a script used at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Memory of all its processes together.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Files in the workspace.
    pub workspace_bytes: u64,
}

/// A script is stopped before the disk has less than this left.
pub(crate) const FREE_DISK_BYTES: u64 = 512 << 20;

impl Limits {
    /// What this machine can give to each of so many scripts at a time, which write below `folder`.
    pub fn of_this_machine(folder: &Utf8Path, slots: usize, cores: usize) -> Self {
        let free = free_disk_bytes(folder).unwrap_or(u64::MAX);
        Self::fitting(memory_bytes(), free, slots, cores)
    }

    /// What a machine can give to each of so many scripts at a time. A tenth of the memory, but no
    /// more than 4 GiB, stays with the system and with us.
    pub fn fitting(memory_bytes: u64, free_disk_bytes: u64, slots: usize, cores: usize) -> Self {
        let share = |whole: u64| whole / u64::try_from(slots).unwrap_or(u64::MAX).max(1);
        let kept = (memory_bytes / 10).min(ByteSize::gib(4).as_u64());
        let memory = match memory_bytes {
            0 => u64::MAX, // the system does not say
            _ => share(memory_bytes - kept),
        };
        let workspace = share(free_disk_bytes / 2).min(ByteSize::gib(100).as_u64());
        let cores = u64::try_from(cores).unwrap_or(u64::MAX);
        Self {
            memory_bytes: memory,
            processes: cores.saturating_mul(64).max(1024),
            output_bytes: ByteSize::gb(10).as_u64(),
            workspace_bytes: workspace,
            file_bytes: workspace,
        }
    }
}

impl Resource {
    /// What happened, in words that someone who wrote the script can act on.
    pub fn exceeded(self, used: u64, limit: u64) -> String {
        let [used_size, limit_size] = [used, limit].map(size);
        match self {
            Self::Memory => format!("used {used_size} of memory, limit {limit_size}"),
            Self::Processes => format!("had {used} processes and threads, limit {limit}"),
            Self::Output => format!("printed {used_size}, limit {limit_size}"),
            Self::Workspace => format!("wrote {used_size} of files, limit {limit_size}"),
            Self::File => format!("wrote a file larger than the limit of {limit_size}"),
            Self::Disk => format!("left {used_size} of disk, at least {limit_size} must stay free"),
        }
    }
}

/// The disk that `folder` is on, or will be on, has so much left for us.
pub fn free_disk_bytes(folder: &Utf8Path) -> Option<u64> {
    existing(folder).and_then(free_bytes)
}

/// The innermost folder on the way to `folder` that exists.
fn existing(folder: &Utf8Path) -> Option<&Utf8Path> {
    folder.ancestors().find(|folder| folder.is_dir())
}

/// A number of bytes, given as such or with a unit, such as `12GB` or `512MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Given;

        impl Visitor<'_> for Given {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 12GB")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size(bytes))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                let size = text.parse::<ByteSize>();
                size.map(|size| Size(size.as_u64()))
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        from.deserialize_any(Given)
    }
}

/// A size as people say it.
pub fn size(bytes: u64) -> String {
    ByteSize(bytes).display().si().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_share_what_the_machine_has() {
        let (memory, disk) = (ByteSize::gib(20).as_u64(), ByteSize::gib(80).as_u64());
        let two = Limits::fitting(memory, disk, 2, 2);
        assert_eq!((two.memory_bytes, two.workspace_bytes), (9 << 30, 20 << 30));
        assert_eq!(two.processes, 1024);
        let large = Limits::fitting(ByteSize::gib(360).as_u64(), u64::MAX, 1, 96);
        assert_eq!((large.memory_bytes, large.workspace_bytes), (356 << 30, 100 << 30));
        assert_eq!(large.processes, 6144);
        assert_eq!(Limits::fitting(0, 0, 0, 0).memory_bytes, u64::MAX);
    }

    #[test]
    fn an_exceeded_limit_says_how_much_was_used_and_how_much_was_allowed() {
        let said = Resource::Memory.exceeded(14_200_000_000, 12_000_000_000);
        assert_eq!(said, "used 14.2 GB of memory, limit 12.0 GB");
        let said = Resource::Processes.exceeded(2000, 1024);
        assert_eq!(said, "had 2000 processes and threads, limit 1024");
    }
}
