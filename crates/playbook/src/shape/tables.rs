//! Which table is for what, and which columns are predicted.

use camino::Utf8Path;
use mle_star_profile::DataProfile;

use super::table::{Column, Table};
use super::{MAX_TABLES, ShapeError, metric};

/// The tables by what they are for.
pub(super) struct Tables {
    pub(super) train: Table,
    pub(super) test: Table,
    pub(super) sample: Option<Table>,
    pub(super) others: Vec<Table>,
}

impl Tables {
    pub(super) fn find(folder: &Utf8Path, profile: &DataProfile) -> Result<Self, ShapeError> {
        let (tables, unreadable) = read_all(folder, profile);
        match (Self::assigned(tables), unreadable) {
            // What could not be read may well be what is missing.
            (Err(ShapeError::NoTrain | ShapeError::NoTest { .. }), Some(error)) => Err(error),
            (Ok(found), _) if found.test.rows == 0 => {
                Err(ShapeError::NoRows { test: found.test.path })
            }
            (result, _) => result,
        }
    }

    fn assigned(mut tables: Vec<Table>) -> Result<Self, ShapeError> {
        // Prose in a .txt file reads like a table of one column.
        tables.retain(|table| !table.path.ends_with(".txt") || table.columns.len() > 1);
        let (samples, mut tables) = named(tables, &["sample", "submission"], &["train", "test"]);
        let mut samples = samples.into_iter();
        let sample = samples.next();
        tables.extend(samples);
        let (trains, tables) = named(tables, &["train"], &[]);
        let (tests, mut others) =
            named(tables, &["test", "predict", "holdout", "unlabel"], &["train"]);
        let shared = |table: &Table, with: &[Table]| {
            let has = |column: &&Column| with.iter().any(|it| it.has(&column.name));
            table.columns.iter().filter(has).count()
        };
        let worth: Vec<usize> = tests.iter().map(|it| shared(it, &trains)).collect();
        let test = one_of(tests, "test", "test", worth, &mut others)?;
        let with = test.as_slice();
        let worth: Vec<usize> = trains.iter().map(|it| shared(it, with)).collect();
        let train = one_of(trains, "train", "training", worth, &mut others)?;
        let train = match (train, &test) {
            (Some(train), _) => train,
            // Whatever has all columns of the test table, and more.
            (None, Some(test)) => {
                let wider = |table: &Table| {
                    table.columns.len() > test.columns.len()
                        && test.columns.iter().all(|column| table.has(&column.name))
                };
                let position = others.iter().position(wider).ok_or(ShapeError::NoTrain)?;
                others.remove(position)
            }
            (None, None) => {
                let widest = others.iter().enumerate().max_by_key(|(position, table)| {
                    (table.columns.len(), table.rows, usize::MAX - position)
                });
                let position = widest.map(|(position, _)| position).ok_or(ShapeError::NoTrain)?;
                others.remove(position)
            }
        };
        let test = match test {
            Some(test) => test,
            None => {
                let fits = |table: &Table| {
                    let shared = table.columns.iter().filter(|it| train.has(&it.name)).count();
                    shared * 5 >= table.columns.len() * 4
                        && shared < train.columns.len()
                        && shared > 1
                };
                let position = others.iter().position(fits);
                let position =
                    position.ok_or_else(|| ShapeError::NoTest { train: train.path.clone() })?;
                others.remove(position)
            }
        };
        Ok(Self { train, test, sample, others })
    }
}

/// The tables of a folder, and the first that could not be read.
fn read_all(folder: &Utf8Path, profile: &DataProfile) -> (Vec<Table>, Option<ShapeError>) {
    let mut tables: Vec<Table> = Vec::new();
    let mut unreadable = None;
    for path in profile.files.iter().map(|file| file.path.as_str()) {
        match Table::read(folder, path) {
            Ok(table) => tables.extend(table),
            Err(error) => {
                let reason = error.to_string();
                unreadable.get_or_insert(ShapeError::Unreadable { path: path.to_owned(), reason });
            }
        }
        if tables.len() == MAX_TABLES {
            break;
        }
    }
    (tables, unreadable)
}

/// The tables with one of these words, and none of those, in the names of their files; the rest.
fn named(tables: Vec<Table>, words: &[&str], without: &[&str]) -> (Vec<Table>, Vec<Table>) {
    tables.into_iter().partition(|table| {
        let name = file_name(&table.path);
        let has = |word: &&str| has_word(name, word);
        words.iter().any(has) && !without.iter().any(has)
    })
}

/// Whether a word begins in a name: `train` in `my_train2.csv` and `XTrain.csv`, but not in
/// `constraint.csv`.
fn has_word(name: &str, word: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.match_indices(word).any(|(at, _)| {
        let before = lower.get(..at).and_then(|it| it.chars().next_back());
        let capital = name.get(at..).is_some_and(|it| it.starts_with(char::is_uppercase));
        capital || !before.is_some_and(char::is_alphabetic)
    })
}

/// The table that is named just so, or the one of the greatest worth; the rest joins the others.
fn one_of(
    mut tables: Vec<Table>,
    exact: &str,
    role: &'static str,
    worth: Vec<usize>,
    others: &mut Vec<Table>,
) -> Result<Option<Table>, ShapeError> {
    let stem = |table: &Table| {
        let name = file_name(&table.path).to_lowercase();
        name.split('.').next().map(str::to_owned).unwrap_or_default()
    };
    let best = worth.iter().max().copied().unwrap_or(0);
    let mut equal = worth.iter().enumerate().filter(|it| *it.1 == best).map(|it| it.0);
    let position = match tables.iter().position(|table| stem(table) == exact) {
        Some(position) => position,
        None => match (equal.next(), equal.next()) {
            (None, _) => return Ok(None),
            (Some(position), None) => position,
            (Some(first), Some(second)) => {
                let path = |at: usize| tables.get(at).map(|it| it.path.clone()).unwrap_or_default();
                return Err(ShapeError::SeveralTables {
                    role,
                    first: path(first),
                    second: path(second),
                });
            }
        },
    };
    let chosen = tables.remove(position);
    others.extend(tables);
    Ok(Some(chosen))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// What is to be predicted: what the sample submission asks for, or what the test rows lack.
pub(super) fn targets(
    train: &Table,
    test: &Table,
    sample: Option<&Table>,
    metric: &str,
    description: &str,
) -> Result<Vec<String>, ShapeError> {
    let lacking = |table: &Table| -> Vec<String> {
        let names = table.columns.iter().map(|column| &column.name);
        names.filter(|name| !test.has(name)).cloned().collect()
    };
    if let Some(sample) = sample {
        let asked: Vec<String> =
            lacking(sample).into_iter().filter(|name| train.has(name)).collect();
        if !asked.is_empty() {
            return Ok(asked);
        }
        // The test rows may have the column too, blank or not.
        if let Some(last) = sample.columns.last()
            && sample.columns.len() == 2
            && train.has(&last.name)
        {
            return Ok(vec![last.name.clone()]);
        }
    }
    let missing = lacking(train);
    let all = || train.columns.iter().map(|column| &column.name);
    let chosen = match missing.as_slice() {
        [] => all().find(|it| is_told(it, description)).or_else(|| all().find(|it| is_usual(it))),
        [only] => Some(only),
        several => {
            let likely: Vec<&String> =
                several.iter().filter(|it| could_be_target(train, it, metric)).collect();
            let told = several.iter().find(|it| is_told(it, description));
            let usual = || several.iter().find(|it| is_usual(it));
            let only = || if let [only] = likely.as_slice() { Some(*only) } else { None };
            let mentioned = || {
                let mut words = likely.iter().filter(|it| is_mentioned(it, description));
                words.next().filter(|_| words.next().is_none()).copied()
            };
            match told.or_else(usual).or_else(only).or_else(mentioned) {
                Some(name) => Some(name),
                None => {
                    let columns: Vec<String> =
                        several.iter().take(5).map(|it| format!("`{it}`")).collect();
                    return Err(ShapeError::SeveralColumns {
                        train: train.path.clone(),
                        test: test.path.clone(),
                        columns: columns.join(" and "),
                    });
                }
            }
        }
    };
    chosen
        .map(|name| vec![name.clone()])
        .ok_or_else(|| ShapeError::NoTarget { train: train.path.clone(), test: test.path.clone() })
}

/// In a description, names stand between backticks or quotes.
fn is_told(name: &str, description: &str) -> bool {
    ['`', '"', '\''].iter().any(|mark| description.contains(&format!("{mark}{name}{mark}")))
}

fn is_mentioned(name: &str, description: &str) -> bool {
    let words = description.split(|it: char| !it.is_alphanumeric() && it != '_');
    words.into_iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// Names that the whole field gives to targets.
fn is_usual(name: &str) -> bool {
    let lower = name.to_lowercase();
    matches!(lower.as_str(), "target" | "label" | "y" | "class" | "outcome" | "response")
}

/// Whether the metric makes sense for a column.
fn could_be_target(train: &Table, name: &str, metric: &str) -> bool {
    let Some(column) = train.column(name) else { return false };
    let different = column.distinct().len();
    if metric::is_of_numbers(metric) || metric == "qwk" {
        return column.is_number() && different > 1;
    }
    different > 1 && different * 3 <= column.present().count().max(6)
}
