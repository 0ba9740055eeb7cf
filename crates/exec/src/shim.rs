//! The supervisor: a small process with one thread between us and each script.
//!
//! It empties the workspace, starts Python inside its confinement, keeps what Python prints,
//! watches time, memory, processes and disk, kills every process the script started, and writes
//! down how it ended. It does not depend on us: if we die it goes on, and whoever asks for the same
//! job later finds the result. A second supervisor of the same job waits for the first, and then
//! has nothing to do.
//!
//! It is our own program started again, with the folder of a job as its only argument, so that it
//! can run wherever that folder can be reached.

pub(crate) mod disk;
pub(crate) mod spec;
mod start;
pub(crate) mod tree;
mod watch;

use std::io::{self, Write as _};
use std::process::ExitCode;

use camino::Utf8Path;
use fs_err as fs;

use self::spec::{Records, Report, Spec};
use self::watch::{Verdict, Watch};
use crate::environment::{HOME, TMP};
use crate::limits::Resource;
use crate::workspace;
use crate::{Ended, ExecError, Outcome, in_full, inspect_submission};

/// Supervises the job whose records are in `folder`, from its beginning to its end, and says how to
/// exit.
///
/// Must be called from a program with one thread, before it does anything else.
pub fn supervise(folder: &Utf8Path) -> ExitCode {
    match carry_out(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the log of the job.
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn carry_out(folder: &Utf8Path) -> io::Result<()> {
    rustix::process::setsid().ok(); // what is meant for our parent is not meant for us
    let records = Records::at(folder);
    let _lock = records.lock()?;
    if records.report()?.is_some() {
        return Ok(()); // another supervisor was faster
    }
    let spec = records.spec()?;
    let report = match run(&spec, &records) {
        Ok(Some(outcome)) => Report::Ended(outcome),
        Ok(None) => Report::Cancelled,
        Err(ExecError::NoRoom { free, needed }) => Report::NoRoom { free, needed },
        Err(error) => Report::Failed { reason: in_full(&error) },
    };
    records.write_report(&report, &spec)
}

/// Runs the script. `None` means that somebody stopped it.
fn run(spec: &Spec, records: &Records) -> Result<Option<Outcome>, ExecError> {
    let _lock = workspace::lock(&spec.workspace)?;
    workspace::prepare(&spec.workspace, &spec.data_dir)?;
    fs::create_dir(spec.workspace.join(HOME))?;
    fs::create_dir(spec.workspace.join(TMP))?;
    let script = spec.workspace.join(&spec.filename);
    fs::write(&script, &spec.script)?;

    let failed = |source| ExecError::Spawn { program: spec.python.clone(), source };
    let Verdict { ended, stdout, stderr, duration, usage } =
        Watch::begin(spec, records, &script).map_err(failed)?.until_the_end().map_err(failed)?;
    let Some(ended) = ended else { return Ok(None) };
    if let Ended::Exceeded { resource: Resource::Disk, used: free, limit: needed } = ended
        && !is_its_fault(free, usage.workspace_bytes, needed)
    {
        return Err(ExecError::NoRoom { free, needed });
    }
    Ok(Some(Outcome {
        ended,
        stdout,
        stderr,
        duration_seconds: duration.as_secs_f64(),
        submission: inspect_submission(&spec.workspace),
        usage,
        limits: Some(spec.limits),
        tier: spec.confinement.tier,
    }))
}

/// Whether a script that left `free` bytes of the disk would have left enough without the files
/// that it wrote. If not, somebody else fills the disk, and no change of the script helps.
fn is_its_fault(free: u64, written: u64, needed: u64) -> bool {
    free.saturating_add(written) >= needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_blamed_for_a_full_disk_only_if_it_filled_it() {
        assert!(is_its_fault(100, 500, 512));
        assert!(!is_its_fault(100, 20, 512));
        assert!(is_its_fault(511, u64::MAX, 512));
    }
}
