//! One column while its rows go by: its kind narrows, its values are counted.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use csv::ByteRecord;

use crate::{ColumnKind, ColumnProfile, Distinct};

const MISSING: [&str; 9] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"];
const MAX_EXAMPLES: usize = 3;
const MAX_EXAMPLE_CHARS: usize = 40;
const MAX_NAME_CHARS: usize = 200;
/// No number, date or boolean is longer than this.
const MAX_SCALAR_BYTES: usize = 64;

pub(super) struct Column {
    position: usize,
    name: String,
    kind: ColumnKind,
    missing: u64,
    /// Hashes rather than values, so that long values cost no memory.
    seen: HashSet<u64>,
    uncounted: bool,
    examples: Vec<String>,
}

impl Column {
    pub(super) fn new(position: usize, name: &[u8]) -> Self {
        Self {
            position,
            name: cut(&String::from_utf8_lossy(name), MAX_NAME_CHARS),
            kind: ColumnKind::Empty,
            missing: 0,
            seen: HashSet::new(),
            uncounted: false,
            examples: Vec::new(),
        }
    }

    /// Takes this column's value from a row; a row too short to have one counts as missing it.
    pub(super) fn add(&mut self, row: &ByteRecord, max_distinct: usize) {
        let text = String::from_utf8_lossy(row.get(self.position).unwrap_or_default());
        let value = text.trim();
        if MISSING.contains(&value) {
            self.missing += 1;
            return;
        }
        if self.kind != ColumnKind::Text {
            self.kind = joined(self.kind, kind_of(value));
        }
        if self.uncounted {
            return;
        }
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let hash = hasher.finish();
        if self.seen.len() >= max_distinct {
            self.uncounted = !self.seen.contains(&hash);
        } else if self.seen.insert(hash) && self.examples.len() < MAX_EXAMPLES {
            self.examples.push(cut(value, MAX_EXAMPLE_CHARS));
        }
    }

    pub(super) fn finish(self, rows: u64, rows_exact: bool) -> ColumnProfile {
        let count = self.seen.len();
        ColumnProfile {
            name: self.name,
            kind: self.kind,
            missing_share: if rows == 0 { 0.0 } else { self.missing as f64 / rows as f64 },
            distinct: if self.uncounted || !rows_exact {
                Distinct::AtLeast(count)
            } else {
                Distinct::Exactly(count)
            },
            examples: self.examples,
        }
    }
}

/// Whether a row reads like a header: different words, none of them a value.
pub(super) fn all_are_names(row: &ByteRecord) -> bool {
    let mut names = HashSet::new();
    row.iter().all(|field| {
        let text = String::from_utf8_lossy(field).trim().to_owned();
        text.len() <= MAX_SCALAR_BYTES
            && !MISSING.contains(&text.as_str())
            && kind_of(&text) == ColumnKind::Text
            && names.insert(text)
    })
}

/// The kind of a column that has values of both kinds.
fn joined(so_far: ColumnKind, next: ColumnKind) -> ColumnKind {
    use ColumnKind::{Empty, Float, Integer, Text};
    match (so_far, next) {
        (Empty, kind) | (kind, Empty) => kind,
        (Integer, Float) | (Float, Integer) => Float,
        (a, b) if a == b => a,
        _ => Text,
    }
}

fn kind_of(value: &str) -> ColumnKind {
    if value.len() > MAX_SCALAR_BYTES {
        ColumnKind::Text
    } else if is_integer(value) {
        ColumnKind::Integer
    } else if value.parse::<f64>().is_ok() {
        ColumnKind::Float
    } else if ["true", "false", "yes", "no"].iter().any(|word| value.eq_ignore_ascii_case(word)) {
        ColumnKind::Boolean
    } else if is_date(value) {
        ColumnKind::Date
    } else {
        ColumnKind::Text
    }
}

fn is_integer(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Year, month and day, separated by `-` or `/`, and perhaps a time of day.
fn is_date(value: &str) -> bool {
    let (day, time) = match value.split_once(['T', ' ']) {
        Some((day, time)) => (day, Some(time)),
        None => (value, None),
    };
    let separator = if day.contains('/') { '/' } else { '-' };
    let mut parts = day.split(separator);
    let is_day = parts.next().is_some_and(|year| year.len() == 4 && is_within(year, 0, 9999))
        && parts.next().is_some_and(|month| is_within(month, 1, 12))
        && parts.next().is_some_and(|day| is_within(day, 1, 31))
        && parts.next().is_none();
    is_day && time.is_none_or(is_time)
}

/// Hours and minutes, perhaps seconds with a fraction, perhaps a zone.
fn is_time(time: &str) -> bool {
    let clock = match time.find(['Z', '+', '-']) {
        Some(zone) => time.split_at(zone).0,
        None => time.strip_suffix("UTC").unwrap_or(time),
    };
    let zone = time.strip_prefix(clock).unwrap_or_default();
    let zone_is_plain = matches!(zone, "" | "Z" | "UTC")
        || zone.bytes().skip(1).all(|byte| byte.is_ascii_digit() || byte == b':');
    let mut parts = clock.trim_end().split(':');
    let is_clock = parts.next().is_some_and(|hour| is_within(hour, 0, 24))
        && parts.next().is_some_and(|minute| is_within(minute, 0, 59))
        && parts.next().is_none_or(|second| {
            let (whole, fraction) = second.split_once('.').unwrap_or((second, "0"));
            is_within(whole, 0, 60) && is_integer(fraction)
        })
        && parts.next().is_none();
    is_clock && zone_is_plain
}

fn is_within(digits: &str, low: u16, high: u16) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.parse().is_ok_and(|number: u16| (low..=high).contains(&number))
}

/// At most `max` characters; a text that was cut ends with an ellipsis.
fn cut(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}
