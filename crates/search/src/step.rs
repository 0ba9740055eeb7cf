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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_exec::{Executor, Job, Outcome};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Semaphore, broadcast};

use crate::error::{Diagnostics, Error, in_full};
use crate::event::{Event, Header, Output, Record};
use crate::models::{AgentConfig, OutputSchema, PipelineConfig, SolutionScript, TaskDescription};
use crate::prompt::PromptRegistry;
use crate::roles::Role;
use crate::rundir::RunDir;

pub use key::{Digest, StepKey};
use recorder::{Lookup, Recorder};

/// Says what time it is. The search itself never asks: only what is recorded carries a time.
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
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
    /// `header`, folders and the interpreter may differ from what was recorded.
    pub fn resume(
        dir: RunDir,
        header: Header,
        ports: Ports,
        on_change: OnChange,
    ) -> Result<Self, Error> {
        let recorder = Recorder::resume(&dir.journal(), on_change, ports.clock.now())?;
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
            handed_back: AtomicUsize::new(0),
        })
    }

    /// The context of the whole run.
    pub fn ctx(&self) -> RunCtx<'_> {
        RunCtx { run: self, key: StepKey::root(), lane: "main".to_owned() }
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
            let (mut reply, no_answer) = match self.run.ports.agent.ask(&call).await {
                Ok(reply) => (reply, None),
                Err(AgentError::NoAnswer { mut reason, cost_usd }) => {
                    self.run.redact(&mut reason);
                    (Reply { cost_usd, ..Reply::default() }, Some(reason))
                }
                Err(source) => return Err(Error::Agent { key: ctx.key.clone(), source }),
            };
            self.run.redact(&mut reply.text);
            if let Some(structured) = &mut reply.structured {
                self.run.redact_value(structured);
            }
            Ok(Output::Asked { reply, no_answer })
        };
        match ctx.once(digest, work).await? {
            (Output::Asked { reply, no_answer }, at) => {
                if let Some(reason) = no_answer {
                    ctx.warn(format!("{} gave no answer: {reason}", R::AGENT))?;
                }
                Ok(Asked { reply, at })
            }
            (Output::Ran { .. } | Output::GivenUp { .. } | Output::Totals { .. }, _) => {
                Err(ctx.diverged())
            }
        }
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
            let name = self.run.dir.keep_script(&script.content)?;
            let job = Job {
                script: script.content.clone(),
                filename: "solution.py".to_owned(),
                workspace: self.run.dir.workspace(&self.lane),
                data_dir: self.task().data_dir.clone(),
                time_limit,
                gpus: None,
            };
            let outcome = self.run.ports.executor.run(&job).await;
            let mut outcome = outcome.map_err(|source| Error::Exec {
                key: ctx.key.clone(),
                input: Box::new(digest.clone()),
                source,
            })?;
            self.run.redact(&mut outcome.stdout.text);
            self.run.redact(&mut outcome.stderr.text);
            let submission = match &outcome.submission {
                info if info.exists && info.size_bytes > 0 => {
                    Some(self.run.dir.keep_submission(&name, info.path.as_str().into())?)
                }
                _ => None,
            };
            Ok(Output::Ran { outcome, script: name, submission })
        };
        match ctx.once(digest.clone(), work).await? {
            (Output::Ran { outcome, submission, .. }, _) => Ok(Ran { outcome, submission }),
            (Output::GivenUp { reason }, _) => Err(Error::GivenUp { key: ctx.key, reason }),
            (Output::Asked { .. } | Output::Totals { .. }, _) => Err(ctx.diverged()),
        }
    }

    /// Records that the run goes on without the script that could not be run. What follows is
    /// built on that, so a resumed run must not find the script working after all.
    pub fn give_up(&self, error: &Error) -> Result<(), Error> {
        let Error::Exec { key, input, source } = error else { return Ok(()) };
        let output = Output::GivenUp { reason: in_full(source) };
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
            (Output::Asked { .. } | Output::Ran { .. } | Output::GivenUp { .. }, _) => {
                Err(ctx.diverged())
            }
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
        run.recorder.started(&self.key, run.ports.clock.now())?;
        let output = work.await?;
        let at = run.ports.clock.now();
        run.recorder.finished(&self.key, input, &output, at)?;
        Ok((output, at))
    }

    /// The record of this step is of another kind than the step.
    fn diverged(&self) -> Error {
        self.run.recorder.diverged(&self.key)
    }
}

impl Run {
    fn redact(&self, text: &mut String) {
        for secret in &self.ports.secrets {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), "[redacted]");
            }
        }
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
