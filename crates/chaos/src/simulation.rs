//! A run inside this process: agents that answer at once, scripts that cost nothing, and a clock
//! that can be set. For what takes thousands of steps, or another time of day.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;
use mle_star_agent::{Call, Reply, Scripted};
use mle_star_exec::limits::Usage;
use mle_star_exec::machine::{GpuInfo, Machine};
use mle_star_exec::sandbox::{Tier, Wish};
use mle_star_exec::{Captured, Ended, ExecError, Executor, Job, Outcome, SubmissionInfo};
use mle_star_profile::{Bounds, Manifest};
use mle_star_search::event::{FORMAT, Header};
use mle_star_search::models::{
    ConfigLayer, DataModality, MetricDirection, PipelineConfig, TaskDescription, TaskType,
};
use mle_star_search::rundir::RunDir;
use mle_star_search::{Clock, Completed, OnChange, Ports, Run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A world in which a run takes no time.
#[derive(Debug)]
pub struct Simulation {
    folder: TempDir,
    task: TaskDescription,
    config: PipelineConfig,
    /// What the clock shows.
    pub clock: Hands,
    calls: Arc<AtomicU64>,
    every: u64,
    samples: Arc<Mutex<Vec<Sample>>>,
}

/// The hands of a clock, in milliseconds since 1970. It goes on by one whenever it is looked at.
#[derive(Debug, Clone)]
pub struct Hands(Arc<AtomicI64>);

/// What the process takes after so many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Calls of agents so far.
    pub calls: u64,
    /// Resident memory.
    pub memory_bytes: u64,
    /// Open files.
    pub files: u64,
    /// The length of the journal.
    pub journal_bytes: u64,
}

impl Simulation {
    /// A world with settings such as `T=2 K=1`, in which a sample is taken `every` so many calls.
    pub fn new(settings: &str, every: u64) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("chaos-simulation-").tempdir()?;
        let root = Utf8Path::from_path(folder.path()).context("the folder is not UTF-8")?;
        let data = root.join("data");
        fs::create_dir_all(&data)?;
        fs::create_dir_all(root.join("run"))?;
        fs::write(data.join("train.csv"), "id,x,y\n1,2,3\n2,3,4\n")?;
        let (kind, modality) = (TaskType::Regression, DataModality::Tabular);
        let direction = MetricDirection::Maximize;
        let task = TaskDescription::new("toy", kind, modality, "r2", direction, "Predict y.")?;
        let task = TaskDescription { data_dir: data, ..task };
        let config = ConfigLayer::from_pairs(settings.split_whitespace())?.resolve()?;
        let clock = Hands(Arc::new(AtomicI64::new(1_000_000_000_000)));
        let (calls, samples) = (Arc::default(), Arc::default());
        Ok(Self { folder, task, config, clock, calls, every, samples })
    }

    fn dir(&self) -> RunDir {
        RunDir::at(self.folder.path().join("run").to_string_lossy().into_owned())
    }

    /// Where the journal is.
    pub fn journal(&self) -> Utf8PathBuf {
        self.dir().journal()
    }

    /// How often agents were asked.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The samples so far.
    pub fn samples(&self) -> Vec<Sample> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the run, or takes it up again.
    pub fn open(&self) -> anyhow::Result<Run> {
        let header = Header {
            format: FORMAT,
            version: "chaos".to_owned(),
            agents: "scripted".to_owned(),
            task: self.task.clone(),
            config: self.config.clone(),
            machine: Machine {
                python: "/usr/bin/python3".to_owned(),
                python_version: "3.11.7".to_owned(),
                packages: Vec::new(),
                cores: 2,
                memory_bytes: 8 << 30,
                gpus: GpuInfo::default(),
            },
            data: mle_star_profile::profile(&self.task.data_dir, &Bounds::default())?,
            manifest: Manifest::of(&self.task.data_dir)?,
            reference_discussions: Vec::new(),
            sandbox: Wish::Best,
            containment: None,
        };
        Ok(match self.journal().is_file() {
            false => Run::create(self.dir(), header, self.ports())?,
            true => Run::resume(self.dir(), header, self.ports(), OnChange::Stop)?,
        })
    }

    /// Runs it to its end; or takes it up again, as a program would.
    pub async fn run(&self) -> anyhow::Result<Completed> {
        let run = self.open()?;
        run.rehearse(mle_star_search::run(&run.ctx()))?;
        Ok(mle_star_search::run(&run.ctx()).await?)
    }

    /// Runs it until agents were asked so often in all, and drops it there.
    pub async fn run_until(&self, calls: u64) -> anyhow::Result<()> {
        let run = self.open()?;
        run.rehearse(mle_star_search::run(&run.ctx()))?;
        let ctx = run.ctx();
        let mut search = std::pin::pin!(mle_star_search::run(&ctx));
        while self.calls() < calls {
            if futures::poll!(search.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn ports(&self) -> Ports {
        let (calls, samples, every) = (self.calls.clone(), self.samples.clone(), self.every);
        let journal = self.journal();
        let agent = Scripted::new(move |call| {
            let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
            if number.is_multiple_of(every) {
                let sample = sample(number, &journal);
                samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
            }
            Ok(Reply { cost_usd: Some(0.001), ..Reply::text(reply(call)) })
        });
        Ports {
            agent: Box::new(Turns(agent)),
            executor: Box::new(Toy),
            clock: Box::new(self.clock.clone()),
            secrets: Vec::new(),
        }
    }
}

impl Hands {
    /// Sets the clock forward, or back.
    pub fn turn(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::Relaxed);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        let now = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_millisecond(now).unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        futures::future::pending().boxed() // nothing here takes long enough
    }
}

/// What this process takes.
fn sample(calls: u64, journal: &Utf8Path) -> Sample {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_default();
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    Sample {
        calls,
        memory_bytes: pages * u64::try_from(rustix::param::page_size()).unwrap_or(4096),
        files: u64::try_from(files).unwrap_or_default(),
        journal_bytes: fs::metadata(journal).map_or(0, |it| it.len()),
    }
}

/// Lets the other lanes go on before it answers.
#[derive(Debug)]
struct Turns(Scripted);

impl mle_star_agent::Agent for Turns {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask<'a>(
        &'a self,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, mle_star_agent::AgentError>> {
        async {
            tokio::task::yield_now().await;
            self.0.ask(call).await
        }
        .boxed()
    }
}

/// The number in the part `name-3` of a step.
fn index(step: &str, name: &str) -> u32 {
    let mut parts = step.split('/').filter_map(|part| part.rsplit_once('-'));
    parts.find(|(it, _)| *it == name).and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

fn reply(call: &Call) -> String {
    let fenced = |code: &str| format!("```python\n{code}\n```");
    let script = |score: f64| {
        fenced(&format!(
            "import math\nscore = {score}\nprint(f\"Final Validation Performance: {{score}}\")"
        ))
    };
    match (call.role.as_str(), call.variant.as_deref()) {
        ("retriever", _) => {
            let wanted = call.input.get("M").and_then(Value::as_u64).unwrap_or(1);
            let model =
                |number| json!({ "model_name": format!("m{number}"), "example_code": "f()" });
            json!({ "models": (0..wanted).map(model).collect::<Vec<_>>() }).to_string()
        }
        ("init" | "merger" | "debugger", _) => script(0.5),
        ("ablation", _) => fenced("print('without the score: -0.1')"),
        ("summarize", _) => "The score line matters most.".to_owned(),
        ("extractor", _) => {
            let script = call.input.get("solution_script").and_then(Value::as_str);
            let block = script.unwrap_or_default().lines().find(|it| it.starts_with("score = "));
            json!({ "plans": [{ "code_block": block, "plan": "raise the score" }] }).to_string()
        }
        ("planner", _) => format!("plan {}", index(&call.step, "inner")),
        ("coder", _) => {
            let steps = index(&call.step, "outer") * 100 + index(&call.step, "inner");
            fenced(&format!("score = {}", 0.5 + f64::from(steps) / 1e6))
        }
        ("ens_planner", _) => format!("average them, way {}", index(&call.step, "round")),
        ("ensembler", _) => script(0.9),
        ("leakage", Some("detection")) => json!({ "answers": [
            { "leakage_status": "No Data Leakage", "code_block": "import math" }
        ]})
        .to_string(),
        ("data", _) => "All the provided information is used.".to_owned(),
        ("test", Some(_)) => fenced(""),
        ("test", None) => fenced("open('./final/submission.csv', 'w').write('id,y\\n1,2\\n')"),
        _ => String::new(),
    }
}

/// Understands the scripts of this module, and nothing else.
#[derive(Debug)]
struct Toy;

impl Executor for Toy {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        ready(interpret(job).map_err(ExecError::Io)).boxed()
    }

    fn slots(&self) -> usize {
        2
    }
}

fn interpret(job: &Job) -> std::io::Result<Outcome> {
    let captured = |text: String| Captured {
        total_bytes: text.len() as u64,
        truncated: false,
        file: None,
        text,
    };
    let score = job.script.lines().find_map(|line| line.strip_prefix("score = "));
    let stdout = score.map_or_else(
        || "without the score: -0.1\n".to_owned(),
        |score| format!("Final Validation Performance: {score}\n"),
    );
    let mut submission = SubmissionInfo::default();
    if job.script.contains("submission.csv") {
        let path = job.workspace.join("final/submission.csv");
        fs::create_dir_all(path.parent().unwrap_or(&job.workspace))?;
        fs::write(&path, "id,y\n1,2\n")?;
        submission = SubmissionInfo {
            exists: true,
            path: path.into_string(),
            size_bytes: 9,
            row_count: Some(1),
            parse_error: None,
        };
    }
    Ok(Outcome {
        ended: Ended::Exited { code: 0 },
        stdout: captured(stdout),
        stderr: captured(String::new()),
        duration_seconds: 0.01,
        submission,
        usage: Usage::default(),
        limits: None,
        tier: Tier::Off,
    })
}
