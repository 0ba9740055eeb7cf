//! Lives that begin under a handicap: the system refuses them something from their first moment on.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Context as _;
use camino::Utf8Path;
use seccompiler::{SeccompAction, SeccompFilter, apply_filter};

/// What a life does without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handicap {
    /// Nothing.
    None,
    /// The disk never confirms that it has something: `fdatasync` fails with `EIO`.
    NoSync,
    /// No process can be started.
    NoProcesses,
}

impl Handicap {
    /// A command that starts `program` so.
    pub(crate) fn command(self, program: &Utf8Path, chaos: &Utf8Path) -> Command {
        match self {
            Self::None => Command::new(program),
            Self::NoSync => {
                let mut command = Command::new(chaos);
                command.args(["__unsynced", program.as_str()]);
                command
            }
            Self::NoProcesses => {
                let mut command = Command::new("prlimit");
                command.args(["--nproc=0:0", program.as_str()]);
                command
            }
        }
    }
}

/// Becomes `program`, for which no file can be synced; says why not.
pub fn go_on_without_sync(program: &[String]) -> anyhow::Error {
    let Some((program, arguments)) = program.split_first() else {
        return anyhow::anyhow!("no program is named");
    };
    match refuse_sync() {
        Ok(()) => Command::new(program).args(arguments).exec().into(),
        Err(error) => error,
    }
}

/// From now on, `fdatasync` fails as on a broken disk, here and in all that is started from here.
fn refuse_sync() -> anyhow::Result<()> {
    let filter = SeccompFilter::new(
        [(libc::SYS_fdatasync, Vec::new())].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EIO.cast_unsigned()),
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    apply_filter(&program).context("the system takes no filter")
}
