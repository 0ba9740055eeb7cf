//! A run of `examples/rent` with a price for every reply, as it was recorded. Long replies, paths
//! and the list of packages were shortened afterwards.

use mle_star_search::event::{Begun, Event, Record};

/// The records, from the first to the last.
pub(crate) fn rent() -> Vec<Record> {
    let text = include_str!("../fixtures/rent.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records up to the first that is like `is_last`, which is among them.
pub(crate) fn until(is_last: impl Fn(&Record) -> bool) -> Vec<Record> {
    let mut records = rent();
    let end = records.iter().position(is_last).unwrap();
    records.truncate(end + 1);
    records
}

/// A place in the records where a call at `key` is in flight.
pub(crate) fn asking(key: &str) -> Vec<Record> {
    until(|record| {
        matches!(record, Record::Started { key: it, begun: Some(Begun::Ask { .. }), .. }
            if it.as_str() == key)
    })
}

/// The same records with each event changed by `change`.
pub(crate) fn with_events(mut records: Vec<Record>, change: impl Fn(&mut Event)) -> Vec<Record> {
    for record in &mut records {
        if let Record::Happened { event, .. } = record {
            change(event);
        }
    }
    records
}
