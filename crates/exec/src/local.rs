//! Runs scripts on this machine, each under a supervisor of its own.
//!
//! The supervisor does the work (see [`shim`](crate::shim)) and holds the script (see
//! [`sandbox`](crate::sandbox)). What is left to do here: give each script a share of the machine,
//! start its supervisor, wait, and read what it wrote down. A supervisor that is already at work on
//! the job, because an earlier life of ours started it, is waited for instead; one that is done
//! is not started again.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use futures::future::BoxFuture;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::environment::environment;
use crate::hold::Hold;
use crate::limits::{FREE_DISK_BYTES, Limits, free_disk_bytes};
use crate::room::when_there_is_room;
use crate::sandbox::{Confinement, Containment, Gap, Network, Tier, Wish};
use crate::scratch::Scratch;
use crate::shim::spec::{Age, Records, Report, Spec};
use crate::slots::{Slot, Slots};
use crate::{Ended, ExecError, Executor, Job, Outcome, machine, trace, workspace};

/// How long a supervisor may take beyond its script: to empty the workspace, for the script's last
/// words, and to kill what does not want to die.
///
/// Less than the 30 seconds by which a run may exceed its limit: a supervisor that does not answer
/// may be that of the last script.
const MARGIN: Duration = Duration::from_secs(25);
/// How often a supervisor is started for one script. One that is killed, as by a system short of
/// memory, says nothing about the script; if all of them are, it may well be the script.
const STARTS: u32 = 3;
/// How often to look whether somebody else's supervisor is done.
const LOOK: Duration = Duration::from_millis(50);
/// How long a trial of a tier may take. A Python on a network file system is slow at first.
const TRIAL: Duration = Duration::from_secs(60);

/// Where and how scripts are to run.
#[derive(Debug)]
pub struct Setup {
    /// The Python interpreter: an absolute path.
    pub python: Utf8PathBuf,
    /// The program that supervises a script.
    pub supervisor: Supervisor,
    /// What is wanted of the sandbox.
    pub wish: Wish,
    /// Whether scripts may use the network.
    pub network: Network,
    /// What they may read beside their data, the system's programs and the Python.
    pub readable: Vec<Utf8PathBuf>,
    /// Devices they may use.
    pub devices: Vec<Utf8PathBuf>,
    /// How much each may use.
    pub limits: Limits,
    /// The shares of the machine.
    pub slots: Slots,
}

/// A program that calls [`supervise`](crate::supervise) with the folder it is given as its last
/// argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    /// The program.
    pub program: Utf8PathBuf,
    /// What comes before the folder.
    pub arguments: Vec<String>,
}

impl Supervisor {
    /// The running program itself, even if its file was replaced meanwhile.
    pub fn this_program(argument: &str) -> Self {
        Self { program: "/proc/self/exe".into(), arguments: vec![argument.to_owned()] }
    }
}

/// Runs scripts on this machine.
#[derive(Debug)]
pub struct Local {
    python: Utf8PathBuf,
    supervisor: Supervisor,
    confinement: Confinement,
    containment: Containment,
    limits: Limits,
    slots: Slots,
}

impl Setup {
    /// Finds the best tier that is wanted and works here, by running a script in it.
    pub async fn try_out(self) -> Result<Local, ExecError> {
        let Self { python, supervisor, wish, network, readable, devices, limits, slots } = self;
        let mut folders = machine::folders_of(&python).await?;
        folders.extend(readable);
        let tiers = match wish {
            Wish::Exactly(tier) => vec![tier],
            Wish::Best => Tier::TRIED.to_vec(),
            Wish::AtLeast(least) => Tier::TRIED.into_iter().filter(|it| *it >= least).collect(),
        };
        let confinement =
            Confinement { tier: Tier::Off, network, readable: folders, devices, shared: None };
        let cores = slots.smallest();
        let containment = Containment::of(Tier::Off, network, limits, cores);
        let mut local = Local { python, supervisor, confinement, containment, limits, slots };
        let mut refused = Vec::new();
        for tier in tiers {
            local.confinement.tier = tier;
            let mut tried = local.trial().await;
            if tier > Tier::Limits && matches!(tried, Err(ExecError::NotRun { .. })) {
                // A mishap that passes, such as a kill, must not cost the run its sandbox.
                tried = local.trial().await;
            }
            match tried {
                Ok(()) => {
                    local.containment =
                        Containment { refused, ..Containment::of(tier, network, limits, cores) };
                    return Ok(local);
                }
                // Without any sandbox, what fails is not the sandbox.
                Err(error @ ExecError::NotRun { .. }) if tier > Tier::Limits => {
                    refused.push(format!("{tier}: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        Err(ExecError::Sandbox { refused })
    }
}

impl Executor for Local {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        Box::pin(async {
            let slot = self.slots.take().await;
            self.carry_out(job, &slot).await
        })
    }

    fn slots(&self) -> usize {
        self.slots.count()
    }

    fn containment(&self) -> Option<&Containment> {
        Some(&self.containment)
    }
}

impl Local {
    /// Lets every script write to `folder`, where one leaves something for the next; they know it
    /// as `MLE_STAR_SHARED`. Only for scripts that may trust each other.
    #[must_use]
    pub fn sharing(mut self, folder: Utf8PathBuf) -> Self {
        self.confinement.shared = Some(folder);
        self
    }

    /// Holds another program than Python as tightly as scripts, and lets it read what they may but
    /// their data.
    pub fn hold(&self) -> Hold {
        Hold::new(self.confinement.clone(), self.limits)
    }

    /// Agents work with programs too, which can do this although they should not.
    #[must_use]
    pub fn with_agents(mut self, gaps: Vec<Gap>) -> Self {
        self.containment.agents = Some(gaps);
        self
    }

    /// Runs a script that does nothing, to see whether any can be run.
    async fn trial(&self) -> Result<(), ExecError> {
        let place = Scratch::new("trial")?;
        let root = Utf8Path::from_path(place.path());
        let root =
            root.ok_or_else(|| std::io::Error::other("the temporary folder is not UTF-8"))?;
        fs::create_dir(root.join("data"))?;
        let job = Job {
            script: "print('ready')".to_owned(),
            filename: "trial.py".to_owned(),
            workspace: root.join("work"),
            data_dir: root.join("data"),
            time_limit: TRIAL,
            records: root.join("job"),
        };
        let slot = Slot::default();
        let outcome = self.carry_out(&job, &slot).await?;
        if outcome.ended == (Ended::Exited { code: 0 }) && outcome.stdout.text == "ready\n" {
            return Ok(());
        }
        let last = outcome.stderr.text.lines().rev().find(|line| !line.trim().is_empty());
        let complaint = last.map_or_else(|| format!("{:?}", outcome.ended), str::to_owned);
        Err(ExecError::NotRun { reason: format!("Python does not start in it: {complaint}") })
    }

    async fn carry_out(&self, job: &Job, slot: &Slot) -> Result<Outcome, ExecError> {
        let script = workspace::script_path(job)?;
        let records = Records::at(&job.records);
        if records.open()? == Age::Old {
            if let Some(outcome) = adopt(&records, job).await? {
                return Ok(outcome);
            }
            records.forget_report()?;
        }
        if let Some(shared) = &self.confinement.shared {
            fs::create_dir_all(shared)?;
        }
        records.write_spec(&self.spec(job, slot))?;
        trace::script_written(&script, &job.script);
        trace::execution_started(&script, &job.workspace, job.time_limit);
        let mut starts = 1;
        let report = loop {
            match self.supervise(job, &records).await? {
                Said::Report(report) => break *report,
                Said::Killed(_) if starts < STARTS => starts += 1,
                Said::Killed(detail) | Said::Nothing(detail) => {
                    // On a full disk nobody can write down what is wrong.
                    let free = free_disk_bytes(records.folder());
                    return Err(match free.filter(|free| *free < FREE_DISK_BYTES) {
                        Some(free) => ExecError::NoRoom { free, needed: FREE_DISK_BYTES },
                        None => ExecError::Supervisor { detail },
                    });
                }
            }
        };
        let outcome = outcome_of(report)?;
        if matches!(outcome.ended, Ended::TimedOut { .. }) {
            trace::timed_out(&script, job.time_limit);
        }
        Ok(outcome)
    }

    /// Starts a supervisor and waits for what it says.
    async fn supervise(&self, job: &Job, records: &Records) -> Result<Said, ExecError> {
        let mut supervised = self.start_supervisor(records).await?;
        let status = timeout(job.time_limit + MARGIN, supervised.child.wait()).await;
        if let Some(report) = records.report()? {
            supervised.is_done = true;
            return Ok(Said::Report(Box::new(report)));
        }
        Ok(match status {
            Err(_) => {
                supervised.child.start_kill().ok(); // asking is no use any more
                Said::Nothing("it did not end in time".to_owned())
            }
            Ok(Err(error)) => Said::Nothing(error.to_string()),
            Ok(Ok(status)) => {
                supervised.is_done = true;
                let log = fs::read_to_string(records.log()).unwrap_or_default();
                let detail = format!("{status} {}", log.trim()).trim().to_owned();
                match status.signal() {
                    Some(_) => Said::Killed(detail),
                    None => Said::Nothing(detail),
                }
            }
        })
    }

    fn spec(&self, job: &Job, slot: &Slot) -> Spec {
        // Inside, there are no folders but those that are given, so no way leads through others.
        let workspace = workspace::without_detours(&job.workspace);
        let shared = self.confinement.shared.as_deref();
        let variables = environment(std::env::vars_os(), &workspace, shared, Some(slot));
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Spec {
            python: self.python.clone(),
            script: job.script.clone(),
            filename: job.filename.clone(),
            workspace,
            data_dir: job.data_dir.canonicalize_utf8().unwrap_or_else(|_| job.data_dir.clone()),
            environment: variables.into_iter().filter_map(text).collect(),
            time_limit: job.time_limit,
            limits: self.limits,
            cores: slot.cores.clone(),
            confinement: self.confinement.clone(),
            awaited_by: std::process::id(),
        }
    }

    async fn start_supervisor(&self, records: &Records) -> Result<Supervised, ExecError> {
        let Supervisor { program, arguments } = &self.supervisor;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(records.folder())
            .current_dir("/")
            .env_clear() // a script may find a way to look at it
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(records.log())?.into_parts().0)
            .process_group(0);
        match when_there_is_room(|| command.spawn()).await {
            Ok(child) => Ok(Supervised { child, is_done: false }),
            Err(source) => Err(ExecError::Spawn { program: program.clone(), source }),
        }
    }
}

/// What a supervisor said in the end.
enum Said {
    Report(Box<Report>),
    /// Nothing: somebody killed it.
    Killed(String),
    /// Nothing, for this reason.
    Nothing(String),
}

/// A supervisor at work. It goes on when we die, but not when nobody waits for it any longer.
#[derive(Debug)]
struct Supervised {
    child: Child,
    is_done: bool,
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // Asked, not killed: it has a script to kill.
        if !self.is_done
            && let Some(pid) = self.child.id()
        {
            ask_to_stop(pid.cast_signed());
        }
    }
}

/// The result of a job that was begun before, if it can be had.
async fn adopt(records: &Records, job: &Job) -> Result<Option<Outcome>, ExecError> {
    let is_same = records.spec().is_ok_and(|spec| spec.is_for(job));
    let mut waited = Duration::ZERO;
    let mut adopted = Adopted::default();
    while let Some(supervisor) = records.supervisor()? {
        adopted.supervisor = Some(supervisor);
        if !is_same || waited > job.time_limit + MARGIN {
            ask_to_stop(supervisor);
        }
        sleep(LOOK).await;
        waited += LOOK;
    }
    adopted.supervisor = None;
    match records.report() {
        Ok(Some(Report::Ended(outcome)))
            if is_same && !was_cut_short(&outcome, job) && is_whole(&outcome) =>
        {
            Ok(Some(outcome))
        }
        // What cannot be read is no result.
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Somebody else's supervisor that we wait for. Stopped if we stop waiting.
#[derive(Debug, Default)]
struct Adopted {
    supervisor: Option<i32>,
}

impl Drop for Adopted {
    fn drop(&mut self) {
        self.supervisor.into_iter().for_each(ask_to_stop);
    }
}

/// Whether the script has more time now than it had then.
fn was_cut_short(outcome: &Outcome, job: &Job) -> bool {
    matches!(outcome.ended, Ended::TimedOut { after_seconds }
        if after_seconds < job.time_limit.as_secs_f64())
}

/// Whether what the script wrote is still there: the workspace may be gone.
fn is_whole(outcome: &Outcome) -> bool {
    !outcome.submission.is_present() || Utf8Path::new(&outcome.submission.path).is_file()
}

fn ask_to_stop(supervisor: i32) {
    if let Some(pid) = Pid::from_raw(supervisor) {
        kill_process(pid, Signal::TERM).ok(); // it may be gone by now
    }
}

fn outcome_of(report: Report) -> Result<Outcome, ExecError> {
    match report {
        Report::Ended(outcome) => Ok(outcome),
        Report::Cancelled => {
            Err(ExecError::Supervisor { detail: "somebody stopped it".to_owned() })
        }
        Report::NoRoom { free, needed } => Err(ExecError::NoRoom { free, needed }),
        Report::Failed { reason } => Err(ExecError::NotRun { reason }),
    }
}
