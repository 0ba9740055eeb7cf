//! Starts the program and ends it, with everything it started.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use crate::cli::Cli;
use crate::error::Error;
use crate::lines::Lines;
use crate::options::Environment;
use crate::order::Order;
use crate::tree::kill_descendants;

/// How much of the end of standard error is kept.
const STDERR_BYTES: usize = 8 * 1024;
/// How long to listen to a program that has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long to look for processes to kill.
const KILLING: Duration = Duration::from_secs(2);

/// How often to start a program that there is no room for, and how long to wait at first. In all
/// that is a quarter of a minute.
const TRIES: u32 = 8;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(125);

/// The program at work. Dropping it ends it and everything it started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    is_direct: bool,
    pub(crate) input: Input,
    pub(crate) lines: Lines<ChildStdout>,
    pub(crate) complaints: Complaints,
}

/// What stands between us and a program, before it knows which. Dropping it ends it: it reads the
/// end of its input.
#[derive(Debug)]
pub(crate) struct Waiting(Child);

impl Waiting {
    pub(crate) fn start(program: &OsStr, arguments: &[OsString]) -> Result<Self, Error> {
        spawn(program, arguments, &[], Path::new("/")).map(Self)
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.0.id()
    }

    /// Whether it has not ended meanwhile.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

/// Starts a program with these arguments and no other variables, to talk to.
fn spawn<'a>(
    program: &OsStr,
    arguments: impl IntoIterator<Item = &'a OsString>,
    variables: &[(OsString, OsString)],
    folder: &Path,
) -> Result<Child, Error> {
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0) // what a terminal tells us is not meant for it
        .spawn()
        .map_err(|source| {
            let program = Path::new(program);
            let missing = if program.is_file() { folder } else { program };
            Error::NotStarted { path: missing.to_owned(), source }
        })
}

/// Standard input, and what is still to be written there. Writing never keeps anybody from
/// reading: a program whose output nobody reads does not read its input either.
#[derive(Debug)]
pub(crate) struct Input {
    stdin: Option<ChildStdin>,
    waiting: VecDeque<u8>,
}

/// The end of what came on standard error.
#[derive(Debug)]
pub(crate) struct Complaints {
    stderr: Option<ChildStderr>,
    tail: VecDeque<u8>,
}

impl Process {
    /// Starts the program in `folder` with these arguments and no other variables.
    pub(crate) fn start(
        cli: &Cli,
        arguments: &[OsString],
        environment: &[(OsString, OsString)],
        folder: &Path,
        line_bytes: usize,
    ) -> Result<Self, Error> {
        let not_started = |source| Error::NotStarted { path: cli.path().to_owned(), source };
        let (mut child, first_said) = match cli.launch().take_waiting() {
            Some(Waiting(child)) => {
                let order = Order {
                    folder: folder.to_owned(),
                    program: cli.path().into(),
                    arguments: arguments.to_vec(),
                    variables: environment.to_vec(),
                };
                (child, order.to_bytes().map_err(not_started)?)
            }
            None => {
                let (program, first) = cli.launch().of(cli.path());
                let arguments = first.iter().chain(arguments);
                (spawn(&program, arguments, environment, folder)?, Vec::new())
            }
        };
        let none = || not_started(io::Error::other("it has no standard streams"));
        let stdin = child.stdin.take().ok_or_else(none)?;
        let stdout = child.stdout.take().ok_or_else(none)?;
        let stderr = child.stderr.take().ok_or_else(none)?;
        Ok(Self {
            child,
            is_direct: cli.launch().is_direct(),
            input: Input { stdin: Some(stdin), waiting: first_said.into() },
            lines: Lines::new(stdout, line_bytes),
            complaints: Complaints { stderr: Some(stderr), tail: VecDeque::new() },
        })
    }

    /// The number of the process, as long as it lives.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end, at most so long. Gives its exit code, if it ended by itself. Whatever it
    /// still says is thrown away, so that it cannot get stuck on it.
    pub(crate) async fn ended(&mut self, within: Duration) -> Option<Ended> {
        let Self { child, lines, complaints, .. } = self;
        let listen = async {
            loop {
                tokio::select! {
                    line = lines.next() => if line.is_err() { break },
                    () = complaints.listen() => {}
                }
            }
            complaints.listen_to_the_end().await;
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            status = timeout(within, child.wait()) => status.ok()?.ok()?,
            () = listen => return None,
        };
        // Its last words may still be in the pipe; whoever inherited it may keep it open for ever.
        timeout(LAST_WORDS, self.complaints.listen_to_the_end()).await.ok();
        Some(Ended { code: ended.code() })
    }

    /// Ends it: it sees the end of its input, then it is told, then it and all it started are
    /// killed. Takes at most about three times `patience`.
    pub(crate) async fn stop(&mut self, patience: Duration) -> Option<Ended> {
        self.input.close();
        if let Some(ended) = self.ended(patience).await {
            return Some(ended);
        }
        self.signal(Signal::TERM);
        // A keeper has to give the program its time.
        if let Some(ended) = self.ended(patience + Duration::from_secs(3)).await {
            return Some(ended);
        }
        self.kill();
        self.ended(patience).await
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id()?.cast_signed())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            kill_process(pid, signal).ok(); // it may be gone by now
        }
    }

    /// Kills it with all its descendants, those first: without their parent they could not be
    /// found.
    fn kill(&self) {
        if let Some(pid) = self.pid() {
            kill_descendants(pid, KILLING, || ());
            kill_process_group(pid, Signal::KILL).ok();
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input.close();
        match self.is_direct {
            true => self.kill(),
            // Asked, not killed: it has others to kill. It sees its input closed besides.
            false => self.signal(Signal::TERM),
        }
    }
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
}

impl Input {
    /// Puts a line in the queue.
    pub(crate) fn queue(&mut self, line: &serde_json::Value) {
        if self.stdin.is_some() {
            self.waiting.extend(line.to_string().into_bytes());
            self.waiting.push_back(b'\n');
        }
    }

    /// How many bytes wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Writes some of what waits; never returns if nothing does. Nothing is lost or written twice
    /// when the future is dropped.
    pub(crate) async fn write(&mut self) {
        let (Some(stdin), false) = (&mut self.stdin, self.waiting.is_empty()) else {
            return std::future::pending().await;
        };
        match stdin.write(self.waiting.as_slices().0).await {
            Ok(written @ 1..) => drop(self.waiting.drain(..written)),
            // It reads no more. Why, its output or its end will tell.
            Ok(0) | Err(_) => self.close(),
        }
    }

    /// Lets the program see the end of its input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
        self.waiting = VecDeque::new();
    }
}

impl Complaints {
    /// Reads some; never returns if there can be no more.
    pub(crate) async fn listen(&mut self) {
        let Some(stderr) = &mut self.stderr else { return std::future::pending().await };
        let mut chunk = [0; 4096];
        match stderr.read(&mut chunk).await {
            Ok(read @ 1..) => {
                self.tail.extend(chunk.iter().take(read));
                let excess = self.tail.len().saturating_sub(STDERR_BYTES);
                self.tail.drain(..excess);
            }
            Ok(0) | Err(_) => self.stderr = None,
        }
    }

    async fn listen_to_the_end(&mut self) {
        while self.stderr.is_some() {
            self.listen().await;
        }
    }

    /// The end of what was said.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.tail.make_contiguous()).trim().to_owned()
    }
}

/// What a program says on standard output when it is started with its own arguments and this one.
/// It is started again while there is no room for another process: others will make some.
pub(crate) async fn output(
    command: &(OsString, Vec<OsString>),
    argument: &str,
    environment: &Environment,
    folder: Option<&Path>,
    within: Duration,
) -> Result<String, Error> {
    when_there_is_room(async || output_now(command, argument, environment, folder, within).await)
        .await
}

async fn when_there_is_room<T>(
    mut start: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match start().await {
            Err(error) if error.is_want_of_room() => sleep(pause).await,
            done => return done,
        }
        pause *= 2;
    }
    start().await
}

async fn output_now(
    (program, first): &(OsString, Vec<OsString>),
    argument: &str,
    environment: &Environment,
    folder: Option<&Path>,
    within: Duration,
) -> Result<String, Error> {
    let not_started = |source| Error::NotStarted { path: program.into(), source };
    let mut command = Command::new(program);
    command.args(first).arg(argument).env_clear().envs(environment.pairs());
    command.stdin(Stdio::null()).kill_on_drop(true);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    match timeout(within, command.output()).await {
        Err(_) => Err(Error::Hung { doing: "saying its version", after: within }),
        Ok(Err(source)) => Err(not_started(source)),
        Ok(Ok(output)) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(Ok(output)) => Err(Error::Exited {
            code: output.status.code(),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_started_as_soon_as_there_is_room() {
        let not_started = |number: i32| Error::NotStarted {
            path: "claude".into(),
            source: io::Error::from_raw_os_error(number),
        };
        let said = "sh: fork: Resource temporarily unavailable".to_owned();
        let starved = Error::Exited { code: Some(254), said };
        let mut answers = [
            Err(not_started(rustix::io::Errno::AGAIN.raw_os_error())),
            Err(starved),
            Ok("started"),
        ]
        .into_iter();
        let started = when_there_is_room(async || answers.next().unwrap()).await;
        assert_eq!(started.unwrap(), "started");

        let mut tries = 0;
        let missing = when_there_is_room(async || {
            tries += 1;
            Err::<(), _>(Error::NotFound { tried: "claude".to_owned() })
        });
        assert!(matches!(missing.await, Err(Error::NotFound { .. })));
        assert_eq!(tries, 1);
    }
}
