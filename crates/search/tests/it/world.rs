//! A world to run the algorithm in: agents that answer at once, and scripts that cost nothing.
//!
//! Scripts are real Python of a very plain kind, see [`script`]. [`Toy`] understands just that
//! kind, so that a test can run thousands of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8Path;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;
use mle_star_agent::{Agent, AgentError, Call, Reply, Scripted};
use mle_star_exec::limits::Usage;
use mle_star_exec::machine::{GpuInfo, Machine, Package};
use mle_star_exec::sandbox::{Tier, Wish};
use mle_star_exec::{Captured, Ended, ExecError, Executor, Job, Outcome, SubmissionInfo};
use mle_star_profile::{Bounds, Manifest};
use mle_star_search::event::{Event, FORMAT, Header, Record};
use mle_star_search::models::{
    CodeBlock, ConfigLayer, DataModality, MetricDirection, PipelineConfig, Score, SolutionPhase,
    SolutionScript, TaskDescription, TaskType,
};
use mle_star_search::rundir::RunDir;
use mle_star_search::{Clock, Completed, OnChange, PipelineError, Ports, Run};
use serde_json::json;
use tempfile::TempDir;

/// A script that scores `score`. Its block is the line `score = …`.
pub(crate) fn script(score: f64) -> String {
    format!("import math\nscore = {score:?}\nprint(f\"Final Validation Performance: {{score}}\")\n")
}

/// The block of [`script`] that decides its score.
pub(crate) fn block(score: f64) -> String {
    format!("score = {score:?}")
}

/// A script that fails with a traceback.
pub(crate) fn broken() -> String {
    "raise ValueError('no such column')\n".to_owned()
}

/// A script that writes a submission.
pub(crate) fn submitting() -> String {
    "open('./final/submission.csv', 'w').write('id,y\\n1,2\\n')\n".to_owned()
}

/// The code in a fence, as agents send it.
pub(crate) fn fenced(code: &str) -> String {
    format!("```python\n{code}\n```")
}

pub(crate) fn score(value: f64) -> Score {
    Score::new(value).unwrap()
}

/// A scored solution, as Phase 1 or a path gives it.
pub(crate) fn solution(value: f64) -> SolutionScript {
    SolutionScript {
        score: Some(score(value)),
        ..SolutionScript::new(script(value), SolutionPhase::Merged, Timestamp::UNIX_EPOCH)
    }
}

pub(crate) fn code_block(content: &str) -> CodeBlock {
    CodeBlock { content: content.to_owned(), category: None, outer_step: Some(0) }
}

type Answer = dyn Fn(&Call) -> Option<Result<Reply, AgentError>> + Send + Sync;
type Execute = dyn Fn(&Job) -> Option<Result<Outcome, ExecError>> + Send + Sync;

/// Everything a run needs, and a record of what it did.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) task: TaskDescription,
    pub(crate) config: PipelineConfig,
    pub(crate) references: Vec<String>,
    /// Whether the clock follows tokio's, which the test has paused.
    pub(crate) simulated: bool,
    answers: Vec<Arc<Answer>>,
    executions: Vec<Arc<Execute>>,
    calls: Arc<Mutex<Vec<Call>>>,
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl World {
    /// A world with settings such as `T=2 K=1`, where every role answers usefully.
    pub(crate) fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = Utf8Path::from_path(folder.path()).unwrap().join("data");
        fs_err::create_dir_all(&data).unwrap();
        fs_err::write(data.join("train.csv"), "id,x,y\n1,2,3\n2,3,4\n").unwrap();
        let task = TaskDescription {
            data_dir: data,
            ..TaskDescription::new(
                "toy",
                TaskType::Regression,
                DataModality::Tabular,
                "r2",
                MetricDirection::Maximize,
                "Predict y from x.",
            )
            .unwrap()
        };
        Self {
            folder,
            task,
            config: ConfigLayer::from_pairs(settings.split_whitespace())
                .unwrap()
                // Off here, so that the counts of most tests are those of the paper.
                .over(ConfigLayer { early_submission: Some(false), ..ConfigLayer::default() })
                .resolve()
                .unwrap(),
            references: Vec::new(),
            simulated: false,
            answers: Vec::new(),
            executions: Vec::new(),
            calls: Arc::default(),
            jobs: Arc::default(),
        }
    }

    /// The same world with a metric that is to be minimized.
    pub(crate) fn minimizing(mut self) -> Self {
        self.task.evaluation_metric = "rmse".to_owned();
        self.task.metric_direction = MetricDirection::Minimize;
        self
    }

    /// `role` answers `answer` from now on. An earlier rule that gives `Some` wins.
    pub(crate) fn on(
        self,
        role: &'static str,
        answer: impl Fn(&Call) -> String + Send + Sync + 'static,
    ) -> Self {
        self.on_call(move |call| (call.role == role).then(|| Ok(Reply::text(answer(call)))))
    }

    /// Whatever `answer` does not answer is answered as before. The rule added last wins.
    pub(crate) fn on_call(
        mut self,
        answer: impl Fn(&Call) -> Option<Result<Reply, AgentError>> + Send + Sync + 'static,
    ) -> Self {
        self.answers.push(Arc::new(answer));
        self
    }

    /// Whatever `execute` does not run is run by the toy interpreter. The rule added last wins.
    pub(crate) fn on_job(
        mut self,
        execute: impl Fn(&Job) -> Option<Result<Outcome, ExecError>> + Send + Sync + 'static,
    ) -> Self {
        self.executions.push(Arc::new(execute));
        self
    }

    pub(crate) fn dir(&self) -> RunDir {
        RunDir::at(Utf8Path::from_path(self.folder.path()).unwrap().join("run"))
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            format: FORMAT,
            version: "test".to_owned(),
            agents: "scripted".to_owned(),
            task: self.task.clone(),
            config: self.config.clone(),
            machine: Machine {
                python: "/usr/bin/python3".to_owned(),
                python_version: "3.11.7".to_owned(),
                packages: vec![Package { name: "numpy".to_owned(), version: "2.1.0".to_owned() }],
                cores: 2,
                memory_bytes: 8 << 30,
                gpus: GpuInfo::default(),
            },
            data: mle_star_profile::profile(&self.task.data_dir, &Bounds::default()).unwrap(),
            manifest: Manifest::of(&self.task.data_dir).unwrap(),
            reference_discussions: self.references.clone(),
            sandbox: Wish::Best,
            containment: None,
        }
    }

    pub(crate) fn ports(&self) -> Ports {
        let (answers, calls) = (self.answers.clone(), Arc::clone(&self.calls));
        let agent = Scripted::new(move |call| {
            calls.lock().unwrap().push(call.clone());
            answers
                .iter()
                .rev()
                .find_map(|answer| answer(call))
                .unwrap_or_else(|| Ok(Reply::text(useful_reply(call))))
        });
        let executor = Toy { executions: self.executions.clone(), jobs: Arc::clone(&self.jobs) };
        Ports {
            agent: Box::new(TakingTurns(agent)),
            executor: Box::new(executor),
            clock: Box::new(Ticking {
                simulated_since: self.simulated.then(tokio::time::Instant::now),
                ..Ticking::default()
            }),
            secrets: Vec::new(),
        }
    }

    /// A new run in this world.
    pub(crate) fn open(&self) -> Run {
        fs_err::create_dir_all(self.dir().root()).unwrap();
        Run::create(self.dir(), self.header(), self.ports()).unwrap()
    }

    /// The run of this world, taken up again.
    pub(crate) fn reopen(&self) -> Run {
        Run::resume(self.dir(), self.header(), self.ports(), OnChange::Stop).unwrap()
    }

    /// A whole run from the start.
    pub(crate) async fn run(&self) -> Result<Completed, PipelineError> {
        let run = self.open();
        mle_star_search::run(&run.ctx()).await
    }

    /// The calls that were made, in order.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The calls of one role, in order.
    pub(crate) fn calls_of(&self, role: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.role == role).collect()
    }

    /// The scripts that were run, in order.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        self.jobs.lock().unwrap().clone()
    }

    /// What the journal holds.
    pub(crate) fn records(&self) -> Vec<Record> {
        mle_star_journal::read(&self.dir().journal()).unwrap()
    }

    /// What happened, with the place where it did.
    pub(crate) fn events(&self) -> Vec<(String, Event)> {
        let events = self.records().into_iter().filter_map(|record| match record {
            Record::Happened { key, event, .. } => Some((key.to_string(), event)),
            _ => None,
        });
        events.collect()
    }

    /// The messages of all warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.events().into_iter().filter_map(|(_, event)| match event {
            Event::Warned { message } => Some(message),
            _ => None,
        });
        warnings.collect()
    }

    /// The beginnings and ends of steps, as they were recorded.
    pub(crate) fn beginnings_and_ends(&self) -> Vec<(&'static str, String)> {
        let marks = self.records().into_iter().filter_map(|record| match record {
            Record::Started { key, .. } => Some(("started", key.to_string())),
            Record::Finished { key, .. } => Some(("finished", key.to_string())),
            _ => None,
        });
        marks.collect()
    }

    /// The keys of the finished steps, in the order in which they were finished.
    pub(crate) fn steps(&self) -> Vec<String> {
        let keys = self.records().into_iter().filter_map(|record| match record {
            Record::Finished { key, .. } => Some(key.to_string()),
            _ => None,
        });
        keys.collect()
    }
}

/// The number in the part `name-3` of a call's step.
pub(crate) fn index(call: &Call, name: &str) -> usize {
    let mut parts = call.step.split('/').filter_map(|part| part.rsplit_once('-'));
    parts.find(|(it, _)| *it == name).and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// What a role answers unless a test says otherwise: candidates score 0.5, refinements a little
/// more with every step, ensembles 0.9.
pub(crate) fn useful_reply(call: &Call) -> String {
    match (call.role.as_str(), call.variant.as_deref()) {
        ("retriever", _) => {
            let wanted = call.input["M"].as_u64().unwrap_or(1);
            let models: Vec<_> = (0..wanted)
                .map(|index| json!({"model_name": format!("model-{index}"), "example_code": "fit()"}))
                .collect();
            json!({ "models": models }).to_string()
        }
        ("init", _) => fenced(&script(0.5)),
        ("merger", _) => fenced(&script(0.55)),
        ("ablation", _) => fenced("print('without the score: -0.1')"),
        ("summarize", _) => "The score line matters most.".to_owned(),
        ("extractor", _) => {
            let script = call.input["solution_script"].as_str().unwrap_or_default();
            let block = script.lines().find(|line| line.starts_with("score = "));
            json!({ "plans": [{"code_block": block, "plan": "raise the score"}] }).to_string()
        }
        ("planner", _) => format!("plan {}", index(call, "inner")),
        ("coder", _) => {
            let steps = index(call, "outer") * 10 + index(call, "inner");
            fenced(&block(0.6 + f64::from(u32::try_from(steps).unwrap()) / 1000.0))
        }
        ("ens_planner", _) => format!("average them, way {}", index(call, "round")),
        ("ensembler", _) => fenced(&format!("{}{}", script(0.9), submitting())),
        ("leakage", Some("detection")) => {
            json!({"answers": [{"leakage_status": "No Data Leakage", "code_block": "import math"}]})
                .to_string()
        }
        ("data", _) => "All the provided information is used.".to_owned(),
        ("test", None) => fenced(&submitting()),
        ("test", Some("subsampling_extract")) => fenced(""),
        ("test", Some("contamination")) => json!({"verdict": "Novel"}).to_string(),
        ("debugger", _) => fenced(&script(0.4)),
        (role, variant) => panic!("no useful reply for {role} {variant:?}"),
    }
}

/// Lets other lanes go on before it answers, so that lanes really interleave.
#[derive(Debug)]
struct TakingTurns(Scripted);

impl Agent for TakingTurns {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        async {
            tokio::task::yield_now().await;
            self.0.ask(call).await
        }
        .boxed()
    }
}

/// An executor that understands the scripts of this module and nothing else.
struct Toy {
    executions: Vec<Arc<Execute>>,
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl std::fmt::Debug for Toy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Toy")
    }
}

impl Executor for Toy {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        self.jobs.lock().unwrap().push(job.clone());
        let outcome = self.executions.iter().rev().find_map(|execute| execute(job));
        ready(outcome.unwrap_or_else(|| Ok(interpret(job)))).boxed()
    }

    fn slots(&self) -> usize {
        2
    }
}

/// What Python would do with a script of this module.
pub(crate) fn interpret(job: &Job) -> Outcome {
    if let Some(raised) = job.script.lines().find(|line| line.starts_with("raise ")) {
        let stderr = format!(
            "Traceback (most recent call last):\n  File \"solution.py\", line 1, in <module>\n    \
             {raised}\n{}",
            raised.trim_start_matches("raise ").replace("('", ": ").replace("')", "")
        );
        return outcome(Ended::Exited { code: 1 }, "", &stderr);
    }
    let assigned = job.script.lines().rev().find_map(|line| line.strip_prefix("score = "));
    let mut stdout = String::new();
    for line in job.script.lines().filter_map(|line| line.strip_prefix("print(")) {
        let text = line.trim_start_matches('f').trim_end_matches(')').trim_matches(['"', '\'']);
        stdout.push_str(&text.replace("{score}", assigned.unwrap_or("?")));
        stdout.push('\n');
    }
    let mut ended = outcome(Ended::Exited { code: 0 }, &stdout, "");
    if job.script.contains("submission.csv") {
        let path = job.workspace.join("final/submission.csv");
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "id,y\n1,2\n").unwrap();
        ended.submission = SubmissionInfo {
            exists: true,
            path: path.into_string(),
            size_bytes: 9,
            row_count: Some(1),
            parse_error: None,
        };
    }
    ended
}

/// An outcome by hand.
pub(crate) fn outcome(ended: Ended, stdout: &str, stderr: &str) -> Outcome {
    let captured = |text: &str| Captured {
        text: text.to_owned(),
        total_bytes: text.len() as u64,
        truncated: false,
        file: None,
    };
    Outcome {
        ended,
        stdout: captured(stdout),
        stderr: captured(stderr),
        duration_seconds: 0.01,
        submission: SubmissionInfo::default(),
        usage: Usage::default(),
        limits: None,
        tier: Tier::Off,
    }
}

/// A clock that moves a little whenever it is looked at. With `simulated` time it also moves as
/// tokio's paused clock does: whenever everybody sleeps.
#[derive(Debug, Default)]
struct Ticking {
    looks: Mutex<u32>,
    simulated_since: Option<tokio::time::Instant>,
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let mut looks = self.looks.lock().unwrap();
        *looks += 1;
        let (tick, slept) = match self.simulated_since {
            Some(began) => (Duration::from_micros(1), began.elapsed()),
            None => (Duration::from_millis(100), Duration::ZERO),
        };
        Timestamp::UNIX_EPOCH + tick * *looks + slept
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(duration).boxed()
    }
}
