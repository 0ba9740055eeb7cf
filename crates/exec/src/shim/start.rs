//! Starts Python inside its confinement.
//!
//! In the strong tier there is one more process: the first of the new namespaces. It furnishes the
//! root folder, starts Python, waits for it, and tells the supervisor by a pipe how it ended. With
//! it everything in the namespaces dies, and it dies with the supervisor.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, WaitOptions, wait};
use serde::{Deserialize, Serialize};

use super::spec::Spec;
use crate::Ended;
use crate::environment::TMP;
use crate::sandbox::landlock::Reach;
use crate::sandbox::lockdown::{Lockdown, die_with_parent};
use crate::sandbox::root::{
    self, ACCOUNTS, Identity, NAMES, OWN_PROCESS, PROCESSES, PROCESSOR_TIME, Plan, SHARED_MEMORY,
    SYSTEM, TEMPORARY,
};
use crate::sandbox::seccomp::Filters;
use crate::sandbox::{Network, Tier};
use crate::sys::{self, Split};

/// The kernel takes no more as the size of temporary files, and no machine has it.
const MOST_SHARED_MEMORY: u64 = 1 << 50;

/// A script that runs.
#[derive(Debug)]
pub(super) struct Running {
    /// The process whose end is the script's: Python, or the first process of its namespaces.
    pub(super) top: Pid,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// By which the first process of the namespaces tells how the script ended.
    told: Option<OwnedFd>,
}

/// How Python ended, or why it did not begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Told {
    Exited(i32),
    Signaled(i32),
    Failed(String),
}

impl Running {
    /// Starts the script of `spec`, which is at `script`.
    pub(super) fn start(spec: &Spec, script: &Utf8Path) -> io::Result<Self> {
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let lockdown = lockdown(spec)?;
        let mut command = Command::new(&spec.python);
        command
            .arg(script)
            .current_dir(&spec.workspace)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(their_stdout)
            .stderr(their_stderr);
        let (top, told) = match spec.confinement.tier {
            Tier::Strong => {
                let (first, told) = start_in_namespaces(spec, command, lockdown)?;
                (first, Some(told))
            }
            Tier::Fallback | Tier::Limits | Tier::Off => {
                (start_here(spec, command, lockdown)?, None)
            }
        };
        Ok(Self { top, stdout: stdout.into(), stderr: stderr.into(), told })
    }

    /// How the script ended, given how the top process did.
    pub(super) fn ended(&mut self, status: ExitStatus) -> io::Result<Ended> {
        let Some(told) = self.told.take() else { return Ok(ended(status)) };
        let mut text = String::new();
        std::fs::File::from(told).read_to_string(&mut text)?;
        match serde_json::from_str(&text) {
            Ok(Told::Exited(code)) => Ok(Ended::Exited { code }),
            Ok(Told::Signaled(signal)) => Ok(Ended::Signaled { signal }),
            Ok(Told::Failed(reason)) => Err(io::Error::other(reason)),
            Err(_) => Ok(ended(status)), // it was killed before it could tell
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited { code },
        (None, signal) => Ended::Signaled { signal: signal.unwrap_or_default() },
    }
}

fn start_here(spec: &Spec, mut command: Command, mut lockdown: Lockdown) -> io::Result<Pid> {
    lockdown.reach.readable.push(PROCESSES.into());
    lockdown.reach.readable.extend(ACCOUNTS.map(Utf8PathBuf::from));
    if !spec.confinement.devices.is_empty() {
        lockdown.reach.writable.push(OWN_PROCESS.into());
    }
    lockdown.reach.readable.extend(PROCESSOR_TIME.iter().map(Utf8PathBuf::from));
    sys::before_exec(&mut command, move || {
        die_with_parent()?;
        lockdown.enter()
    });
    let child = command.spawn()?;
    pid_of(&child)
}

/// Gives the first process of the new namespaces, and the pipe by which it tells.
fn start_in_namespaces(
    spec: &Spec,
    mut command: Command,
    mut lockdown: Lockdown,
) -> io::Result<(Pid, OwnedFd)> {
    let mut namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    if spec.confinement.network == Network::Deny {
        namespaces |= libc::CLONE_NEWNET;
    }
    let (told, mut tell) = io::pipe()?;
    let (mut wait_for_go, mut go) = io::pipe()?;
    let outside = Identity::own();
    match sys::split(namespaces)? {
        Split::Parent(first) => {
            go.write_all(b"!")?;
            Ok((first, told.into()))
        }
        Split::Child => {
            drop((told, go));
            // If the supervisor died before this, there is nobody to say go.
            let ready = die_with_parent().and_then(|()| wait_for_go.read_exact(&mut [0]));
            let said =
                ready.and_then(|()| furnish(spec, outside, &lockdown.reach)).and_then(|()| {
                    // Now that these are theirs.
                    lockdown.reach.writable.push(TEMPORARY.into());
                    lockdown.reach.readable.push(PROCESSES.into());
                    lockdown.reach.readable.extend(ACCOUNTS.map(Utf8PathBuf::from));
                    if !spec.confinement.devices.is_empty() {
                        lockdown.reach.writable.push(PROCESSES.into());
                    }
                    sys::before_exec(&mut command, move || lockdown.enter());
                    run_to_its_end(&mut command)
                });
            let said = said.unwrap_or_else(|error| Told::Failed(error.to_string()));
            let text = serde_json::to_string(&said).unwrap_or_default();
            let written = tell.write_all(text.as_bytes());
            end_at_once(if written.is_ok() { 0 } else { 1 })
        }
    }
}

/// Prepares the inside of new namespaces.
fn furnish(spec: &Spec, (user, group): (u32, u32), reach: &Reach) -> io::Result<()> {
    let identity = Identity::assume(user, group)?;
    if spec.confinement.network == Network::Deny {
        sys::bring_up_loopback()?;
    }
    rustix::system::sethostname(b"sandbox").ok(); // only a name
    root::enter(&Plan {
        reach,
        identity,
        temporary: &spec.workspace.join(TMP),
        shared_memory_bytes: spec.limits.memory_bytes.min(MOST_SHARED_MEMORY),
    })?;
    bound_processes(spec.limits.processes);
    // A script that must die for want of memory dies before anything else here does.
    fs_err::write("/proc/self/oom_score_adj", "1000").ok();
    // To the kernel, the superuser's number without any capability may still change its settings,
    // which are the whole machine's.
    match spec.confinement.devices.is_empty() {
        true => sys::make_read_only(Utf8Path::new(PROCESSES), sys::Depth::Here),
        false => root::lock_kernel_settings(),
    }
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

/// The life of the first process: starts Python, and collects orphans until Python ends.
fn run_to_its_end(command: &mut Command) -> io::Result<Told> {
    let python = pid_of(&command.spawn()?)?;
    // The streams of the script end with its own processes.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == python => {
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

/// What is written stays written, and nothing of the supervisor's, of which this process is a
/// copy, is done a second time.
#[expect(clippy::exit, reason = "the life of this process ends here")]
fn end_at_once(code: i32) -> ! {
    std::process::exit(code)
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    let pid = Pid::from_raw(child.id().cast_signed());
    pid.ok_or_else(|| io::Error::other("the child has no process number"))
}

/// What the script gives up.
fn lockdown(spec: &Spec) -> io::Result<Lockdown> {
    let confinement = &spec.confinement;
    let tier = confinement.tier;
    let filters = match tier {
        Tier::Strong => Some(Filters::new(confinement.network, true)?),
        Tier::Fallback => Some(Filters::new(confinement.network, false)?),
        Tier::Limits | Tier::Off => None,
    };
    Ok(Lockdown {
        tier,
        cores: spec.cores.clone(),
        largest_file: spec.limits.file_bytes,
        reach: reach(spec),
        filters,
    })
}

/// What the script may touch.
fn reach(spec: &Spec) -> Reach {
    let confinement = &spec.confinement;
    let all = |paths: &[&str]| paths.iter().map(Utf8PathBuf::from).collect::<Vec<_>>();
    let mut readable = all(SYSTEM);
    if confinement.network == Network::Allow {
        readable.extend(all(NAMES));
    }
    if !confinement.devices.is_empty() {
        readable.push("/sys".into()); // drivers look for their devices there
    }
    readable.extend(confinement.readable.iter().cloned());
    readable.push(spec.data_dir.clone());
    let mut writable = all(&[SHARED_MEMORY]);
    writable.extend(all(root::DEVICES));
    writable.extend(confinement.devices.iter().cloned());
    writable.push(spec.workspace.clone());
    writable.extend(confinement.shared.clone());
    Reach { readable, writable }
}
