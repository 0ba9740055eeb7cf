//! A folder with a task and answers, and the product started in it.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::answers::{Answers, HEADER, ROWS};
use crate::handicap::Handicap;
use crate::processes;
use crate::stand_in::Temper;

/// How large the run is: two of everything that can be concurrent, one of the rest.
const SETTINGS: [&str; 9] = [
    "M=2",
    "T=1",
    "K=2",
    "L=2",
    "R=1",
    "max_debug_attempts=1",
    "script_timeout_seconds=12",
    "script_memory_limit=400MB",
    "script_output_limit=4MB",
];

/// How long a run may take if nothing is said: far more than all that can hang in it.
const TIME_LIMIT_SECONDS: u32 = 600;
/// What a run may take beyond its deadline.
pub const GRACE: Duration = Duration::from_secs(30);
/// What a life may take to begin, before its time counts. On a machine where others leave little for
/// us, a dozen processes that do nothing but start take most of a minute.
pub const OPENING: Duration = Duration::from_secs(60);

/// The number of the user that has no rights.
const NOBODY: u32 = 65_534;

/// The programs that trials need.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `mle-star`.
    pub product: Utf8PathBuf,
    /// `chaos`, which is also the stand-in for the CLI.
    pub chaos: Utf8PathBuf,
    /// The interpreter itself, not a shim that looks for it at each start.
    pub python: String,
}

/// Through what the agents answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agents {
    /// Nothing.
    Scripted,
    /// The stand-in for the CLI.
    OverCli,
}

/// A folder with a task in it.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
    programs: Programs,
    agents: Agents,
    /// How long the run may take.
    pub time_limit_seconds: u32,
    user: Option<u32>,
    /// How often the product was started; each life has a file of its own for what it says.
    lives: AtomicU32,
}

/// The product at work. Killed with all it started when nobody wants it any more.
#[derive(Debug)]
pub struct Life {
    child: Child,
    stderr: Utf8PathBuf,
    began: Instant,
}

/// How a life ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it said on standard error.
    pub said: String,
}

impl Programs {
    /// Finds the programs. Started by cargo, it has cargo build the product first, so that what is
    /// tried is what is there.
    pub fn find(chaos: &Utf8Path) -> anyhow::Result<Self> {
        let chaos = chaos.canonicalize_utf8()?;
        let mut product = chaos.clone();
        while product.pop() {
            if product.join("mle-star").is_file() || product.file_name() == Some("debug") {
                break;
            }
        }
        if let Some(cargo) = std::env::var_os("CARGO") {
            let release = product.file_name() == Some("release");
            let profile = release.then_some("--release");
            let status = Command::new(cargo)
                .args(["build", "--quiet", "-p", "mle-star", "--bin", "mle-star"])
                .args(profile)
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status()?;
            ensure!(status.success(), "the product cannot be built");
        }
        let product = product.join("mle-star");
        ensure!(product.is_file(), "there is no `mle-star` beside `{chaos}`");
        let whose = ["-c", "import sys; print(sys.executable)"];
        let python = Command::new("python3").args(whose).output().context("there is no python3")?;
        let python = String::from_utf8(python.stdout)?.trim().to_owned();
        Ok(Self { product, chaos, python })
    }
}

impl Place {
    /// A place with these answers.
    pub fn new(
        programs: &Programs,
        agents: Agents,
        answers: &Answers,
        temper: Temper,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("chaos-").tempdir()?;
        let place = Self {
            folder,
            programs: programs.clone(),
            agents,
            time_limit_seconds: TIME_LIMIT_SECONDS,
            user: None,
            lives: AtomicU32::new(0),
        };
        let root = place.root().to_owned();
        for folder in ["shop/input", "tmp", "home", "runs"] {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::write(root.join("shop/task.yaml"), TASK)?;
        fs::write(root.join("shop/input/train.csv"), "id,x,y\n1,2,3\n2,3,4\n3,4,5\n")?;
        let rows = |end: &str| ROWS.map(|id| format!("{id}{end}\n")).collect::<String>();
        fs::write(root.join("shop/input/test.csv"), format!("id,x\n{}", rows(",1")))?;
        let sample = format!("{HEADER}\n{}", rows(",0"));
        fs::write(root.join("shop/input/sample_submission.csv"), sample)?;
        fs::write(root.join("replies.yaml"), answers.file())?;
        let Temper { seed, share, kind, thinks } = temper;
        let chaos = &place.programs.chaos;
        let claude = format!(
            "#!/bin/sh\nexec {chaos} __claude {root}/ledger {seed} {share} {kind} {thinks} -- \"$@\"\n"
        );
        fs::write(root.join("claude"), claude)?;
        fs::set_permissions(root.join("claude"), std::fs::Permissions::from_mode(0o755))?;
        Ok(place)
    }

    /// From now on the product runs as nobody: root has as many processes as it wants.
    pub fn drop_privileges(&mut self) -> anyhow::Result<()> {
        if rustix::process::geteuid().is_root() {
            let owner = format!("{NOBODY}:{NOBODY}");
            let status =
                Command::new("chown").args(["-R", &owner, self.root().as_str()]).status()?;
            ensure!(status.success(), "the folder cannot be given away");
            self.user = Some(NOBODY);
        }
        Ok(())
    }

    /// From now on the process, which is one of ours, may have so many others beside it.
    pub fn limit_processes(&self, pid: i32, count: Option<u64>) -> anyhow::Result<()> {
        self.limit(pid, "nproc", count)
    }

    /// From now on no file that the process writes to can grow beyond so many bytes.
    pub fn limit_files(&self, pid: i32, bytes: u64) -> anyhow::Result<()> {
        self.limit(pid, "fsize", Some(bytes))
    }

    /// Asked of the system as the user of the process: root may not everywhere.
    fn limit(&self, pid: i32, what: &str, most: Option<u64>) -> anyhow::Result<()> {
        let mut command = Command::new("prlimit");
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let most = most.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
        let arguments = [format!("--pid={pid}"), format!("--{what}={most}:")];
        let output = command.args(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the limit `{what}` cannot be set: {said}");
        Ok(())
    }

    /// How long a life may take: the run ends with its deadline, whatever hangs in it.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.time_limit_seconds.into()) + GRACE + OPENING
    }

    /// The folder.
    pub fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap_or(Utf8Path::new("/nonexistent"))
    }

    /// The run directory with a journal that has begun.
    pub fn run(&self) -> Option<Utf8PathBuf> {
        let runs = self.root().join("runs").read_dir_utf8().ok()?.flatten();
        let mut runs = runs.map(camino::Utf8DirEntry::into_path);
        runs.find(|run| fs::metadata(run.join("journal.jsonl")).is_ok_and(|it| it.len() > 0))
    }

    /// How long the journal is.
    pub fn journal_bytes(&self) -> u64 {
        let journal = self.run().map(|run| run.join("journal.jsonl"));
        journal.and_then(|it| fs::metadata(it).ok()).map_or(0, |it| it.len())
    }

    /// What the stand-in noted, one line for each beginning and each payment.
    pub fn ledger(&self) -> String {
        fs::read_to_string(self.root().join("ledger")).unwrap_or_default()
    }

    /// Begins the run, or goes on with it if it was begun.
    pub fn live(&self) -> anyhow::Result<Life> {
        self.live_with(Handicap::None)
    }

    /// The same, under a handicap.
    pub fn live_with(&self, handicap: Handicap) -> anyhow::Result<Life> {
        let agents = match self.agents {
            Agents::Scripted => "scripted:replies.yaml",
            Agents::OverCli => "claude-over-scripted:replies.yaml",
        };
        let mut arguments: Vec<String> = Vec::new();
        match self.run() {
            Some(run) => arguments.extend(["resume".to_owned(), run.into_string()]),
            None => {
                arguments.extend(["run", "shop", "--agents", agents].map(str::to_owned));
                let settings = SETTINGS.iter().flat_map(|it| ["-s".to_owned(), (*it).to_owned()]);
                arguments.extend(settings);
                let limit = format!("time_limit_seconds={}", self.time_limit_seconds);
                arguments.extend(["-s".to_owned(), limit]);
                if self.agents == Agents::OverCli {
                    // The stand-in keeps its ledger outside, where a sandbox would not let it.
                    arguments.extend(["--sandbox", "limits"].map(str::to_owned));
                }
            }
        }
        self.start(&arguments, handicap)
    }

    /// Starts the product with these arguments.
    fn start(&self, arguments: &[String], handicap: Handicap) -> anyhow::Result<Life> {
        let root = self.root();
        let number = self.lives.fetch_add(1, Ordering::Relaxed);
        let stderr = root.join(format!("stderr-{number}"));
        let said = fs::File::create(&stderr)?.into_parts().0;
        let Programs { product, chaos, python } = &self.programs;
        // Whoever is nobody may not see the Python of whoever runs this.
        let python = if self.user.is_some() { "python3" } else { python.as_str() };
        let mut command = handicap.command(product, chaos);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let child = command
            .args(arguments)
            .current_dir(root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", root.join("home"))
            .env("TMPDIR", root.join("tmp"))
            .env("NO_COLOR", "1")
            .env("MLE_STAR_PYTHON", python)
            .env("MLE_STAR_CLAUDE_PATH", root.join("claude"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .process_group(0)
            .spawn()
            .context("cannot start the product")?;
        Ok(Life { child, stderr, began: Instant::now() })
    }
}

impl Life {
    /// The process.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> anyhow::Result<Option<Ended>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        let said = fs::read_to_string(&self.stderr).unwrap_or_default();
        Ok(Some(Ended { code: status.code(), said }))
    }

    /// Waits until `is_so`, the process ends, or `patience` is over; says whether it is so.
    pub fn wait_until(
        &mut self,
        patience: Duration,
        is_so: impl Fn() -> bool,
    ) -> anyhow::Result<bool> {
        let began = Instant::now();
        loop {
            if self.child.try_wait()?.is_some() || began.elapsed() > patience {
                return Ok(false);
            }
            if is_so() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits for its end.
    pub fn finish(mut self, patience: Duration) -> anyhow::Result<Ended> {
        while self.began.elapsed() < patience {
            if let Some(ended) = self.ended()? {
                return Ok(ended);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        anyhow::bail!("it has not ended after {} s", patience.as_secs())
    }

    /// Kills it as the system would.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A trial that failed may have left something at work.
        let left = processes::in_folder(self.root());
        left.iter().for_each(|it| processes::send(it.pid, Signal::KILL));
    }
}

const TASK: &str = "\
competition_id: shop
task_type: regression
data_modality: tabular
evaluation_metric: r2
description: Predict y from x.
";
