//! What the data is: which files to train on and to predict for, what the target is, and what each
//! column is good for.
//!
//! In reading order: `table` reads the beginning of a file, `notation` understands how its numbers
//! are written, `tables` says which table is for what, `columns` what a column is good for,
//! `places` which two are coordinates, `identifier` which one names the rows, `joins` how further
//! tables belong, `metric` knows the metrics, and [`Shape::of`] puts it together. `seen` is what can
//! be said without a task.
//!
//! Everything follows from what the data shows. Names count only where they are a convention of the
//! whole field: `train` in a file's name, `id` at the end of a column's, `target` for a target.

mod columns;
mod identifier;
mod joins;
mod labels;
mod metric;
mod notation;
mod places;
mod problem;
mod seen;
mod table;
mod tables;

use std::collections::HashSet;
use std::fmt;

use mle_star_profile::DataProfile;
use mle_star_search::models::{DataModality, TaskDescription, TaskType};

use columns::{Use, is_code, is_mostly_number, is_name_of_identifier, parts, usage};
pub(crate) use identifier::IdSource;
use identifier::{identifier, is_worded};
pub(crate) use joins::{Join, Matches};
pub(crate) use labels::Labels;
use labels::add_labels;
pub(crate) use notation::Decimal;
pub use problem::ShapeError;
pub use seen::{Certainty, Seen, Wanted};
use table::{Column, Table, number};
pub(crate) use table::{Encoding, Margin};
use tables::{Tables, targets};

/// Fewer rows than this cannot be divided for validation.
const MIN_ROWS: usize = 10;
/// A column with this many words on average is prose rather than a name.
const ABOUT_TEXT: f64 = 8.0;
/// Files that are looked at.
const MAX_TABLES: usize = 12;

/// What the data of a task is.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub(crate) train: Source,
    pub(crate) test: Source,
    /// The sample submission.
    pub(crate) sample: Option<Source>,
    /// Where the targets are, if they have a table of their own.
    pub(crate) labels: Option<Labels>,
    /// Further tables whose rows belong to those of the training and test tables.
    pub(crate) joins: Vec<Join>,
    /// Other tables, which nobody knows how to use.
    pub(crate) others: Vec<String>,
    pub(crate) id: Option<String>,
    pub(crate) id_source: IdSource,
    /// Whether identifiers must be read as text to be written back as they were.
    pub(crate) id_is_text: bool,
    pub(crate) targets: Vec<String>,
    pub(crate) kind: Kind,
    pub(crate) metric: &'static str,
    /// Whether the target is a whole number with gaps, which pandas reads as a fraction.
    pub(crate) target_was_whole: bool,
    /// Whether `None` is a class, which pandas reads as a gap.
    pub(crate) none_is_a_class: bool,
    /// How many values the target has, for one target that is a class; else 0.
    pub(crate) classes: u64,
    /// Training rows, roughly where the file is large.
    pub(crate) rows: u64,
    pub(crate) numeric: Vec<String>,
    pub(crate) categorical: Vec<String>,
    pub(crate) text: Vec<String>,
    pub(crate) dates: Vec<String>,
    pub(crate) codes: Vec<String>,
    /// What keeps rows together that must not be divided by validation.
    pub(crate) group: Option<Group>,
    /// A latitude and a longitude.
    pub(crate) places: Vec<String>,
    /// Whether words are the main thing, rather than one column among others.
    pub(crate) is_about_text: bool,
    /// A date column, if the test rows are later than the training rows.
    pub(crate) time: Option<String>,
    /// Columns whose numbers are not written plainly.
    pub(crate) written: Vec<Written>,
    /// Columns that look like numbers and must be read as text: keys and classes such as `007`.
    pub(crate) worded: Vec<String>,
}

/// Numbers that have to be made plain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) table: Part,
    pub(crate) column: String,
    pub(crate) decimal: Decimal,
}

/// Which of the two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Train,
    Test,
}

impl Part {
    /// What scripts call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

/// A table as a script reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) delimiter: char,
    pub(crate) encoding: Encoding,
    pub(crate) margin: Margin,
}

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One of two classes.
    Binary,
    /// One of several classes.
    Multiclass,
    /// Several yes or no answers.
    Multilabel,
    /// A number.
    Regression,
}

/// Rows that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Group {
    /// Those with the same value in this column.
    Column(String),
    /// Those with the same first part of a code in this column.
    FirstPart(String),
}

impl Shape {
    /// Looks at the data of `task`.
    pub fn of(task: &TaskDescription, profile: &DataProfile) -> Result<Self, ShapeError> {
        match task.data_modality {
            DataModality::Image => return Err(ShapeError::Modality("images")),
            DataModality::Audio => return Err(ShapeError::Modality("sound")),
            DataModality::Tabular | DataModality::Text | DataModality::Mixed => {}
        }
        let metric = metric::canonical(&task.evaluation_metric)
            .ok_or_else(|| ShapeError::Metric(task.evaluation_metric.clone()))?;
        let Tables { mut train, test, sample, mut others } = Tables::find(&task.data_dir, profile)?;
        let labels = add_labels(&mut train, &test, &mut others);
        let targets = targets(&train, &test, sample.as_ref(), metric, &task.description)?;
        let none_is_a_class = is_of_classes(task, metric) && name_nones(&mut train, &targets);
        let labelled = labelled_rows(&train, &targets);
        if labelled < MIN_ROWS && train.complete {
            return Err(ShapeError::TooFewRows { rows: labelled });
        }
        let kind = kind(task, metric, &train, &targets)?;
        let metric = match (metric, kind) {
            ("f1", Kind::Multiclass) => "f1_macro",
            ("log_loss", Kind::Multiclass) => "multiclass_log_loss",
            ("multiclass_log_loss", Kind::Binary) => "log_loss",
            ("roc_auc", Kind::Multilabel) => "mean_columnwise_roc_auc",
            ("mean_columnwise_roc_auc", Kind::Binary) => "roc_auc",
            (metric, _) => metric,
        };
        let (id, id_source) = identifier(&train, &test, sample.as_ref(), &targets);
        let named = match &id_source {
            IdSource::Column(name) => Some(name),
            IdSource::Test | IdSource::Sample => id.as_ref(),
        };
        let ids = named.and_then(|id| {
            test.column(id).or_else(|| sample.as_ref().and_then(|it| it.column(id)))
        });
        let id_is_text = ids.is_some_and(is_worded);
        let (mut joins, mut unused) = (Vec::new(), Vec::new());
        for other in others {
            match Join::find(&other, &train, &test, &targets) {
                Some(join) => joins.push(join),
                None => unused.push(other.path),
            }
        }
        let mut shape = Self {
            train: Source::of(&train),
            test: Source::of(&test),
            sample: sample.as_ref().map(Source::of),
            labels,
            joins,
            others: unused,
            id_is_text,
            id_source,
            targets,
            kind,
            metric,
            none_is_a_class,
            classes: 0,
            target_was_whole: false,
            rows: rows(&train, profile),
            numeric: Vec::new(),
            categorical: Vec::new(),
            text: Vec::new(),
            dates: Vec::new(),
            codes: Vec::new(),
            group: None,
            time: None,
            places: Vec::new(),
            is_about_text: false,
            written: Vec::new(),
            worded: Vec::new(),
            id,
        };
        shape.sort_columns(&train, &test);
        shape.note_notations(&train, &test);
        shape.places = places::places(&train, &shape.numeric).into_iter().flatten().collect();
        if shape.columns().next().is_none() && shape.joins.is_empty() {
            return Err(ShapeError::NoColumns { train: train.path });
        }
        if let (Kind::Binary | Kind::Multiclass, Some(target)) = (kind, shape.targets.first())
            && let Some(column) = train.column(target)
        {
            shape.classes = column.distinct().len() as u64;
            if column.is_number() && column.present().any(has_leading_zero) {
                shape.worded.push(target.clone());
            }
            shape.target_was_whole = !shape.worded.contains(target)
                && column.values.iter().any(Option::is_none)
                && column.present().all(|value| value.parse::<i64>().is_ok());
        }
        shape.is_about_text = !shape.text.is_empty()
            && (task.data_modality == DataModality::Text
                || shape.text.iter().any(|name| words(&train, name) >= ABOUT_TEXT));
        shape.group = group(&shape, &train, &test);
        shape.time = shape.dates.iter().find(|name| is_later(name, &train, &test)).cloned();
        Ok(shape)
    }

    /// What is predicted.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// What kind of thing that is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The column that names the rows of a submission.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// All columns that are used.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &String> {
        let Self { numeric, categorical, text, dates, codes, .. } = self;
        numeric.iter().chain(categorical).chain(text).chain(dates).chain(codes)
    }

    /// Whether there is a column of a kind that front matter names.
    pub(crate) fn has_columns(&self, kind: &str) -> bool {
        // What further tables bring counts too: the data role takes them in later.
        let (own, joined): (_, fn(&Join) -> bool) = match kind {
            "numeric" => {
                (&self.numeric, |it| it.matches == Matches::Several || !it.numeric.is_empty())
            }
            "categorical" => (&self.categorical, |it| !it.categorical.is_empty()),
            "text" => (&self.text, |_| false),
            "dates" => (&self.dates, |it| !it.dates.is_empty()),
            "codes" => (&self.codes, |_| false),
            "places" => (&self.places, |_| false),
            _ => return false,
        };
        !own.is_empty() || self.joins.iter().any(joined)
    }

    /// Remembers which columns of numbers are not written plainly, and which keys are no numbers.
    fn note_notations(&mut self, train: &Table, test: &Table) {
        for (part, table) in [(Part::Train, train), (Part::Test, test)] {
            for column in &table.columns {
                let name = &column.name;
                let used = self.numeric.contains(name) || self.targets.contains(name);
                // Read as text for the sake of the other table, plain numbers are rewritten too.
                let elsewhere = [train, test]
                    .iter()
                    .any(|it| it.column(name).is_some_and(|it| it.decimal.is_some()));
                if used && elsewhere {
                    let decimal = column.decimal.unwrap_or(Decimal::Point);
                    self.written.push(Written { table: part, column: name.clone(), decimal });
                }
            }
        }
        for name in self.joins.iter().flat_map(|join| &join.left) {
            let worded = [train, test].iter().filter_map(|it| it.column(name)).any(is_worded);
            if worded && !self.worded.contains(name) {
                self.worded.push(name.clone());
            }
        }
    }

    fn sort_columns(&mut self, train: &Table, test: &Table) {
        for column in &train.columns {
            let name = &column.name;
            let Some(tested) = test.column(name) else { continue };
            if self.targets.contains(name) {
                continue;
            }
            if self.id.as_ref() == Some(name) {
                if !column.is_number() && is_code(column) {
                    self.codes.push(name.clone());
                }
                continue;
            }
            let mut found = usage(column);
            if found == Use::Numeric
                && tested.present().next().is_some()
                && !is_mostly_number(tested)
            {
                found = Use::Categorical;
            }
            match found {
                Use::Numeric => self.numeric.push(name.clone()),
                Use::Categorical => self.categorical.push(name.clone()),
                Use::Text => self.text.push(name.clone()),
                Use::Date => self.dates.push(name.clone()),
                Use::Code => self.codes.push(name.clone()),
                Use::Nothing => {}
            }
        }
    }
}

impl Source {
    fn of(table: &Table) -> Self {
        let Table { path, delimiter, encoding, margin, .. } = table;
        Self { path: path.clone(), delimiter: *delimiter, encoding: *encoding, margin: *margin }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Multiclass => "multiclass",
            Self::Multilabel => "multilabel",
            Self::Regression => "regression",
        })
    }
}

fn is_of_classes(task: &TaskDescription, metric: &str) -> bool {
    !metric::is_of_numbers(metric) && task.task_type != TaskType::Regression
}

/// Takes `None` for a class if the other classes are words too and no target is blank: who leaves
/// labels out leaves them blank.
fn name_nones(train: &mut Table, targets: &[String]) -> bool {
    let [target] = targets else { return false };
    let Some(column) = train.columns.iter_mut().find(|it| it.name == *target) else { return false };
    let gaps = column.values.iter().filter(|it| it.is_none()).count();
    let words =
        column.present().next().is_some() && column.present().all(|it| number(it).is_none());
    if column.nones.is_empty() || column.nones.len() != gaps || !words {
        return false;
    }
    for row in &column.nones {
        if let Some(value) = column.values.get_mut(*row) {
            *value = Some("None".to_owned());
        }
    }
    true
}

fn labelled_rows(train: &Table, targets: &[String]) -> usize {
    let columns: Vec<&Column> = targets.iter().filter_map(|name| train.column(name)).collect();
    (0..train.rows)
        .filter(|row| columns.iter().all(|it| it.values.get(*row).is_some_and(Option::is_some)))
        .count()
}

fn kind(
    task: &TaskDescription,
    metric: &str,
    train: &Table,
    targets: &[String],
) -> Result<Kind, ShapeError> {
    let columns: Vec<&Column> = targets.iter().filter_map(|name| train.column(name)).collect();
    for column in &columns {
        if column.distinct().len() < 2 && train.complete && columns.len() == 1 {
            return Err(ShapeError::OneValue { target: column.name.clone() });
        }
    }
    if columns.len() > 1 {
        let binary = |column: &&&Column| {
            column.distinct().iter().all(|it| number(it).is_some_and(|it| it == 0.0 || it == 1.0))
        };
        return match columns.iter().find(|column| !binary(column)) {
            Some(column) => Err(ShapeError::SeveralTargets { target: column.name.clone() }),
            None => Ok(Kind::Multilabel),
        };
    }
    let Some(target) = columns.first() else { return Ok(Kind::Regression) };
    let numbers = target.is_number();
    let classes = || if target.distinct().len() == 2 { Kind::Binary } else { Kind::Multiclass };
    let wanted = match task.task_type {
        _ if metric::is_of_numbers(metric) => Kind::Regression,
        _ if metric == "qwk" && numbers => Kind::Regression,
        _ if metric == "qwk" => classes(),
        // All other metrics are about classes, whatever the task is called.
        TaskType::Classification
        | TaskType::TextClassification
        | TaskType::ImageClassification
        | TaskType::AudioClassification
        | TaskType::Regression
        | TaskType::ImageToImage
        | TaskType::SequenceToSequence
        | TaskType::Tabular => classes(),
    };
    match target.present().find(|value| number(value).is_none()) {
        Some(value) if wanted == Kind::Regression => Err(ShapeError::NotANumber {
            target: target.name.clone(),
            value: value.chars().take(40).collect(),
        }),
        Some(_) | None => Ok(wanted),
    }
}

fn rows(train: &Table, profile: &DataProfile) -> u64 {
    let profiled = profile.files.iter().find(|file| file.path == train.path);
    let counted = profiled.and_then(|file| file.table.as_ref()).map(|table| table.rows);
    if train.complete { train.rows as u64 } else { counted.unwrap_or(0).max(train.rows as u64) }
}

/// Whether a whole number would lose something if it were read as one.
fn has_leading_zero(value: &str) -> bool {
    value.len() > 1 && value.starts_with('0') && value.bytes().all(|it| it.is_ascii_digit())
}

/// How many words the values of a column have on average.
fn words(table: &Table, name: &str) -> f64 {
    let Some(column) = table.column(name) else { return 0.0 };
    let words: usize = column.present().map(|value| value.split_whitespace().count()).sum();
    words as f64 / column.present().count().max(1) as f64
}

/// What holds rows together: a value that repeats within the training rows, and of which the test
/// rows have none. Then validation must hold out whole groups, as the test does.
fn group(shape: &Shape, train: &Table, test: &Table) -> Option<Group> {
    let first_part = |value: &str| parts(value).into_iter().next().unwrap_or_default();
    let whole = |value: &str| value.to_owned();
    let apart = |name: &str, key: &dyn Fn(&str) -> String| {
        let (Some(train), Some(test)) = (train.column(name), test.column(name)) else {
            return false;
        };
        let known: HashSet<String> = train.present().map(key).collect();
        let tested: HashSet<String> = test.present().map(key).collect();
        let rows = train.present().count();
        let shared = tested.iter().filter(|value| known.contains(*value)).count();
        // Few large groups or many small ones, but neither single rows nor a plain category.
        known.len() >= 5
            && known.len() * 2 <= rows
            && tested.len() >= 3
            && shared * 20 <= tested.len()
    };
    let named = shape.categorical.iter().find(|name| apart(name, &whole));
    if let Some(name) = named {
        return Some(Group::Column(name.clone()));
    }
    let identifiers = shape.numeric.iter().filter(|name| is_name_of_identifier(name));
    let mut identifiers = identifiers.chain(&shape.codes);
    if let Some(name) = identifiers.find(|name| apart(name, &whole)) {
        return Some(Group::Column(name.clone()));
    }
    let mut codes = shape.codes.iter();
    codes.find(|name| apart(name, &first_part)).map(|name| Group::FirstPart(name.clone()))
}

/// Whether the test rows come after the training rows, by a date that sorts as text.
fn is_later(name: &str, train: &Table, test: &Table) -> bool {
    let (Some(train), Some(test)) = (train.column(name), test.column(name)) else { return false };
    let year_first = |value: &str| value.get(..4).is_some_and(|it| it.parse::<u32>().is_ok());
    if !train.present().chain(test.present()).all(year_first) {
        return false;
    }
    match (train.present().max(), test.present().min()) {
        (Some(last), Some(first)) => first >= last,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
