//! The log of a run, made from its records.
//!
//! [`Log`] says for each record what a log should say about it, with level and fields. It has an
//! [`Overview`] of its own, because much of what a line says came earlier: how long a phase took,
//! what was best before. What agents wrote is cut short, but not escaped: lines are JSON.
//!
//! Absent on purpose: prompts, which are not on record, and what goes on while a script starts;
//! both are logged where they happen.

mod events;
mod steps;

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use mle_star_search::event::Record;
use mle_star_search::models::{LogLevel, Score};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Overview;
use crate::overview::{Place, shortened_to};

/// How much of a plan or reply a line shows.
const SHOWN_CHARS: usize = 200;

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// When.
    pub time: Timestamp,
    /// How much it matters.
    pub level: LogLevel,
    /// Who says it.
    pub target: &'static str,
    /// What.
    pub message: String,
    /// The rest.
    pub fields: Map<String, Value>,
}

/// Makes a log of records as they come.
#[derive(Debug, Default)]
pub struct Log {
    overview: Overview,
    /// How the last script at a place went.
    ran: HashMap<String, Ran>,
    /// The best score of each path before its current attempt.
    best: HashMap<usize, Score>,
    /// The last warning, and where it was given.
    warned: Option<(String, String)>,
    /// Where scripts came to an evaluation.
    evaluated: HashSet<String>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Ran {
    duration_seconds: f64,
    is_error: bool,
}

/// Whether a line of `level` belongs into a log that begins at `least`.
pub fn is_logged(level: LogLevel, least: LogLevel) -> bool {
    rank(level) >= rank(least)
}

fn rank(level: LogLevel) -> u8 {
    match level {
        LogLevel::Debug => 0,
        LogLevel::Info => 1,
        LogLevel::Warning => 2,
        LogLevel::Error => 3,
    }
}

impl Log {
    /// Takes in a record that was logged before, or by nobody.
    pub fn skip(&mut self, record: &Record) {
        self.entries(record);
    }

    /// What a log says of a record.
    pub fn entries(&mut self, record: &Record) -> Vec<Entry> {
        match record {
            Record::Opened { header, .. } => {
                self.overview.apply(record);
                self.say(
                    record,
                    LogLevel::Info,
                    "run opened",
                    &[
                        ("competition_id", header.task.competition_id.clone().into()),
                        ("metric", header.task.evaluation_metric.clone().into()),
                        ("direction", header.task.metric_direction.to_string().into()),
                        ("agents", header.agents.clone().into()),
                        ("version", header.version.clone().into()),
                        (
                            "sandbox",
                            header.containment.as_ref().map(|it| it.tier.to_string()).into(),
                        ),
                    ],
                );
            }
            Record::Resumed { containment, .. } => {
                self.overview.apply(record);
                let tier = containment.as_ref().map(|it| it.tier.to_string());
                let fields = [("sandbox", tier.into())];
                self.say(record, LogLevel::Info, "run resumed", &fields);
            }
            Record::Settings { config, .. } => {
                self.overview.apply(record);
                self.say(
                    record,
                    LogLevel::Info,
                    "settings changed",
                    &[
                        ("time_limit_seconds", config.time_limit_seconds.into()),
                        ("max_budget_usd", config.max_budget_usd.into()),
                    ],
                );
            }
            Record::Started { key, begun, .. } => {
                self.overview.apply(record);
                self.started(record, key.as_str(), begun.as_ref());
            }
            Record::Finished { key, output, .. } => {
                self.finished(record, key.as_str(), output);
                self.overview.apply(record);
            }
            Record::Abandoned { .. } => {
                self.overview.apply(record);
                self.say(record, LogLevel::Warning, "step abandoned", &[]);
            }
            Record::Decided { decision, .. } => {
                self.overview.apply(record);
                let decision = serde_json::to_value(decision).unwrap_or_default();
                self.say(record, LogLevel::Debug, "decided", &[("decision", decision)]);
            }
            Record::Happened { key, event, .. } => {
                // What came before is told with what is new.
                self.happening(record, key.as_str(), event);
                self.overview.apply(record);
                self.happened(record, key.as_str(), event);
            }
        }
        std::mem::take(&mut self.entries)
    }

    /// Adds a line, with the place of the record in the loops.
    fn say(
        &mut self,
        record: &Record,
        level: LogLevel,
        message: impl Into<String>,
        fields: &[(&str, Value)],
    ) {
        let mut all = Map::new();
        if let Some(key) = key(record).filter(|it| !it.is_empty()) {
            all.insert("step".to_owned(), key.into());
            let place = Place::of(key);
            for (part, name) in [
                ("candidate", "candidate"),
                ("merge", "merge"),
                ("path", "path"),
                ("outer", "outer_step"),
                ("inner", "inner_step"),
                ("round", "round"),
                ("attempt", "attempt"),
            ] {
                if let Some(number) = place.number(part) {
                    all.insert(name.to_owned(), number.into());
                }
            }
        }
        all.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.entries.push(Entry {
            time: record.at(),
            level,
            target: "mle_star",
            message: message.into(),
            fields: all,
        });
    }
}

fn key(record: &Record) -> Option<&str> {
    match record {
        Record::Started { key, .. }
        | Record::Abandoned { key, .. }
        | Record::Finished { key, .. }
        | Record::Decided { key, .. }
        | Record::Happened { key, .. } => Some(key.as_str()),
        Record::Opened { .. } | Record::Resumed { .. } | Record::Settings { .. } => None,
    }
}

/// How a text begins.
fn begins(text: &str) -> Value {
    shortened_to(text, SHOWN_CHARS).into()
}

fn shown(score: Option<Score>) -> Value {
    score.map_or_else(|| "failed".into(), |score| score.get().into())
}
