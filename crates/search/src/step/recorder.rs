//! What the run has done, in memory and on disk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use jiff::Timestamp;
use mle_star_exec::sandbox::Containment;
use mle_star_journal::{Journal, JournalError};
use tokio::sync::broadcast;

use super::{Digest, OnChange, StepKey};
use crate::error::{Diagnostics, Error};
use crate::event::{Begun, Decision, Event, FORMAT, Header, Lack, Output, Record};
use crate::models::PipelineConfig;
use crate::state::{PipelineState, Tally};

/// How many records a slow reader may be behind before it loses some.
const BACKLOG: usize = 4096;

/// The record of the run.
#[derive(Debug)]
pub(super) struct Recorder {
    state: Mutex<State>,
    readers: broadcast::Sender<Record>,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    on_change: OnChange,
    /// Settings that this life of the run changed, not yet on record.
    new_settings: Option<PipelineConfig>,
    /// What holds the scripts in this life, not yet on record.
    containment: Option<Box<Containment>>,
    /// Finished steps of earlier lives of the run.
    done: BTreeMap<StepKey, Done>,
    decisions: HashMap<StepKey, Decision>,
    /// Events of earlier lives of the run.
    happened: HashSet<(StepKey, u32)>,
    /// How many events there were so far, by place.
    event_counts: HashMap<StepKey, u32>,
    began: Timestamp,
    tally: Tally,
}

#[derive(Debug)]
enum Mode {
    Writing {
        journal: Journal,
        announced: bool,
    },
    /// Going through the record to see whether it fits, before writing goes on.
    Rehearsing {
        journal: Option<Journal>,
    },
    Replaying,
}

#[derive(Debug)]
struct Done {
    position: usize,
    at: Timestamp,
    input: Digest,
    output: Output,
    /// Whether it followed from a decision that is void now: it counts if it fits.
    provisional: bool,
}

/// What the record says of a step.
pub(super) enum Lookup {
    /// It is done.
    Recorded(Box<Output>, Timestamp),
    /// It is to be done.
    ToDo,
    /// It is to be done, but not now.
    Rehearsing,
}

impl Recorder {
    pub(super) fn create(path: &Utf8Path, header: &Header, now: Timestamp) -> Result<Self, Error> {
        let mut journal = Journal::create(path)?;
        let opened = Record::Opened { at: now, header: header.clone() };
        journal.append(&opened)?;
        let recorder = Self::new(Mode::Writing { journal, announced: true }, OnChange::Stop, now);
        recorder.state().tally.note(&opened);
        Ok(recorder)
    }

    pub(super) fn resume(
        path: &Utf8Path,
        config: &PipelineConfig,
        containment: Option<&Containment>,
        on_change: OnChange,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let (journal, records) = Journal::open(path)?;
        let recorder = Self::new(Mode::Writing { journal, announced: false }, on_change, now);
        let mut state = recorder.state();
        state.containment = containment.cloned().map(Box::new);
        let recorded = state.load(records);
        if recorded.as_ref() != Some(config) {
            state.void_decisions();
            state.new_settings = Some(config.clone());
        }
        drop(state);
        Ok(recorder)
    }

    pub(super) fn replay(path: &Utf8Path, now: Timestamp) -> Result<Self, Error> {
        let recorder = Self::new(Mode::Replaying, OnChange::Stop, now);
        recorder.state().load(mle_star_journal::read(path)?);
        Ok(recorder)
    }

    /// The record at `path` as far as it goes, and the settings at its end. Nothing is ever done.
    pub(super) fn rehearse(
        path: &Utf8Path,
        now: Timestamp,
    ) -> Result<(Self, Option<PipelineConfig>), Error> {
        let recorder = Self::new(Mode::Rehearsing { journal: None }, OnChange::Stop, now);
        let config = recorder.state().load(mle_star_journal::read(path)?);
        Ok((recorder, config))
    }

    fn new(mode: Mode, on_change: OnChange, now: Timestamp) -> Self {
        let state = State {
            mode,
            on_change,
            new_settings: None,
            containment: None,
            done: BTreeMap::new(),
            decisions: HashMap::new(),
            happened: HashSet::new(),
            event_counts: HashMap::new(),
            began: now,
            tally: Tally::default(),
        };
        Self { state: Mutex::new(state), readers: broadcast::channel(BACKLOG).0 }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Record> {
        self.readers.subscribe()
    }

    pub(super) fn look_up(&self, key: &StepKey, input: &Digest) -> Result<Lookup, Error> {
        let mut state = self.state();
        let fits = state.done.get(key).map(|done| done.input == *input);
        match (fits, &state.mode) {
            (Some(true), Mode::Rehearsing { .. }) => {
                // It will be needed again, for real.
                let done = state.done.get(key).map(|done| (done.output.clone(), done.at));
                Ok(done.map_or(Lookup::ToDo, |(output, at)| Lookup::Recorded(Box::new(output), at)))
            }
            (Some(true), Mode::Writing { .. } | Mode::Replaying) => {
                let done = state.done.remove(key);
                Ok(done
                    .map_or(Lookup::ToDo, |done| Lookup::Recorded(Box::new(done.output), done.at)))
            }
            (Some(false), _) if state.must_fit(key) => Err(state.diverged(key)),
            (_, Mode::Rehearsing { .. }) => Ok(Lookup::Rehearsing),
            (_, Mode::Replaying) => Err(Error::NotRecorded { key: key.clone() }),
            (_, Mode::Writing { .. }) => Ok(Lookup::ToDo),
        }
    }

    /// Whether anything that belongs to `key` is on record from earlier lives.
    pub(super) fn has_begun(&self, key: &StepKey) -> bool {
        let state = self.state();
        let mut from_here = state.done.range(key.join("")..);
        from_here.next().is_some_and(|(next, _)| next.is_within(key))
    }

    /// What was decided at `key`.
    pub(super) fn decision(&self, key: &StepKey) -> Option<Decision> {
        self.state().decisions.get(key).cloned()
    }

    /// Whether steps are done and recorded now, rather than only handed back.
    pub(super) fn is_writing(&self) -> bool {
        matches!(self.state().mode, Mode::Writing { .. })
    }

    pub(super) fn decide(
        &self,
        key: &StepKey,
        decision: Decision,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.state().decisions.insert(key.clone(), decision.clone());
        self.append(Record::Decided { at, key: key.clone(), decision }, Journal::append_unsynced)
    }

    pub(super) fn started(
        &self,
        key: &StepKey,
        begun: Option<Begun>,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.append(Record::Started { at, key: key.clone(), begun }, Journal::append_unsynced)
    }

    pub(super) fn abandoned(&self, key: &StepKey, at: Timestamp) -> Result<(), Error> {
        self.append(Record::Abandoned { at, key: key.clone() }, Journal::append_unsynced)
    }

    pub(super) fn finished(
        &self,
        key: &StepKey,
        input: Digest,
        output: &Output,
        at: Timestamp,
    ) -> Result<(), Error> {
        let record = Record::Finished { at, key: key.clone(), input, output: output.clone() };
        self.append(record, Journal::append)
    }

    pub(super) fn happened(
        &self,
        key: &StepKey,
        event: Event,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<(), Error> {
        let index = {
            let mut state = self.state();
            if !matches!(state.mode, Mode::Writing { .. }) {
                return Ok(());
            }
            let count = state.event_counts.entry(key.clone()).or_default();
            let index = *count;
            *count += 1;
            if state.happened.remove(&(key.clone(), index)) {
                return Ok(());
            }
            index
        };
        let record = Record::Happened { at: now(), key: key.clone(), index, event };
        self.append(record, Journal::append_unsynced)
    }

    /// Running time of all lives of the run.
    pub(super) fn elapsed(&self, now: Timestamp) -> f64 {
        self.state().tally.elapsed(now)
    }

    /// What the run has spent, calls in flight at a kill included.
    pub(super) fn spent(&self) -> f64 {
        self.state().tally.spent()
    }

    /// The sums of the run so far.
    pub(super) fn tally(&self) -> Tally {
        self.state().tally.clone()
    }

    /// What was lacking first at `key` or inside of it.
    pub(super) fn lacked(&self, key: &StepKey) -> Option<Lack> {
        self.state().tally.lacked(key).cloned()
    }

    pub(super) fn pipeline_state(&self, now: Timestamp) -> PipelineState {
        let elapsed = self.elapsed(now);
        self.state().tally.pipeline_state(elapsed)
    }

    pub(super) fn diagnostics(&self, now: Timestamp) -> Diagnostics {
        let elapsed_seconds = self.elapsed(now);
        let state = self.state();
        Diagnostics {
            elapsed_seconds,
            cost_usd: state.tally.cost_usd(),
            last_finished_step: state.tally.last_finished.clone(),
            finished_steps: state.tally.finished_steps,
            scripts: state.tally.scripts.iter().cloned().collect(),
        }
    }

    pub(super) fn diverged(&self, key: &StepKey) -> Error {
        self.state().diverged(key)
    }

    /// Until the guard is dropped, nothing is written and no step is done.
    pub(super) fn rehearsal(&self) -> Rehearsal<'_> {
        let mut state = self.state();
        if let Mode::Writing { .. } = &state.mode {
            let writing = std::mem::replace(&mut state.mode, Mode::Rehearsing { journal: None });
            if let (Mode::Writing { journal, .. }, Mode::Rehearsing { journal: kept }) =
                (writing, &mut state.mode)
            {
                *kept = Some(journal);
            }
        }
        Rehearsal(self)
    }

    /// Writes a record, after those that say what is different in this life.
    ///
    /// Each of them counts as written only when it is: on a disk that was full for a moment, what
    /// comes next must neither go without it nor write it again.
    fn append(
        &self,
        record: Record,
        write: impl Fn(&mut Journal, &Record) -> Result<(), JournalError>,
    ) -> Result<(), Error> {
        let mut state = self.state();
        let at = state.began;
        // Looking at a finished run is not a new life: only doing something is.
        if let Mode::Writing { announced: false, .. } = &state.mode {
            let resumed = Record::Resumed { at, containment: state.containment.clone() };
            self.write(&mut state, resumed, Journal::append_unsynced)?;
            if let Mode::Writing { announced, .. } = &mut state.mode {
                *announced = true;
            }
        }
        if let (Mode::Writing { .. }, Some(config)) = (&state.mode, state.new_settings.clone()) {
            let settings = Record::Settings { at, config };
            self.write(&mut state, settings, Journal::append_unsynced)?;
            state.new_settings = None;
        }
        self.write(&mut state, record, write)
    }

    /// Writes a record, and tells those who read along.
    fn write(
        &self,
        state: &mut State,
        record: Record,
        write: impl Fn(&mut Journal, &Record) -> Result<(), JournalError>,
    ) -> Result<(), Error> {
        let Mode::Writing { journal, .. } = &mut state.mode else { return Ok(()) };
        write(journal, &record)?;
        state.tally.note(&record);
        self.readers.send(record).ok(); // nobody may be watching
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While this lives, the recorder only hands back what it has.
pub(super) struct Rehearsal<'a>(&'a Recorder);

impl Drop for Rehearsal<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Mode::Rehearsing { journal } = &mut state.mode
            && let Some(journal) = journal.take()
        {
            state.mode = Mode::Writing { journal, announced: false };
        }
    }
}

impl State {
    /// Takes in what is on record, and returns the settings that were in force at its end.
    fn load(&mut self, records: Vec<Record>) -> Option<PipelineConfig> {
        let mut config = None;
        for (position, record) in records.into_iter().enumerate() {
            self.tally.note(&record);
            match record {
                Record::Opened { header, .. } => config = Some(header.config),
                Record::Settings { config: new, .. } => {
                    config = Some(new);
                    self.void_decisions();
                }
                Record::Resumed { .. } | Record::Started { .. } | Record::Abandoned { .. } => {}
                Record::Decided { key, decision, .. } => {
                    self.decisions.insert(key, decision);
                }
                // A wait is a part of its step: a step that is begun again waits anew.
                Record::Happened {
                    event: Event::Waiting { .. } | Event::BrokenOff { .. }, ..
                } => {}
                Record::Happened { key, index, .. } => {
                    self.happened.insert((key, index));
                }
                Record::Finished { at, key, input, output } => {
                    let done = Done { position, at, input, output, provisional: false };
                    self.done.insert(key, done);
                }
            }
        }
        self.tally.begin_life(self.began);
        config
    }

    /// Forgets what was decided by limits that no longer hold. Steps that followed stay on record,
    /// but are done again where they no longer fit, and what came of it all is told anew.
    fn void_decisions(&mut self) {
        self.decisions.clear();
        self.happened.clear();
        let void = |done: &Done| match &done.output {
            Output::NotDone { lack, .. } => lack.is_shortage(),
            Output::Totals { .. } => true,
            Output::Asked { .. } | Output::Ran { .. } => false,
        };
        self.done.retain(|_, done| !void(done));
        self.done.values_mut().for_each(|done| done.provisional = true);
    }

    fn must_fit(&self, key: &StepKey) -> bool {
        self.on_change == OnChange::Stop && self.done.get(key).is_some_and(|done| !done.provisional)
    }

    fn diverged(&self, key: &StepKey) -> Error {
        let position = self.done.get(key).map_or(0, |done| done.position);
        let redone = |(other, done): &(&StepKey, &Done)| {
            *other == key || (done.position > position && key.may_affect(other))
        };
        let (mut steps, mut dollars) = (0, 0.0);
        for (_, done) in self.done.iter().filter(redone) {
            steps += 1;
            dollars += done.output.cost_usd().unwrap_or(0.0);
        }
        Error::Diverged { key: key.clone(), steps, dollars }
    }
}

/// What the first record says, with the settings that were last in force.
pub(super) fn read_header(path: &Utf8Path) -> Result<Header, Error> {
    // The format is looked at before anything else is understood: another one may differ in all.
    let first: Option<serde_json::Value> = mle_star_journal::read_first(path)?;
    let first = first.ok_or(Error::Headless)?;
    match first.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(found) => return Err(Error::Format { found, expected: FORMAT }),
        None => return Err(Error::Headless),
    }
    let Ok(Record::Opened { mut header, .. }) = serde_json::from_value(first) else {
        return Err(Error::Headless);
    };
    let text = fs_err::read(path)?;
    let settings = text.split(|byte| *byte == b'\n').rev();
    let mut settings = settings.filter(|line| line.starts_with(br#"{"record":"settings""#));
    if let Some(Ok(Record::Settings { config, .. })) =
        settings.next().map(serde_json::from_slice::<Record>)
    {
        header.config = config;
    }
    Ok(header)
}
