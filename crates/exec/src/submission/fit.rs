//! Compares a submission with the task's sample submission.
//!
//! [`find_sample`] finds the sample, each file is read once into a [`Table`], and [`compare`] says
//! what differs in sentences that a model can act on. Both files may hold any bytes and be of any
//! size; what is read and kept of them is bounded by [`Limits`].
//!
//! Deliberately absent: whether predictions are plausible. The sample shows the shape of an
//! answer, not its values.

mod table;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::iter::repeat_n;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use self::table::{Column, Content, IdColumn, Table, Texts, read_file};

/// How many folders below the data folder a sample may be.
const DEEPEST: usize = 2;
/// The sample of the one well-known task whose sample is not called one.
const TITANIC: &str = "gender_submission.csv";
const SAMPLE: &str = "the sample submission";
/// How many ids or columns a sentence names.
const EXAMPLES: usize = 3;
/// How many columns get a sentence of their own.
const SENTENCES: usize = 10;

/// How a submission compares with the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// What makes the submission invalid, one sentence each.
    pub problems: Vec<String>,
    /// What is odd but valid, or could not be compared, one sentence each.
    pub warnings: Vec<String>,
}

impl Fit {
    /// Whether there is nothing to say about it.
    pub fn is_good(&self) -> bool {
        self.problems.is_empty() && self.warnings.is_empty()
    }
}

/// The sample submission in a folder of data: a `.csv` file, at most two folders down, whose name
/// holds `sample` and `submission` in any case, or else `gender_submission.csv`.
///
/// Of several, the shallowest, then the alphabetically first. Hidden files (as macOS leaves them
/// beside each real one) and links do not count.
pub fn find_sample(data_dir: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut titanic = None;
    let mut folders = vec![data_dir.to_owned()];
    for _ in 0..=DEEPEST {
        let (mut named, mut other, mut deeper) = (Vec::new(), Vec::new(), Vec::new());
        for entry in folders.iter().flat_map(|folder| folder.read_dir_utf8()).flatten().flatten() {
            let name = entry.file_name().to_ascii_lowercase();
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                deeper.push(entry.into_path());
            } else if !kind.is_file() || !name.ends_with(".csv") {
                continue;
            } else if name.contains("sample") && name.contains("submission") {
                named.push(entry.into_path());
            } else if name == TITANIC {
                other.push(entry.into_path());
            }
        }
        if let Some(sample) = named.into_iter().min() {
            return Some(sample);
        }
        titanic = titanic.or(other.into_iter().min());
        folders = deeper;
    }
    titanic
}

/// Compares; problems make a submission invalid, warnings do not.
///
/// The first column of the sample holds the ids if its values are unique and it is not the only
/// column. A sample that cannot be read, or a large file, costs a warning, never a problem.
pub fn compare_with_sample(submission: &Utf8Path, sample: &Utf8Path) -> Fit {
    let name = shown(submission.file_name().unwrap_or("the submission"));
    let sample = match read_file(sample, IdColumn::First) {
        Ok(table) => table,
        Err(reason) => return unreadable_sample(&reason),
    };
    let ids = sample.columns.first().map_or(IdColumn::First, |name| IdColumn::Named(name));
    compare(&name, read_file(submission, ids), &sample)
}

fn unreadable_sample(reason: &str) -> Fit {
    let warning = format!("{SAMPLE} cannot be read, so nothing was compared: {reason}");
    Fit { problems: Vec::new(), warnings: vec![warning] }
}

/// Compares what was read of the submission called `name`, or why it could not be read.
fn compare(name: &str, submission: Result<Table, String>, sample: &Table) -> Fit {
    if let Content::Ragged(reason) = &sample.content {
        return unreadable_sample(reason);
    }
    let mut fit = Fit::default();
    let submission = match submission {
        Ok(table) => table,
        Err(reason) => {
            fit.problems.push(format!("{name} cannot be read: {reason}"));
            return fit;
        }
    };
    let pairs = compare_columns(name, &submission, sample, &mut fit);
    compare_rows(name, &submission, sample, &mut fit);
    if let Content::Ragged(reason) = &submission.content {
        fit.problems.push(format!("{name} has rows of different lengths: {reason}"));
    }
    for (which, table) in [(name, &submission), (SAMPLE, sample)] {
        if matches!(table.content, Content::TooLarge) {
            let rest = if table.rows.is_some() { "columns and row count" } else { "columns" };
            fit.warnings.push(format!("{which} is very large, so only its {rest} were compared"));
        }
    }
    if let (Content::Whole(ids, stats), Content::Whole(sample_ids, sample_stats)) =
        (&submission.content, &sample.content)
    {
        // The only column of a sample holds predictions, however unique they are.
        if sample.columns.len() > 1 && sample.rows != Some(0) && pairs.first() != Some(&None) {
            compare_ids(name, ids, sample_ids, &mut fit);
        }
        let stats: Vec<_> = pairs.iter().map(|pair| pair.and_then(|at| stats.get(at))).collect();
        let columns: Vec<Compared<'_>> = (sample.columns.iter().zip(stats).zip(sample_stats))
            .filter_map(|((column, here), sample)| Some((column.as_str(), here?, sample)))
            .collect();
        compare_missing(name, &columns, &mut fit);
        if submission.rows > Some(1) {
            let id = if sample.columns.len() > 1 { sample.columns.first() } else { None };
            find_constants(name, &columns, id, &mut fit);
        }
    }
    fit
}

/// The name of a column, what the submission holds there, and what the sample does.
type Compared<'a> = (&'a str, &'a Column, &'a Column);

/// Where the submission has each column of the sample.
fn compare_columns(
    name: &str,
    submission: &Table,
    sample: &Table,
    fit: &mut Fit,
) -> Vec<Option<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, column) in submission.columns.iter().enumerate().rev() {
        places.entry(column).or_default().push(place); // reversed, so that `pop` is the first
    }
    let pairs: Vec<Option<usize>> = (sample.columns.iter())
        .map(|column| places.get_mut(column.as_str()).and_then(Vec::pop))
        .collect();

    let lacking = sample.columns.iter().zip(&pairs).filter(|(_, pair)| pair.is_none());
    let lacking: Vec<&str> = lacking.map(|(column, _)| column.as_str()).collect();
    if !lacking.is_empty() {
        let (count, columns) = (counted(lacking.len() as u64, "column"), examples(&lacking));
        fit.problems.push(format!("{name} lacks {count} of {SAMPLE}: {columns}"));
    }
    let paired: HashSet<usize> = pairs.iter().flatten().copied().collect();
    let unexpected: Vec<&str> = (submission.columns.iter().enumerate())
        .filter(|(place, _)| !paired.contains(place))
        .map(|(_, column)| column.as_str())
        .collect();
    if !unexpected.is_empty() {
        let (count, columns) = (counted(unexpected.len() as u64, "column"), examples(&unexpected));
        fit.problems.push(format!("{name} has {count} that {SAMPLE} does not have: {columns}"));
    }
    if !pairs.iter().flatten().is_sorted() {
        let order: Vec<&str> = sample.columns.iter().map(String::as_str).collect();
        let order = examples(&order);
        fit.warnings
            .push(format!("{name} has its columns in another order than {SAMPLE}: {order}"));
    }
    pairs
}

fn compare_rows(name: &str, submission: &Table, sample: &Table, fit: &mut Fit) {
    let (Some(rows), Some(expected)) = (submission.rows, sample.rows) else { return };
    if expected == 0 {
        fit.warnings.push(format!("{SAMPLE} has no rows, so rows and ids were not compared"));
    } else if rows != expected {
        let rows = counted(rows, "row");
        fit.problems.push(format!("{name} has {rows}, {SAMPLE} has {expected}"));
    }
}

/// How two ids are the same.
#[derive(Debug, Clone, Copy)]
enum Same {
    /// As numbers where they are numbers, else as text.
    Value,
    Text,
}

impl Same {
    fn key(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Value => canonical(id).map_or(Cow::Borrowed(id), Cow::Owned),
            Self::Text => Cow::Borrowed(id),
        }
    }
}

fn compare_ids(name: &str, ids: &Texts, sample: &Texts, fit: &mut Fit) {
    // A sample that tells `7` from `007` means it.
    let by_value = unique(sample, Same::Value).map(|expected| (Same::Value, expected));
    let by_text = || unique(sample, Same::Text).map(|expected| (Same::Text, expected));
    let Some((same, mut expected)) = by_value.or_else(by_text) else { return };

    let (mut unexpected, mut repeated) = (Few::default(), Few::default());
    let mut strangers = HashSet::new();
    for id in ids.iter() {
        let key = same.key(id);
        let is_repeated = if let Some(seen) = expected.get_mut(&key) {
            std::mem::replace(seen, true)
        } else {
            let is_new = strangers.insert(key);
            if is_new {
                unexpected.add(id);
            }
            !is_new
        };
        if is_repeated {
            repeated.add(id);
        }
    }
    let mut lacking = Few::default();
    for id in sample.iter() {
        if expected.get(&same.key(id)) == Some(&false) {
            lacking.add(id);
        }
    }

    if let Some((count, such_as)) = lacking.told("id") {
        fit.problems.push(format!("{name} lacks {count} of {SAMPLE}, such as {such_as}"));
    }
    if let Some((count, such_as)) = unexpected.told("id") {
        let such = format!("{name} has {count} not found in {SAMPLE}, such as {such_as}");
        fit.problems.push(such);
    }
    if let Some((count, such_as)) = repeated.told("row") {
        let such = format!("{name} has {count} with the id of an earlier row, such as {such_as}");
        fit.problems.push(such);
    }
}

/// The ids, none of them seen yet, if no two are the same.
fn unique(ids: &Texts, same: Same) -> Option<HashMap<Cow<'_, str>, bool>> {
    let mut unique = HashMap::with_capacity(ids.len());
    for id in ids.iter() {
        if unique.insert(same.key(id), false).is_some() {
            return None;
        }
    }
    Some(unique)
}

/// A decimal number in its shortest form without exponent, if `text` is one and is not that yet.
///
/// Not by way of a float: ids of 17 digits and more would become each other.
fn canonical(text: &str) -> Option<String> {
    const LARGEST_EXPONENT: u32 = 40;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(text) && !text.starts_with('0') {
        return None;
    }
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    if !has_digits || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    if exponent.unsigned_abs() > LARGEST_EXPONENT {
        return None;
    }

    let shift = exponent.unsigned_abs() as usize;
    let zeros: String = repeat_n('0', shift).collect();
    let (digits, point) = if exponent < 0 {
        (format!("{zeros}{whole}{fraction}"), whole.len())
    } else {
        (format!("{whole}{fraction}{zeros}"), whole.len() + shift)
    };
    let (whole, fraction) = digits.split_at_checked(point)?;
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    Some(match (whole, fraction) {
        ("", "") => "0".to_owned(),
        ("", fraction) => format!("{sign}0.{fraction}"),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    })
}

fn compare_missing(name: &str, columns: &[Compared<'_>], fit: &mut Fit) {
    let bad = columns.iter().filter(|(_, here, sample)| here.missing > 0 && sample.missing == 0);
    let sentences = bad.map(|(column, here, _)| {
        let (column, count) = (quoted(column), counted(here.missing, "missing value"));
        format!("the column {column} of {name} has {count}, {SAMPLE} has none there")
    });
    fit.problems.extend(capped(sentences, "with missing values"));
}

fn find_constants(name: &str, columns: &[Compared<'_>], id: Option<&String>, fit: &mut Fit) {
    let predictions = columns.iter().filter(|(column, ..)| id.is_none_or(|id| id != column));
    let sentences = predictions.filter(|(_, here, _)| !here.varies).map(|(column, here, _)| {
        let (column, value) = (quoted(column), quoted(&here.first));
        format!("the column {column} of {name} has the same value {value} in every row")
    });
    fit.warnings.extend(capped(sentences, "with one constant value"));
}

/// The first sentences, and one for the others.
fn capped(mut sentences: impl Iterator<Item = String>, what: &str) -> Vec<String> {
    let mut kept: Vec<String> = sentences.by_ref().take(SENTENCES).collect();
    let others = sentences.count() as u64;
    if others > 0 {
        kept.push(format!("there are {others} more columns {what}"));
    }
    kept
}

/// How many there are, and the first few of them.
#[derive(Debug, Default)]
struct Few<'a> {
    count: u64,
    first: Vec<&'a str>,
}

impl<'a> Few<'a> {
    fn add(&mut self, text: &'a str) {
        self.count += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(text);
        }
    }

    fn told(&self, what: &str) -> Option<(String, String)> {
        (self.count > 0).then(|| (counted(self.count, what), examples(&self.first)))
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn examples(texts: &[&str]) -> String {
    let shown: Vec<String> = texts.iter().take(EXAMPLES).map(|text| quoted(text)).collect();
    let more = if texts.len() > EXAMPLES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}

/// One short line, whatever the file holds.
fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(LONGEST).map(clean).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests;
