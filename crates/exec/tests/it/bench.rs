//! A folder with data, a place to work, and an executor.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_exec::limits::Limits;
use mle_star_exec::sandbox::{Network, Tier, Wish};
use mle_star_exec::slots::Slots;
use mle_star_exec::{Executor, Job, Local, Outcome, Setup, Supervisor, machine};
use tokio::sync::OnceCell;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) local: Local,
}

/// Where a copy of the supervisor is, for a user who cannot reach the place where it was built.
pub(crate) const COPY_OF_SUPERVISOR: &str = "MLE_STAR_EXEC_TEST_SUPERVISOR";

/// The supervisor as a program of its own.
pub(crate) fn supervisor() -> Supervisor {
    let built = env!("CARGO_BIN_EXE_mle-star-shim").to_owned();
    let program = std::env::var(COPY_OF_SUPERVISOR).unwrap_or(built);
    Supervisor { program: program.into(), arguments: Vec::new() }
}

/// Limits that no test meets by accident.
pub(crate) fn ample() -> Limits {
    Limits {
        memory_bytes: 4 << 30,
        processes: 1024,
        output_bytes: 10_000_000_000,
        workspace_bytes: 2 << 30,
        file_bytes: 2 << 30,
    }
}

/// The Python of these tests: the interpreter itself, not a shim in front of it.
pub(crate) async fn python() -> Utf8PathBuf {
    static PYTHON: OnceCell<String> = OnceCell::const_new();
    let detected = async { machine::detect(None).await.unwrap().python };
    PYTHON.get_or_init(|| detected).await.into()
}

pub(crate) async fn setup(wish: Wish) -> Setup {
    Setup {
        python: python().await,
        supervisor: supervisor(),
        wish,
        network: Network::Deny,
        readable: Vec::new(),
        devices: Vec::new(),
        limits: ample(),
        slots: Slots::new(2, &[0, 1], &[]),
    }
}

impl Bench {
    /// In the best sandbox that there is.
    pub(crate) async fn new() -> Self {
        Self::with(setup(Wish::Best).await).await
    }

    /// In this sandbox and no other.
    pub(crate) async fn held(tier: Tier) -> Self {
        Self::with(setup(Wish::Exactly(tier)).await).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        fs::create_dir(root.join("data")).unwrap();
        fs::write(root.join("data/train.csv"), "id\n1\n").unwrap();
        Self { _dir: dir, root, local: setup.try_out().await.unwrap() }
    }

    pub(crate) fn workspace(&self) -> Utf8PathBuf {
        self.root.join("work")
    }

    /// A job of its own: the next one with the same script is another.
    pub(crate) fn job(&self, script: &str) -> Job {
        let jobs = self.root.join("jobs");
        let number = fs::read_dir(&jobs).map_or(0, Iterator::count);
        let records = jobs.join(number.to_string());
        fs::create_dir_all(&records).unwrap();
        Job {
            script: script.to_owned(),
            filename: "solution.py".to_owned(),
            workspace: self.workspace(),
            data_dir: self.root.join("data"),
            time_limit: MINUTE,
            records,
        }
    }

    pub(crate) async fn run(&self, script: &str) -> Outcome {
        self.local.run(&self.job(script)).await.unwrap()
    }

    /// The same with a time limit.
    pub(crate) async fn run_for(&self, time_limit: Duration, script: &str) -> Outcome {
        self.local.run(&Job { time_limit, ..self.job(script) }).await.unwrap()
    }

    /// The processes in the workspace, as this machine numbers them.
    pub(crate) fn processes(&self) -> Vec<i32> {
        processes_in(&self.workspace())
    }

    /// The supervisor that works on `job`.
    pub(crate) fn supervisor_of(&self, job: &Job) -> Option<i32> {
        fs::read_to_string(job.records.join("lock")).ok()?.parse().ok()
    }

    /// What a script wrote into a file of its workspace.
    pub(crate) fn written(&self, file: &str) -> String {
        fs::read_to_string(self.workspace().join(file)).unwrap_or_default()
    }
}

/// The living processes that work in `folder`.
pub(crate) fn processes_in(folder: &Utf8Path) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = all.filter(|process| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    inside.filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

/// Waits for something that happens soon.
pub(crate) async fn eventually(what: &str, happens: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !happens() {
        assert!(Instant::now() < patience, "still waiting until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
