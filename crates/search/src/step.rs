//! Durable steps.
//!
//! A run is a tree of steps. Each has a [`StepKey`] that says where in the loops it sits, such as
//! `phase2/path-1/outer-2/inner-0/coder`. When a step ends, its output is synced to the journal
//! before anyone sees it; when a run is resumed, the recorded output is handed back instead. This
//! is why the search must be a function of its inputs and of what its steps return.

mod effect;
mod key;
mod limit;
mod recall;
mod recorder;
mod thread;

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use jiff::Timestamp;
use mle_star_agent::{Agent, Reply};
use mle_star_exec::submission::Fit;
use mle_star_exec::{Executor, Outcome};
use serde::Serialize;
use tokio::sync::{Semaphore, broadcast, watch};

use crate::budget::{self, Purse};
use crate::error::{Diagnostics, Error};
use crate::event::{Begun, Event, Header, Output, Record};
use crate::models::{PipelineConfig, TaskDescription};
use crate::prompt::PromptRegistry;
use crate::rundir::RunDir;
use crate::state::{PipelineState, Tally};

pub use key::{Digest, StepKey};
use recall::Recall;
use recorder::{Lookup, Recorder};
use thread::Threads;

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
    threads: Threads,
    /// Why the agents were given up, once they were.
    agents_lost: Mutex<Option<String>>,
    /// Set when no new step may begin.
    halted: watch::Sender<bool>,
    in_flight: AtomicUsize,
    /// How many of those only waited when the run was halted.
    given_up: AtomicUsize,
    warned_of_cost: AtomicBool,
    handed_back: AtomicUsize,
    /// The call that somebody wants to see again.
    recall: Option<Recall>,
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
    /// Why the agent gave no answer, if it gave none.
    pub no_answer: Option<String>,
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
        let containment = ports.executor.containment();
        let recorder =
            Recorder::resume(&dir.journal(), &header.config, containment, on_change, now)?;
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
            script_slots: Semaphore::new(ports.executor.slots().max(1)),
            header,
            ports,
            dir,
            recorder,
            purse: Purse::default(),
            threads: Threads::default(),
            agents_lost: Mutex::new(None),
            halted: watch::Sender::new(false),
            in_flight: AtomicUsize::new(0),
            given_up: AtomicUsize::new(0),
            warned_of_cost: AtomicBool::new(false),
            handed_back: AtomicUsize::new(0),
            recall: None,
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
        self.halted.send_replace(true);
    }

    fn is_halted(&self) -> bool {
        *self.halted.borrow()
    }

    /// How many calls are in flight.
    pub fn calls_in_flight(&self) -> usize {
        self.header.config.max_concurrent_sessions - self.agent_turns.available_permits()
    }

    /// How many steps are in flight.
    pub fn steps_in_flight(&self) -> usize {
        let [begun, given_up] =
            [&self.in_flight, &self.given_up].map(|it| it.load(Ordering::Relaxed));
        begun.saturating_sub(given_up)
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

    /// Running time and cost of the whole run up to here, once.
    pub async fn totals(&self) -> Result<(f64, Option<f64>), Error> {
        let ctx = self.scope("totals");
        let work = async {
            let Diagnostics { elapsed_seconds, cost_usd, .. } = self.run.diagnostics();
            Ok(Output::Totals { duration_seconds: elapsed_seconds, cost_usd })
        };
        match ctx.once(Digest::of(&()), None, work).await? {
            (Output::Totals { duration_seconds, cost_usd }, _) => Ok((duration_seconds, cost_usd)),
            (output, _) => Err(ctx.not_done(output)),
        }
    }

    /// Whether what comes here is done now, rather than handed back from the record. A log tells
    /// of nothing that happened in an earlier life.
    pub(crate) fn is_news(&self) -> bool {
        let recorder = &self.run.recorder;
        recorder.is_writing() && !recorder.has_begun(&self.key)
    }

    /// Does `work` once in the life of the run, however often the process restarts. Says what came
    /// of it, and when that was recorded.
    async fn once(
        &self,
        input: Digest,
        begun: Option<Begun>,
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
        if run.is_halted() {
            return std::future::pending().await;
        }
        run.recorder.started(&self.key, begun, run.ports.clock.now())?;
        let output = {
            let _flight = InFlight::new(&run.in_flight);
            work.await
        };
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
        // Only here: what is handed back from the record was warned of when it was new.
        run.warn_of_cost()?;
        Ok((output, at))
    }

    /// Waits within this call. Where the run is halted meanwhile the call ends as if it had not
    /// begun: it has cost nothing that is not on record.
    async fn idle<T>(&self, wait: impl Future<Output = T>) -> T {
        let run = self.run;
        let mut halted = run.halted.subscribe();
        let waited_for = match select(pin!(wait), pin!(halted.wait_for(|it| *it))).await {
            Either::Left((waited_for, _)) => Some(waited_for),
            Either::Right(_) => None,
        };
        if let Some(waited_for) = waited_for.filter(|_| !run.is_halted()) {
            return waited_for;
        }
        run.recorder.abandoned(&self.key, run.ports.clock.now()).ok();
        let _given_up = InFlight::new(&run.given_up);
        std::future::pending().await
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

impl Digest {
    pub(crate) fn of(input: &(impl Serialize + ?Sized)) -> Self {
        Self::of_bytes(&serde_json::to_vec(input).unwrap_or_default())
    }
}
