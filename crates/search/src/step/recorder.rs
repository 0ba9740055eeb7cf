//! What the run has done, in memory and on disk.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use jiff::Timestamp;
use mle_star_journal::{Journal, JournalError};
use tokio::sync::broadcast;

use super::{Digest, OnChange, StepKey};
use crate::error::{Diagnostics, Error};
use crate::event::{Event, FORMAT, Header, Output, Record};

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
    /// Finished steps of earlier lives of the run.
    done: HashMap<StepKey, Done>,
    /// Events of earlier lives of the run.
    happened: HashSet<(StepKey, u32)>,
    /// How many events there were so far, by place.
    event_counts: HashMap<StepKey, u32>,
    /// Running time of earlier lives.
    elapsed_before: f64,
    began: Timestamp,
    cost_usd: Option<f64>,
    finished_steps: usize,
    last_finished: Option<StepKey>,
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
        journal.append(&Record::Opened { at: now, header: header.clone() })?;
        let mode = Mode::Writing { journal, announced: true };
        Ok(Self::new(mode, OnChange::Stop, Vec::new(), now))
    }

    pub(super) fn resume(
        path: &Utf8Path,
        on_change: OnChange,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let (journal, records) = Journal::open(path)?;
        let mode = Mode::Writing { journal, announced: false };
        Ok(Self::new(mode, on_change, records, now))
    }

    pub(super) fn replay(path: &Utf8Path, now: Timestamp) -> Result<Self, Error> {
        let records = mle_star_journal::read(path)?;
        Ok(Self::new(Mode::Replaying, OnChange::Stop, records, now))
    }

    fn new(mode: Mode, on_change: OnChange, records: Vec<Record>, now: Timestamp) -> Self {
        let mut state = State {
            mode,
            on_change,
            done: HashMap::new(),
            happened: HashSet::new(),
            event_counts: HashMap::new(),
            elapsed_before: 0.0,
            began: now,
            cost_usd: None,
            finished_steps: 0,
            last_finished: None,
        };
        state.load(records);
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
            (Some(false), _) if state.on_change == OnChange::Stop => Err(state.diverged(key)),
            (_, Mode::Rehearsing { .. }) => Ok(Lookup::Rehearsing),
            (_, Mode::Replaying) => Err(Error::NotRecorded { key: key.clone() }),
            (_, Mode::Writing { .. }) => Ok(Lookup::ToDo),
        }
    }

    pub(super) fn started(&self, key: &StepKey, at: Timestamp) -> Result<(), Error> {
        self.append(Record::Started { at, key: key.clone() }, Journal::append_unsynced)
    }

    pub(super) fn finished(
        &self,
        key: &StepKey,
        input: Digest,
        output: &Output,
        at: Timestamp,
    ) -> Result<(), Error> {
        let record = Record::Finished { at, key: key.clone(), input, output: output.clone() };
        self.append(record, Journal::append)?;
        self.state().count(key, output);
        Ok(())
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

    pub(super) fn diagnostics(&self, now: Timestamp) -> Diagnostics {
        let state = self.state();
        Diagnostics {
            elapsed_seconds: state.elapsed_before + seconds_between(state.began, now),
            cost_usd: state.cost_usd,
            last_finished_step: state.last_finished.as_ref().map(ToString::to_string),
            finished_steps: state.finished_steps,
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

    fn append(
        &self,
        record: Record,
        write: impl Fn(&mut Journal, &Record) -> Result<(), JournalError>,
    ) -> Result<(), Error> {
        let mut state = self.state();
        let began = state.began;
        let Mode::Writing { journal, announced } = &mut state.mode else { return Ok(()) };
        if !*announced {
            // Looking at a finished run is not a new life: only doing something is.
            *announced = true;
            let resumed = Record::Resumed { at: began };
            journal.append_unsynced(&resumed)?;
            self.readers.send(resumed).ok(); // nobody may be watching
        }
        write(journal, &record)?;
        drop(state);
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
    fn load(&mut self, records: Vec<Record>) {
        let mut life: Option<(Timestamp, Timestamp)> = None;
        for (position, record) in records.into_iter().enumerate() {
            match record {
                Record::Opened { at, .. } | Record::Resumed { at } => {
                    self.elapsed_before += life.map_or(0.0, |(from, to)| seconds_between(from, to));
                    life = Some((at, at));
                }
                Record::Started { at, .. } => life = life.map(|(from, _)| (from, at)),
                Record::Happened { at, key, index, .. } => {
                    life = life.map(|(from, _)| (from, at));
                    self.happened.insert((key, index));
                }
                Record::Finished { at, key, input, output } => {
                    life = life.map(|(from, _)| (from, at));
                    self.count(&key, &output);
                    self.done.insert(key, Done { position, at, input, output });
                }
            }
        }
        self.elapsed_before += life.map_or(0.0, |(from, to)| seconds_between(from, to));
    }

    fn count(&mut self, key: &StepKey, output: &Output) {
        self.finished_steps += 1;
        self.last_finished = Some(key.clone());
        if let Some(cost) = output.cost_usd() {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
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

/// What the first record says.
pub(super) fn read_header(path: &Utf8Path) -> Result<Header, Error> {
    // The format is looked at before anything else is understood: another one may differ in all.
    let first: Option<serde_json::Value> = mle_star_journal::read_first(path)?;
    let first = first.ok_or(Error::Headless)?;
    match first.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(found) => return Err(Error::Format { found, expected: FORMAT }),
        None => return Err(Error::Headless),
    }
    match serde_json::from_value(first) {
        Ok(Record::Opened { header, .. }) => Ok(header),
        Ok(_) | Err(_) => Err(Error::Headless),
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}
