//! Where scripts run: this machine, shared out among them, with a sandbox around each.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_exec::limits::Limits;
use mle_star_exec::machine::GpuInfo;
use mle_star_exec::sandbox::{Network, Wish};
use mle_star_exec::slots::{Slots, our_cores};
use mle_star_exec::{Local, Setup, Supervisor, workspace};
use mle_star_search::models::{self, PipelineConfig, TaskDescription};

use crate::RunError;

/// The argument by which this program is asked to supervise a script.
const SHIM: &str = "__shim";
/// The argument by which this program is asked to hold the `claude` program.
pub(crate) const HOLD: &str = "__hold";

/// Whether this program supervises a script when it is asked to.
static ANSWERS: AtomicBool = AtomicBool::new(false);

/// Supervises a script, or holds the `claude` program, if this program was started for that, and
/// then says how to exit. Says nothing if it was not.
///
/// Scripts run under a supervisor, which is this program started again. A program that uses this
/// library calls this first in its `main`, before it starts a thread:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = mle_star::supervise_if_asked() {
///         return code;
///     }
///     // …
///     ExitCode::SUCCESS
/// }
/// ```
///
/// One that does not needs the `mle-star` program beside it or on the path.
pub fn supervise_if_asked() -> Option<ExitCode> {
    ANSWERS.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    if first == SHIM {
        let folder = arguments.next().and_then(|it| it.into_string().ok()).unwrap_or_default();
        Some(mle_star_exec::supervise(Utf8Path::new(&folder)))
    } else if first == HOLD {
        let how = arguments.next().unwrap_or_default();
        Some(mle_star_exec::hold(how, mle_star_claude::told(arguments)))
    } else {
        None
    }
}

/// The program that holds others if its first argument is [`HOLD`].
pub(crate) fn holder(named: Option<&Utf8Path>) -> Result<Utf8PathBuf, RunError> {
    Ok(supervisor(named)?.program)
}

/// The program that supervises scripts: the one that is named, this one, or `mle-star`.
fn supervisor(named: Option<&Utf8Path>) -> Result<Supervisor, RunError> {
    let with = |program| Supervisor { program, arguments: vec![SHIM.to_owned()] };
    if let Some(program) = named {
        return Ok(with(program.to_owned()));
    }
    if ANSWERS.load(Ordering::Relaxed) {
        return Ok(Supervisor::this_program(SHIM));
    }
    let beside = std::env::current_exe().ok().and_then(|it| it.parent().map(ToOwned::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = beside.into_iter().chain(std::env::split_paths(&path));
    let found = folders.find_map(|folder| {
        let program = Utf8PathBuf::from_path_buf(folder.join("mle-star")).ok()?;
        program.is_file().then_some(program)
    });
    found.map(with).ok_or(RunError::NoSupervisor)
}

/// What an executor is made for.
#[derive(Debug)]
pub(crate) struct Purpose<'a> {
    pub(crate) task: &'a TaskDescription,
    pub(crate) config: &'a PipelineConfig,
    pub(crate) python: &'a str,
    pub(crate) gpus: &'a GpuInfo,
    pub(crate) wish: Wish,
    /// Where the run directory is, or will be.
    pub(crate) folder: &'a Utf8Path,
}

/// An executor that was seen to work.
pub(crate) async fn local(
    purpose: &Purpose<'_>,
    supervisor: Option<&Utf8Path>,
) -> Result<Local, RunError> {
    let Purpose { task, config, python, gpus, wish, folder } = purpose;
    let cores = our_cores();
    let slots = Slots::new(config.num_parallel_solutions, &cores, &gpus.devices);
    let setup = Setup {
        python: (*python).into(),
        supervisor: self::supervisor(supervisor)?,
        wish: *wish,
        network: match task.network {
            models::Network::Deny => Network::Deny,
            models::Network::Allow => Network::Allow,
        },
        readable: workspace::linked_from(&task.data_dir),
        devices: device_files(gpus),
        limits: limits(config, Limits::of_this_machine(folder, slots.count(), cores.len())),
        slots,
    };
    setup.try_out().await.map_err(RunError::from)
}

/// The limits that are set, and those that follow the machine where none are.
fn limits(config: &PipelineConfig, machine: Limits) -> Limits {
    let set = |size: Option<mle_star_exec::limits::Size>| size.map(|size| size.0);
    let workspace_bytes = set(config.script_workspace_limit).unwrap_or(machine.workspace_bytes);
    Limits {
        memory_bytes: set(config.script_memory_limit).unwrap_or(machine.memory_bytes),
        processes: config.script_process_limit.unwrap_or(machine.processes),
        output_bytes: set(config.script_output_limit).unwrap_or(machine.output_bytes),
        workspace_bytes,
        file_bytes: set(config.script_file_limit).unwrap_or(workspace_bytes),
    }
}

/// The files by which the driver of graphics cards is reached.
fn device_files(gpus: &GpuInfo) -> Vec<Utf8PathBuf> {
    if !gpus.cuda_available {
        return Vec::new();
    }
    let all = Utf8Path::new("/dev").read_dir_utf8().into_iter().flatten().flatten();
    all.map(|entry| entry.into_path())
        .filter(|file| file.file_name().is_some_and(|name| name.starts_with("nvidia")))
        .collect()
}
