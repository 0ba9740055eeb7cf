//! Targets that stand in a table of their own, beside the rows that they belong to.

use std::collections::HashMap;

use super::Source;
use super::table::{Column, Table};

/// The share of training rows that must have an entry.
const COVERED: f64 = 0.9;

/// A table with what is to be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) source: Source,
    /// The column that it shares with the training table.
    pub(crate) key: String,
    /// What it adds to it.
    pub(crate) columns: Vec<String>,
}

/// Finds the targets of a training table that has none, and adds them to it.
///
/// They are in a table that shares a column with the training rows, has one row for nearly each of
/// them and none for the test rows, and knows something that the test rows do not.
pub(super) fn add_labels(
    train: &mut Table,
    test: &Table,
    others: &mut Vec<Table>,
) -> Option<Labels> {
    if train.columns.iter().any(|column| !test.has(&column.name)) {
        return None;
    }
    let (position, key) = others.iter().enumerate().find_map(|(position, table)| {
        let new = table.columns.iter().any(|it| !test.has(&it.name));
        let key = table.columns.iter().find(|it| is_key(it, train, test))?;
        new.then(|| (position, key.name.clone()))
    })?;
    let table = others.remove(position);
    let keys = table.column(&key)?;
    let rows: HashMap<&str, usize> = keys
        .values
        .iter()
        .enumerate()
        .filter_map(|(row, it)| Some((it.as_deref()?, row)))
        .collect();
    let places: Vec<Option<usize>> =
        train.column(&key)?.values.iter().map(|it| rows.get(it.as_deref()?).copied()).collect();
    let new = table.columns.iter().filter(|it| !train.has(&it.name)).map(|column| {
        let value = |place: &Option<usize>| column.values.get((*place)?).cloned().flatten();
        let is_none = |place: &Option<usize>| place.is_some_and(|it| column.nones.contains(&it));
        let rows = places.iter().enumerate();
        let nones = rows.filter(|(_, place)| is_none(place)).map(|(row, _)| row).collect();
        let values = places.iter().map(value).collect();
        Column { values, nones, ..column.clone() }
    });
    let new: Vec<Column> = new.collect();
    let columns = new.iter().map(|it| it.name.clone()).collect();
    train.columns.extend(new);
    Some(Labels { source: Source::of(&table), key, columns })
}

fn is_key(column: &Column, train: &Table, test: &Table) -> bool {
    let (Some(known), Some(tested)) = (train.column(&column.name), test.column(&column.name))
    else {
        return false;
    };
    let held = column.distinct();
    let share = |column: &Column| {
        let found = column.present().filter(|it| held.contains(it)).count();
        found as f64 / column.values.len().max(1) as f64
    };
    column.is_unique() && share(known) >= COVERED && share(tested) <= 1.0 - COVERED
}
