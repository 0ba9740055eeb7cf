//! Runs scripts as child processes of this one.
//!
//! **Covered.** Each script is a new process that leads its own process group, in an emptied
//! folder, with nothing on standard input and an environment that carries no credentials. Its
//! output cannot exhaust our memory or block it. When it ends, runs past its limit, or nobody
//! waits for it any longer (the future is dropped), the whole group is killed, so the workers it
//! forked go with it.
//!
//! **Not covered.** This is supervision, not a sandbox. The script runs as the user who started
//! us: it can read and write every file that user can (the data behind `./input` included) and
//! reach the network. Nothing limits its memory, processor or disk. A process that leaves the
//! group on purpose (`setsid`) survives; it only cannot hold us up. And if we ourselves are killed
//! with SIGKILL, the script goes on.

use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::task::Poll;
use std::time::{Duration, Instant};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;
use futures::FutureExt;
use futures::future::{BoxFuture, FusedFuture, join};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, test_kill_process_group,
    waitid,
};
use tokio::io::AsyncRead;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::capture::Capture;
use crate::environment::{HOME, TMP, environment};
use crate::workspace::{self, FINAL, INPUT};
use crate::{Ended, ExecError, Executor, Job, Outcome, inspect_submission};

/// How long a script may take to clean up after it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait for killed processes; only one stuck inside the kernel takes any time at all.
const DYING: Duration = Duration::from_secs(5);
/// How long to go on reading from a dead script. What it wrote is in the pipe already; only a
/// process that left the group can keep the pipe open.
const DRAIN: Duration = Duration::from_millis(500);
/// How often to look whether a group is empty, which the system does not announce.
const LOOK: Duration = Duration::from_millis(20);

/// Runs scripts on this machine.
#[derive(Debug, Clone)]
pub struct Local {
    /// The Python interpreter: an absolute path, or a name to look up in `PATH`.
    pub python: Utf8PathBuf,
}

impl Executor for Local {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        Box::pin(self.supervise(job))
    }
}

impl Local {
    async fn supervise(&self, job: &Job) -> Result<Outcome, ExecError> {
        let script = script_path(job)?;
        workspace::prepare(&job.workspace, &job.data_dir)?;
        fs::create_dir(job.workspace.join(HOME))?;
        fs::create_dir(job.workspace.join(TMP))?;
        fs::write(&script, &job.script)?;

        let mut running = Running::start(&self.python, &script, job)?;
        let (mut stdout, mut stderr) = (Capture::default(), Capture::default());
        let (ended, duration) = running.watch(job.time_limit, &mut stdout, &mut stderr).await?;
        Ok(Outcome {
            ended,
            stdout: stdout.finish(),
            stderr: stderr.finish(),
            duration_seconds: duration.as_secs_f64(),
            submission: inspect_submission(&job.workspace),
        })
    }
}

/// Where the script goes, if its name is one: not a path, and not one of the workspace's own.
fn script_path(job: &Job) -> Result<Utf8PathBuf, ExecError> {
    let mut components = Utf8Path::new(&job.filename).components();
    let plain = match (components.next(), components.next()) {
        (Some(Utf8Component::Normal(name)), None) => name == job.filename,
        _ => false,
    };
    if !plain || [INPUT, FINAL, HOME, TMP].contains(&job.filename.as_str()) {
        return Err(ExecError::Filename { filename: job.filename.clone() });
    }
    Ok(job.workspace.join(&job.filename))
}

/// A script that was started, and the process group it leads. Dropping it kills the whole group.
///
/// Killing the child alone is not enough: the workers it forked would go on.
#[derive(Debug)]
struct Running {
    child: Child,
    group: Pid,
}

impl Running {
    fn start(python: &Utf8Path, script: &Utf8Path, job: &Job) -> Result<Self, ExecError> {
        let failed = |source| ExecError::Spawn { program: python.to_owned(), source };
        let child = Command::new(python)
            .arg(script)
            .current_dir(&job.workspace)
            .env_clear()
            .envs(environment(std::env::vars_os(), &job.workspace, job.gpus.as_deref()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = group.ok_or_else(|| failed(io::Error::other("the child has no process id")))?;
        Ok(Self { child, group })
    }

    /// Waits for the end, which comes by itself or at the limit, and leaves nobody behind.
    async fn watch(
        &mut self,
        limit: Duration,
        stdout: &mut Capture,
        stderr: &mut Capture,
    ) -> Result<(Ended, Duration), ExecError> {
        let start = Instant::now();
        let (out, err) = (self.child.stdout.take(), self.child.stderr.take());
        let reading = async {
            join(read(stdout, out), read(stderr, err)).await;
        };
        let mut reading = pin!(reading.fuse());

        let in_time = match beside(reading.as_mut(), timeout(limit, self.leader_exits())).await {
            Ok(exited) => exited.map(|()| true)?,
            Err(_) => false,
        };
        if !in_time {
            kill_process_group(self.group, Signal::TERM).ok(); // all may be gone by now
            beside(reading.as_mut(), timeout(GRACE, self.group_empties())).await.ok();
        }
        self.kill();
        let status = beside(reading.as_mut(), timeout(DYING, self.child.wait())).await;
        let duration = start.elapsed();
        beside(reading.as_mut(), timeout(DYING, self.group_empties())).await.ok();
        if !reading.is_terminated() {
            timeout(DRAIN, reading).await.ok();
        }

        if !in_time {
            return Ok((Ended::TimedOut { after_seconds: limit.as_secs_f64() }, duration));
        }
        let status = status.map_err(io::Error::from).flatten()?;
        Ok((ended(status), duration))
    }

    /// Waits until the interpreter has exited, without collecting its status.
    ///
    /// Until the status is collected, the number of the group belongs to it. Afterwards, a signal
    /// to that number may reach a stranger.
    async fn leader_exits(&self) -> io::Result<()> {
        let mut some_child_changed = signal(SignalKind::child())?;
        while !self.leader_has_exited() {
            // The signal may be blocked where we were started; then this looks once a second.
            timeout(Duration::from_secs(1), some_child_changed.recv()).await.ok();
        }
        Ok(())
    }

    fn leader_has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.child.id().is_none() || !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }

    async fn group_empties(&self) {
        while !self.group_is_empty() {
            sleep(LOOK).await;
        }
    }

    fn group_is_empty(&self) -> bool {
        self.leader_has_exited()
            && (test_kill_process_group(self.group).is_err() || !has_living_members(self.group))
    }

    /// Kills the group, and the interpreter by itself in case it moved to another group.
    fn kill(&self) {
        if self.child.id().is_some() {
            kill_process_group(self.group, Signal::KILL).ok(); // all may be gone by now
            kill_process(self.group, Signal::KILL).ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether anyone in the group is more than a zombie.
///
/// Signals reach zombies as well, and in a container without an init process orphans stay zombies
/// for ever, so asking the system whether the group exists does not tell. Where there is no
/// `/proc`, the group counts as dead: it was sent SIGKILL, or will be next.
fn has_living_members(group: Pid) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        fs::read_to_string(process.path().join("stat"))
            .is_ok_and(|stat| is_living_member(&stat, group))
    })
}

/// Reads `pid (name) state parent group ...`, where the name may hold anything.
fn is_living_member(stat: &str, group: Pid) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let (state, group_id) = (fields.next(), fields.nth(1));
    !matches!(state, Some("Z" | "X"))
        && group_id.and_then(|id| id.parse().ok()) == Some(group.as_raw_pid())
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited { code },
        (None, signal) => Ended::Signaled { signal: signal.unwrap_or_default() },
    }
}

async fn read(capture: &mut Capture, stream: Option<impl AsyncRead + Unpin>) {
    if let Some(stream) = stream {
        capture.read_to_end(stream).await;
    }
}

/// Does `work` while `reading` goes on, so that the script never waits for us to read.
///
/// The work comes first at each turn: a script that floods its output keeps the reading busy until
/// tokio makes the task pause, and a timer asked after that would never be heard.
async fn beside<T>(
    mut reading: Pin<&mut impl FusedFuture<Output = ()>>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        let done = work.as_mut().poll(context);
        if done.is_pending() && !reading.is_terminated() {
            let _: Poll<()> = reading.as_mut().poll(context);
        }
        done
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_group_are_found_whatever_they_are_called() {
        let group = Pid::from_raw(42).unwrap();
        assert!(is_living_member("43 (py) S 9 1) S 1 42 42 0 -1", group));
        assert!(!is_living_member("43 (python) Z 1 42 42 0 -1", group));
        assert!(!is_living_member("43 (python) S 42 43 42 0 -1", group));
        assert!(!is_living_member("", group));
    }

    #[test]
    fn a_script_has_a_plain_name_of_its_own() {
        for filename in ["", ".", "..", "/x.py", "a/x.py", "../x.py", "x.py/", "input", ".home"] {
            let job = Job {
                script: String::new(),
                filename: filename.to_owned(),
                workspace: "/work".into(),
                data_dir: "/data".into(),
                time_limit: Duration::ZERO,
                gpus: None,
            };
            let refused = script_path(&job).unwrap_err();
            assert!(matches!(refused, ExecError::Filename { .. }), "{filename}");
        }
    }
}
