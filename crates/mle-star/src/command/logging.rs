//! What is logged through `tracing` goes to the log of the run, beside what its records say.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use mle_star::log::{LogFile, open_all};
use mle_star_search::Run;
use mle_star_search::models::LogLevel;
use mle_star_view::log::{Entry, is_logged};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Listens from now on, and says why there is no log where there is none.
pub(crate) fn listen(run: &Run) -> Vec<std::io::Error> {
    let config = &run.header().config;
    let (files, errors) = open_all(run.dir(), config);
    let lines = Lines { files: Mutex::new(files), least: config.log_level };
    // A process works on one run; if somebody listens already, they go on.
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines)).ok();
    errors
}

/// Writes each event as a line.
struct Lines {
    files: Mutex<Vec<LogFile>>,
    least: LogLevel,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("mle_star") && is_logged(level(metadata.level()), self.least)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let entry = Entry {
            time: Timestamp::now(),
            level: level(metadata.level()),
            target: metadata.target(),
            message: fields.message,
            fields: fields.others,
        };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter_mut().for_each(|file| file.write(&entry));
    }
}

fn level(level: &Level) -> LogLevel {
    match *level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Info,
        Level::DEBUG | Level::TRACE => LogLevel::Debug,
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn take(&mut self, field: &Field, value: impl Into<Value>) {
        self.others.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.take(field, format!("{value:?}")),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, value);
    }
}
