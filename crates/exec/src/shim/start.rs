//! Starts Python inside its confinement.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};

use camino::Utf8Path;
use rustix::process::Pid;

use super::spec::Spec;
use crate::Ended;
use crate::environment::TMP;
use crate::sandbox::cell::{Cell, Inmate};

/// A script that runs.
#[derive(Debug)]
pub(super) struct Running {
    /// The process whose end is the script's: Python, or the first process of its namespaces.
    pub(super) top: Pid,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    inmate: Inmate,
}

impl Running {
    /// Starts the script of `spec`, which is at `script`.
    pub(super) fn start(spec: &Spec, script: &Utf8Path) -> io::Result<Self> {
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let mut command = Command::new(&spec.python);
        command
            .arg(script)
            .current_dir(&spec.workspace)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(their_stdout)
            .stderr(their_stderr);
        let cell = Cell {
            confinement: &spec.confinement,
            limits: &spec.limits,
            cores: &spec.cores,
            readable: std::slice::from_ref(&spec.data_dir),
            writable: std::slice::from_ref(&spec.workspace),
            temporary: &spec.workspace.join(TMP),
        };
        let inmate = cell.start(|| Ok(command))?;
        Ok(Self { top: inmate.top, stdout: stdout.into(), stderr: stderr.into(), inmate })
    }

    /// How the script ended, given how the top process did.
    pub(super) fn ended(&mut self, status: ExitStatus) -> io::Result<Ended> {
        self.inmate.ended(status)
    }
}
