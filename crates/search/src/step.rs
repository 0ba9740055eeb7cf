//! Durable steps.
//!
//! A run is a tree of steps. Each has a [`StepKey`] that says where in the loops it sits, such as
//! `phase2/path-1/outer-2/inner-0/coder`. When a step ends, its output is synced to the journal
//! before anyone sees it; when a run is resumed, the recorded output is handed back instead. This
//! is why the search must be a function of its inputs and of what its steps return.

mod key;
mod recorder;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use jiff::Timestamp;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_exec::submission::{Fit, compare_with_sample, find_sample};
use mle_star_exec::{Ended, Executor, Job, Outcome};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Semaphore, broadcast};

use crate::budget::{self, Purse};
use crate::error::{Diagnostics, Error, in_full};
use crate::event::{Decision, Event, Header, Lack, Output, Record};
use crate::models::{
    AgentConfig, OutputSchema, PipelineConfig, Score, SolutionPhase, SolutionScript,
    TaskDescription,
};
use crate::prompt::PromptRegistry;
use crate::roles::Role;
use crate::rundir::RunDir;
use crate::state::{PipelineState, Tally};

pub use key::{Digest, StepKey};
use recorder::{Lookup, Recorder};

/// The longest wait between two tries to reach an agent.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Says what time it is. The search itself never asks: only what is recorded carries a time.
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Ends when so much time is over.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
}

/// What a run needs from the outside.
#[derive(Debug)]
pub struct Ports {
    /// Who writes the scripts.
    pub agent: Box<dyn Agent>,
    /// Where they run.
    pub executor: Box<dyn Executor>,
    /// What time it is.
    pub clock: Box<dyn Clock>,
    /// Texts that must never be recorded, such as keys.
    pub secrets: Vec<String>,
    /// How many scripts may run at the same time.
    pub script_slots: usize,
}

/// A run: what was settled before it began, what it needs from outside, and what it has done.
#[derive(Debug)]
pub struct Run {
    header: Header,
    prompts: PromptRegistry,
    ports: Ports,
    dir: RunDir,
    recorder: Recorder,
    agent_turns: Semaphore,
    script_slots: Semaphore,
    purse: Purse,
    /// Why the agents were given up, once they were.
    agents_lost: Mutex<Option<String>>,
    /// Set when no new step may begin.
    halted: AtomicBool,
    in_flight: AtomicUsize,
    warned_of_cost: AtomicBool,
    handed_back: AtomicUsize,
}

/// What to do where the journal and the search disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// Stop before anything is spent.
    Stop,
    /// Do the step again, and what follows from it.
    Rerun,
}

/// A place in a run. All a phase knows of the outside.
#[derive(Debug, Clone)]
pub struct RunCtx<'run> {
    run: &'run Run,
    key: StepKey,
    lane: String,
    /// The running time at which this part of the run ends.
    until: f64,
}

/// The answer to a call, and when it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The reply; empty if the agent gave no answer.
    pub reply: Reply,
    /// When it was recorded.
    pub at: Timestamp,
}

/// A script that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How that ended.
    pub outcome: Outcome,
    /// The submission it wrote, by the name of its file in `solutions/`.
    pub submission: Option<String>,
    /// How that compares with the sample.
    pub fit: Fit,
}

/// What somebody asks of a run from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// End as soon as what is in flight is done, to be resumed later.
    Stop,
    /// End the loops, and finalize.
    Finalize,
}

impl Run {
    /// Starts a new run in `dir`, which must not have a journal yet.
    pub fn create(dir: RunDir, header: Header, ports: Ports) -> Result<Self, Error> {
        let recorder = Recorder::create(&dir.journal(), &header, ports.clock.now())?;
        Self::assemble(dir, header, ports, recorder)
    }

    /// What was settled before the run in `dir` began.
    pub fn read_header(dir: &RunDir) -> Result<Header, Error> {
        recorder::read_header(&dir.journal())
    }

    /// Takes up the run in `dir` where it stopped. Nothing is asked, run or written yet. In
    /// `header`, limits, folders and the interpreter may differ from what was recorded.
    pub fn resume(
        dir: RunDir,
        header: Header,
        ports: Ports,
        on_change: OnChange,
    ) -> Result<Self, Error> {
        let now = ports.clock.now();
        let recorder = Recorder::resume(&dir.journal(), &header.config, on_change, now)?;
        Self::assemble(dir, header, ports, recorder)
    }

    /// Goes through the run in `dir` again without writing, asking or running anything.
    pub fn replay(dir: RunDir, ports: Ports) -> Result<Self, Error> {
        let header = Self::read_header(&dir)?;
        let recorder = Recorder::replay(&dir.journal(), ports.clock.now())?;
        Self::assemble(dir, header, ports, recorder)
    }

    fn assemble(
        dir: RunDir,
        header: Header,
        ports: Ports,
        recorder: Recorder,
    ) -> Result<Self, Error> {
        let prompts = match &header.config.prompts_dir {
            Some(folder) => PromptRegistry::with_overrides(folder)?,
            None => PromptRegistry::builtin(),
        };
        Ok(Self {
            prompts,
            agent_turns: Semaphore::new(header.config.max_concurrent_sessions),
            script_slots: Semaphore::new(ports.script_slots.max(1)),
            header,
            ports,
            dir,
            recorder,
            purse: Purse::default(),
            agents_lost: Mutex::new(None),
            halted: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            warned_of_cost: AtomicBool::new(false),
            handed_back: AtomicUsize::new(0),
        })
    }

    /// The context of the whole run.
    pub fn ctx(&self) -> RunCtx<'_> {
        RunCtx {
            run: self,
            key: StepKey::root(),
            lane: "main".to_owned(),
            until: budget::search_ends(&self.header.config),
        }
    }

    /// What was settled before the run began.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The files of the run.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Records from now on. A slow reader loses records rather than slowing the run.
    pub fn subscribe(&self) -> broadcast::Receiver<Record> {
        self.recorder.subscribe()
    }

    /// How far the run got.
    pub fn diagnostics(&self) -> Diagnostics {
        self.recorder.diagnostics(self.ports.clock.now())
    }

    /// Where the run is.
    pub fn state(&self) -> PipelineState {
        self.recorder.pipeline_state(self.ports.clock.now())
    }

    /// From now on no step begins; those in flight end and are recorded.
    pub fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// How many calls are in flight.
    pub fn calls_in_flight(&self) -> usize {
        self.header.config.max_concurrent_sessions - self.agent_turns.available_permits()
    }

    /// How many steps are in flight.
    pub fn steps_in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Goes through everything on record with `search`, without an effect, and fails if a step
    /// does not fit its record: so a resumed run that would diverge stops before it spends.
    pub fn rehearse<T>(
        &self,
        search: impl Future<Output = Result<T, crate::PipelineError>>,
    ) -> Result<(), crate::PipelineError> {
        let _guard = self.recorder.rehearsal();
        let mut search = pin!(search);
        let mut context = Context::from_waker(Waker::noop());
        let mut seen = usize::MAX;
        // Steps on record are handed back at once and others never end, so the search has gone
        // as far as the record goes when another poll hands nothing back.
        loop {
            match search.as_mut().poll(&mut context) {
                Poll::Ready(result) => return result.map(|_| ()),
                Poll::Pending => {
                    let now = self.handed_back.load(Ordering::Relaxed);
                    if now == seen {
                        return Ok(());
                    }
                    seen = now;
                }
            }
        }
    }
}

impl<'run> RunCtx<'run> {
    /// The task.
    pub fn task(&self) -> &'run TaskDescription {
        &self.run.header.task
    }

    /// The settings.
    pub fn config(&self) -> &'run PipelineConfig {
        &self.run.header.config
    }

    /// What was settled before the run began.
    pub fn header(&self) -> &'run Header {
        &self.run.header
    }

    /// Where we are.
    pub fn key(&self) -> &StepKey {
        &self.key
    }

    /// The files of the run.
    pub fn dir(&self) -> &'run RunDir {
        &self.run.dir
    }

    /// The same run, one level further in.
    #[must_use]
    pub fn scope(&self, part: impl std::fmt::Display) -> Self {
        Self { key: self.key.join(part), ..self.clone() }
    }

    /// The same place, with a workspace of its own.
    #[must_use]
    pub fn in_lane(&self, lane: impl std::fmt::Display) -> Self {
        Self { lane: lane.to_string(), ..self.clone() }
    }

    /// How far the run got.
    pub fn diagnostics(&self) -> Diagnostics {
        self.run.diagnostics()
    }

    /// Records that something happened, once however often the process restarts.
    pub fn tell(&self, event: Event) -> Result<(), Error> {
        self.run.recorder.happened(&self.key, event, || self.run.ports.clock.now())
    }

    /// Records that something did not go as it should.
    pub fn warn(&self, message: impl Into<String>) -> Result<(), Error> {
        self.tell(Event::Warned { message: message.into() })
    }

    /// Running time of the run so far.
    pub(crate) fn elapsed(&self) -> f64 {
        self.run.recorder.elapsed(self.run.ports.clock.now())
    }

    /// How much time this part of the run has left.
    fn time_left(&self) -> Duration {
        Duration::try_from_secs_f64(self.until - self.elapsed()).unwrap_or_default()
    }

    /// The same place with all the time there is: the reserve is for finalization.
    #[must_use]
    pub(crate) fn finalizing(&self) -> Self {
        Self { until: budget::seconds(self.config().time_limit_seconds), ..self.clone() }
    }

    /// The same place, which ends so many seconds after the run first came here.
    pub(crate) fn limited_to(&self, seconds: f64) -> Result<Self, Error> {
        let key = self.key.join("limit");
        let until = match self.run.recorder.decision(&key) {
            Some(Decision::Until(until)) => until,
            Some(Decision::CutShort(_)) | None => {
                let until = (self.elapsed() + seconds).min(self.until);
                if self.run.recorder.is_writing() {
                    let now = self.run.ports.clock.now();
                    self.run.recorder.decide(&key, Decision::Until(until), now)?;
                }
                until
            }
        };
        Ok(Self { until, ..self.clone() })
    }

    /// Whether the loop that we are in ends before this iteration. What has begun is finished, and
    /// what was decided once stays decided.
    pub fn is_cut_short(&self) -> Result<bool, Error> {
        let recorder = &self.run.recorder;
        let key = self.key.join("cut");
        if let Some(Decision::CutShort(_)) = recorder.decision(&key) {
            return Ok(true);
        }
        if !recorder.is_writing() || recorder.has_begun(&self.key) {
            return Ok(false);
        }
        let Some(lack) = self.shortage() else { return Ok(false) };
        recorder.decide(&key, Decision::CutShort(lack.clone()), self.run.ports.clock.now())?;
        self.tell(Event::CutShort { lack })?;
        Ok(true)
    }

    /// Why no new iteration may begin here.
    pub(crate) fn shortage(&self) -> Option<Lack> {
        if let Some(lack) = self.gate() {
            return Some(lack);
        }
        if let Some(reason) = self.run.agents_lost() {
            return Some(Lack::Agents { reason });
        }
        if budget::is_nearly_spent(self.config(), self.run.recorder.spent()) {
            return Some(Lack::Money);
        }
        (self.dir().request() == Some(Request::Finalize)).then_some(Lack::Patience)
    }

    /// Why no step at all may begin here.
    fn gate(&self) -> Option<Lack> {
        (self.elapsed() >= self.until).then_some(Lack::Time)
    }

    /// Asks the agent that plays `role`, once.
    pub async fn ask<R: Role>(&self, role: &R) -> Result<Asked, Error> {
        let ctx = self.scope(R::STEP);
        let template = self.run.prompts.variant(R::AGENT, R::VARIANT)?;
        let input = serde_json::to_value(role).unwrap_or_default();
        // The prompt also shows limits and the machine, which may change under a resumed run.
        let digest = Digest::of(&(R::AGENT, R::VARIANT, &template.template, &input));
        let work = async {
            let call = ctx.call::<R>(template.render(&role.variables(&ctx))?, input);
            let _turn = self.run.agent_turns.acquire().await;
            let mut output = ctx.converse(call).await?;
            if let Output::Asked { reply, .. } = &mut output {
                self.run.redact(&mut reply.text);
                reply.structured.iter_mut().for_each(|value| self.run.redact_value(value));
            }
            Ok(output)
        };
        match ctx.once(digest, work).await? {
            (Output::Asked { reply, no_answer }, at) => {
                if let Some(reason) = no_answer {
                    ctx.warn(format!("{} gave no answer: {reason}", R::AGENT))?;
                }
                self.run.warn_of_cost()?;
                Ok(Asked { reply, at })
            }
            (output, _) => Err(ctx.not_done(output)),
        }
    }

    /// Asks until there is an answer. An agent that cannot be reached is asked again, after 1, 2
    /// and 4 seconds and then ever later, for as long as there is time to wait.
    async fn converse(&self, mut call: Call) -> Result<Output, Error> {
        let run = self.run;
        for attempt in 0.. {
            let lost = run.agents_lost().map(|reason| Lack::Agents { reason });
            if let Some(lack) = self.gate().or(lost) {
                return Ok(Output::NotDone { lack, cut_off: false });
            }
            let others = run.agent_turns.available_permits() + 1;
            let budget = self.config().max_budget_usd;
            let Some(reserved) = run.purse.reserve(budget, run.recorder.spent(), others) else {
                return Ok(Output::NotDone { lack: Lack::Money, cut_off: false });
            };
            call.max_budget_usd = reserved.amount;
            let answer = pin!(run.ports.agent.ask(&call));
            let over = run.ports.clock.sleep(self.time_left());
            let answer = match select(answer, over).await {
                Either::Left((answer, _)) => answer.map_err(|error| run.redacted(error)),
                Either::Right(((), _)) => {
                    return Ok(Output::NotDone { lack: Lack::Time, cut_off: true });
                }
            };
            let reason = match answer {
                Ok(reply) => {
                    return Ok(Output::Asked { reply, no_answer: None });
                }
                Err(AgentError::NoAnswer { reason, cost_usd }) => {
                    let reply = Reply { cost_usd, ..Reply::default() };
                    return Ok(Output::Asked { reply, no_answer: Some(reason) });
                }
                Err(AgentError::Unavailable { reason }) => reason,
                Err(source) => return Err(Error::Agent { key: self.key.clone(), source }),
            };
            drop(reserved);
            let left = self.time_left();
            let pause = Duration::from_secs(1 << u32::min(attempt, 8)).min(LONGEST_PAUSE);
            // Agents that are not back when a path ends may be back for what comes after it.
            if pause >= left && self.until >= budget::search_ends(self.config()) {
                run.lose_agents(&reason);
                return Ok(Output::NotDone { lack: Lack::Agents { reason }, cut_off: false });
            }
            let pause = pause.min(left);
            self.scope("wait").tell(Event::Waiting { seconds: pause.as_secs(), reason })?;
            run.ports.clock.sleep(pause).await;
        }
        Err(Error::Precondition("unreachable: the loop above ends by returning"))
    }

    fn call<R: Role>(&self, prompt: String, input: serde_json::Value) -> Call {
        let header = &self.run.header;
        let config = AgentConfig::for_variant(R::AGENT, R::VARIANT, header.config.tool_profile);
        Call {
            step: self.key.to_string(),
            role: R::AGENT.to_string(),
            variant: R::VARIANT.map(str::to_owned),
            lane: self.lane.clone(),
            system_prompt: crate::environment::system_prompt(header),
            prompt,
            input,
            tools: config.tools.unwrap_or_default(),
            schema: config.output_schema.map(OutputSchema::json_schema),
            model: header.config.model.clone(),
            max_turns: config.max_turns,
            max_budget_usd: None,
        }
    }

    /// Runs a script in this lane's workspace, once.
    pub async fn execute(
        &self,
        script: &SolutionScript,
        time_limit: Duration,
    ) -> Result<Ran, Error> {
        let ctx = self.scope("run");
        let digest = Digest::of(&script.content);
        let work = async {
            let _slot = self.run.script_slots.acquire().await;
            if let Some(lack) = self.gate() {
                return Ok(Output::NotDone { lack, cut_off: false });
            }
            let name = self.run.dir.keep_script(&script.content)?;
            let time_left = self.time_left();
            let job = Job {
                script: script.content.clone(),
                filename: "solution.py".to_owned(),
                workspace: self.run.dir.workspace(&self.lane),
                data_dir: self.task().data_dir.clone(),
                time_limit: time_limit.min(time_left),
                gpus: None,
            };
            let outcome = self.run.ports.executor.run(&job).await;
            let mut outcome = outcome.map_err(|source| Error::Exec {
                key: ctx.key.clone(),
                input: Box::new(digest.clone()),
                source,
            })?;
            if matches!(outcome.ended, Ended::TimedOut { .. })
                && time_left < time_limit
                && let Some(lack) = self.gate()
            {
                // The run was over, not the script too slow: with a larger limit it gets its turn.
                return Ok(Output::NotDone { lack, cut_off: false });
            }
            self.run.redact(&mut outcome.stdout.text);
            self.run.redact(&mut outcome.stderr.text);
            let (mut submission, mut fit) = (None, Fit::default());
            if outcome.submission.is_present() {
                let kept =
                    self.run.dir.keep_submission(&name, outcome.submission.path.as_str().into())?;
                if let Some(sample) = find_sample(&job.data_dir) {
                    fit = compare_with_sample(&self.run.dir.solution(&kept), &sample);
                }
                submission = Some(kept);
            }
            Ok(Output::Ran { outcome, script: name, submission, fit })
        };
        match ctx.once(digest.clone(), work).await? {
            (Output::Ran { outcome, submission, fit, .. }, _) => {
                Ok(Ran { outcome, submission, fit })
            }
            (output, _) => Err(ctx.not_done(output)),
        }
    }

    /// Makes a verified submission the one of the run.
    pub(crate) fn publish(
        &self,
        submission: &str,
        script: &SolutionScript,
        score: Score,
        from: SolutionPhase,
    ) -> Result<(), Error> {
        if self.run.recorder.is_writing() {
            self.run.dir.publish(submission, &script.content)?;
        }
        self.tell(Event::Published { score, from })
    }

    /// Records that the run goes on without the script that could not be run. What follows is
    /// built on that, so a resumed run must not find the script working after all.
    pub fn give_up(&self, error: &Error) -> Result<(), Error> {
        let Error::Exec { key, input, source } = error else { return Ok(()) };
        let lack = Lack::Executor { reason: in_full(source) };
        let output = Output::NotDone { lack, cut_off: false };
        self.run.recorder.finished(key, (**input).clone(), &output, self.run.ports.clock.now())
    }

    /// Running time and cost of the whole run up to here, once.
    pub async fn totals(&self) -> Result<(f64, Option<f64>), Error> {
        let ctx = self.scope("totals");
        let work = async {
            let Diagnostics { elapsed_seconds, cost_usd, .. } = self.run.diagnostics();
            Ok(Output::Totals { duration_seconds: elapsed_seconds, cost_usd })
        };
        match ctx.once(Digest::of(&()), work).await? {
            (Output::Totals { duration_seconds, cost_usd }, _) => Ok((duration_seconds, cost_usd)),
            (output, _) => Err(ctx.not_done(output)),
        }
    }

    /// Does `work` once in the life of the run, however often the process restarts. Says what came
    /// of it, and when that was recorded.
    async fn once(
        &self,
        input: Digest,
        work: impl Future<Output = Result<Output, Error>>,
    ) -> Result<(Output, Timestamp), Error> {
        let run = self.run;
        match run.recorder.look_up(&self.key, &input)? {
            Lookup::Recorded(output, at) => {
                run.handed_back.fetch_add(1, Ordering::Relaxed);
                return Ok((*output, at));
            }
            Lookup::Rehearsing => std::future::pending().await,
            Lookup::ToDo => {}
        }
        if run.halted.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        run.recorder.started(&self.key, run.ports.clock.now())?;
        let flight = InFlight::new(&run.in_flight);
        let output = work.await;
        drop(flight);
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                // The first error is the one to report.
                run.recorder.abandoned(&self.key, run.ports.clock.now()).ok();
                return Err(error);
            }
        };
        let at = run.ports.clock.now();
        run.recorder.finished(&self.key, input, &output, at)?;
        Ok((output, at))
    }

    /// The error of a step that has no result of its kind.
    fn not_done(&self, output: Output) -> Error {
        match output {
            Output::NotDone { lack, .. } => Error::NotDone { key: self.key.clone(), lack },
            // The record of this step is of another kind than the step.
            Output::Asked { .. } | Output::Ran { .. } | Output::Totals { .. } => {
                self.run.recorder.diverged(&self.key)
            }
        }
    }

    /// The sums of the run so far.
    pub(crate) fn tally(&self) -> Tally {
        self.run.recorder.tally()
    }

    /// What was lacking first in this part of the run, if anything was.
    pub(crate) fn lacked(&self) -> Option<Lack> {
        self.tally().lacked(&self.key).cloned()
    }
}

/// Counts a step as in flight while it lives.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Run {
    fn agents_lost(&self) -> Option<String> {
        self.agents_lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lose_agents(&self, reason: &str) {
        let mut lost = self.agents_lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert_with(|| reason.to_owned());
    }

    /// Says once that most of the budget is spent.
    fn warn_of_cost(&self) -> Result<(), Error> {
        let Some(budget) = self.header.config.max_budget_usd else { return Ok(()) };
        let spent = self.recorder.spent();
        // A rehearsal tells nothing, so it must not count as having told.
        let due = spent >= budget::WARN_AT * budget && self.recorder.is_writing();
        if !due || self.warned_of_cost.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let ctx = self.ctx().scope("budget");
        ctx.warn(format!("${spent:.2} of the budget of ${budget:.2} is spent"))
    }

    fn redact(&self, text: &mut String) {
        for secret in &self.ports.secrets {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), "[redacted]");
            }
        }
    }

    /// The same error without secrets: it is recorded, shown and logged.
    fn redacted(&self, mut error: AgentError) -> AgentError {
        match &mut error {
            AgentError::NoAnswer { reason, .. }
            | AgentError::Unavailable { reason }
            | AgentError::Unauthorized { reason } => self.redact(reason),
            AgentError::NotScripted { .. } => {}
        }
        error
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.redact_value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Digest {
    pub(crate) fn of(input: &(impl Serialize + ?Sized)) -> Self {
        Self::of_bytes(&serde_json::to_vec(input).unwrap_or_default())
    }
}
