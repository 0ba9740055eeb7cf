//! What the benchmarks share: a run whose agents and scripts cost nothing, and a few figures.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;
use mle_star_agent::{Reply, Scripted};
use mle_star_exec::limits::Usage;
use mle_star_exec::machine::{GpuInfo, Machine};
use mle_star_exec::sandbox::{Tier, Wish};
use mle_star_exec::{Captured, Ended, ExecError, Executor, Job, Outcome, SubmissionInfo};
use mle_star_profile::{Bounds, Manifest};
use mle_star_search::event::{FORMAT, Header, Record};
use mle_star_search::models::{
    ConfigLayer, DataModality, MetricDirection, TaskDescription, TaskType,
};
use mle_star_search::rundir::RunDir;
use mle_star_search::{Clock, Ports, Run};
use serde_json::json;

pub(crate) fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}

pub(crate) fn script(score: f64) -> String {
    format!("import math\nscore = {score:?}\nprint(f\"Final Validation Performance: {{score}}\")\n")
}

/// A run directory with a task, whose agents and scripts cost nothing.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    header: Header,
    /// Lines of no effect in each piece of code, to make it as long as real ones are.
    padding: usize,
}

impl World {
    pub(crate) fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let data = Utf8Path::from_path(folder.path()).unwrap().join("data");
        fs_err::create_dir_all(&data).unwrap();
        fs_err::write(data.join("train.csv"), "id,x,y\n1,2,3\n").unwrap();
        let mut task = TaskDescription::new(
            "bench",
            TaskType::Regression,
            DataModality::Tabular,
            "r2",
            MetricDirection::Maximize,
            "Predict y.",
        )
        .unwrap();
        task.data_dir.clone_from(&data);
        let config = ConfigLayer::from_pairs(settings.split_whitespace()).unwrap();
        let header = Header {
            format: FORMAT,
            version: "bench".to_owned(),
            agents: "scripted".to_owned(),
            task,
            config: config.resolve().unwrap(),
            machine: Machine {
                python: "python3".to_owned(),
                python_version: "3.11".to_owned(),
                packages: Vec::new(),
                cores: 2,
                memory_bytes: 8 << 30,
                gpus: GpuInfo::default(),
            },
            data: mle_star_profile::profile(&data, &Bounds::default()).unwrap(),
            manifest: Manifest::of(&data).unwrap(),
            reference_discussions: Vec::new(),
            sandbox: Wish::Best,
            containment: None,
        };
        Self { folder, header, padding: 0 }
    }

    pub(crate) fn dir(&self) -> RunDir {
        let root = Utf8PathBuf::from_path_buf(self.folder.path().join("run")).unwrap();
        RunDir::at(root)
    }

    /// The same with longer scripts.
    pub(crate) fn with_padding(self, lines: usize) -> Self {
        Self { padding: lines, ..self }
    }

    pub(crate) fn ports(&self) -> Ports {
        let padding =
            "# What stands here is of no effect, but has to be read.\n".repeat(self.padding);
        let answer = move |role: &str, input: &serde_json::Value| match role {
            // What it quotes must be in the script as it is.
            "test" => reply(role, input),
            role => reply(role, input).replacen("```python\n", &format!("```python\n{padding}"), 1),
        };
        Ports {
            agent: Box::new(Scripted::new(move |call| {
                Ok(Reply::text(answer(&call.role, &call.input)))
            })),
            executor: Box::new(Instantly),
            clock: Box::new(Now),
            secrets: Vec::new(),
        }
    }

    pub(crate) fn open(&self) -> Run {
        fs_err::create_dir_all(self.dir().root()).unwrap();
        Run::create(self.dir(), self.header.clone(), self.ports()).unwrap()
    }

    pub(crate) fn run(&self, runtime: &tokio::runtime::Runtime) {
        let run = self.open();
        let completed = runtime.block_on(mle_star_search::run(&run.ctx())).unwrap();
        assert!(completed.result.phase3.is_some());
    }

    pub(crate) fn steps(&self) -> usize {
        let records: Vec<Record> = mle_star_journal::read(&self.dir().journal()).unwrap();
        records.iter().filter_map(Record::finished).count()
    }
}

pub(crate) fn reply(role: &str, input: &serde_json::Value) -> String {
    let fenced = |code: &str| format!("```python\n{code}\n```");
    match role {
        "retriever" => {
            let model = json!({"model_name": "m", "example_code": "fit()"});
            json!({"models": vec![model; 4]}).to_string()
        }
        "extractor" => {
            json!({"plans": [{"code_block": "score = 0.5", "plan": "raise it"}]}).to_string()
        }
        "coder" => fenced("score = 0.5"),
        "leakage" => json!({"answers": [{"leakage_status": "No Data Leakage", "code_block": "x"}]})
            .to_string(),
        "data" => "All the provided information is used.".to_owned(),
        "test" if input.get("task_description").is_none() => fenced(""),
        "summarize" | "planner" | "ens_planner" => "Raise the score.".to_owned(),
        _ => fenced(&script(0.5)),
    }
}

#[derive(Debug)]
struct Instantly;

impl Executor for Instantly {
    fn run<'a>(&'a self, _: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        let text = "Final Validation Performance: 0.5\n".to_owned();
        ready(Ok(Outcome {
            ended: Ended::Exited { code: 0 },
            stdout: Captured { total_bytes: text.len() as u64, text, truncated: false, file: None },
            stderr: Captured::default(),
            duration_seconds: 0.0,
            submission: SubmissionInfo::default(),
            usage: Usage::default(),
            limits: None,
            tier: Tier::Off,
        }))
        .boxed()
    }
}

#[derive(Debug)]
struct Now;

impl Clock for Now {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(duration).boxed()
    }
}
