//! Which table is for what, and which columns are predicted.

use camino::Utf8Path;
use mle_star_profile::DataProfile;

use super::table::Table;
use super::{MAX_TABLES, ShapeError};

/// The tables by what they are for.
pub(super) struct Tables {
    pub(super) train: Table,
    pub(super) test: Table,
    pub(super) sample: Option<Table>,
    pub(super) others: Vec<String>,
}

impl Tables {
    pub(super) fn find(folder: &Utf8Path, profile: &DataProfile) -> Result<Self, ShapeError> {
        let paths = profile.files.iter().map(|file| file.path.as_str());
        let mut tables: Vec<Table> =
            paths.filter_map(|path| Table::read(folder, path)).take(MAX_TABLES).collect();
        // Prose in a .txt file reads like a table of one column.
        tables.retain(|table| !table.path.ends_with(".txt") || table.columns.len() > 1);
        let mut named = |words: &[&str], without: &[&str]| {
            let is = |table: &Table| {
                let name = file_name(&table.path);
                words.iter().any(|it| name.contains(it))
                    && !without.iter().any(|it| name.contains(it))
            };
            let position = tables.iter().position(is)?;
            Some(tables.remove(position))
        };
        let sample = named(&["sample", "submission"], &["train", "test"]);
        let train = named(&["train"], &[]);
        let test = named(&["test", "predict", "holdout", "unlabel"], &["train"]);
        let train = match (train, &test) {
            (Some(train), _) => train,
            // Whatever has all columns of the test table, and more.
            (None, Some(test)) => {
                let wider = |table: &Table| {
                    table.columns.len() > test.columns.len()
                        && test.columns.iter().all(|column| table.has(&column.name))
                };
                let position = tables.iter().position(wider).ok_or(ShapeError::NoTrain)?;
                tables.remove(position)
            }
            (None, None) => {
                let widest = tables.iter().enumerate().max_by_key(|(position, table)| {
                    (table.columns.len(), table.rows, usize::MAX - position)
                });
                let position = widest.map(|(position, _)| position).ok_or(ShapeError::NoTrain)?;
                tables.remove(position)
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
                let position = tables.iter().position(fits);
                let position =
                    position.ok_or_else(|| ShapeError::NoTest { train: train.path.clone() })?;
                tables.remove(position)
            }
        };
        let others = tables.into_iter().map(|table| table.path).collect();
        Ok(Self { train, test, sample, others })
    }
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_lowercase()
}

/// What is to be predicted: what the sample submission asks for, or what the test rows lack.
pub(super) fn targets(
    train: &Table,
    test: &Table,
    sample: Option<&Table>,
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
    let hinted = |name: &&String| {
        let lower = name.to_lowercase();
        matches!(lower.as_str(), "target" | "label" | "y" | "class" | "outcome" | "response")
    };
    // In a description, names stand between backticks or quotes.
    let told = |name: &&String| {
        let quoted = |mark: char| description.contains(&format!("{mark}{name}{mark}"));
        quoted('`') || quoted('"') || quoted('\'')
    };
    let chosen = match missing.as_slice() {
        [] => train.columns.iter().map(|column| &column.name).find(hinted),
        [only] => Some(only),
        several => several
            .iter()
            .find(hinted)
            .or_else(|| several.iter().rev().find(told))
            .or_else(|| several.last()),
    };
    chosen
        .map(|name| vec![name.clone()])
        .ok_or_else(|| ShapeError::NoTarget { train: train.path.clone(), test: test.path.clone() })
}
