//! The column that names the rows of a submission.

use super::columns::{Use, is_name_of_identifier, usage};
use super::table::{Column, Table, number};

/// Where the identifiers of the submission come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdSource {
    /// The test table has them under the same name.
    Test,
    /// The test table has them under this name.
    Column(String),
    /// Only the sample submission has them, one for each test row.
    Sample,
}

/// What the sample submission begins with, or else what names the rows of the test table: by its
/// own name, or because it does nothing else.
pub(super) fn identifier(
    train: &Table,
    test: &Table,
    sample: Option<&Table>,
    targets: &[String],
) -> (Option<String>, IdSource) {
    if let Some(sample) = sample {
        return sampled(test, sample, targets);
    }
    let unique = || test.columns.iter().filter(|column| column.is_unique());
    let fraction =
        |column: &Column| column.present().filter_map(number).any(|value| value.fract() != 0.0);
    let names_rows = |column: &&Column| match train.column(&column.name) {
        // The training rows need no names, or have some of the same kind.
        None => !fraction(column),
        Some(known) => known.is_unique() && usage(known) == Use::Nothing,
    };
    let named = unique().find(|it| is_name_of_identifier(&it.name));
    let named = named.or_else(|| unique().find(names_rows));
    (named.map(|it| it.name.clone()), IdSource::Test)
}

fn sampled(test: &Table, sample: &Table, targets: &[String]) -> (Option<String>, IdSource) {
    let names = || sample.columns.iter().filter(|it| !targets.contains(&it.name));
    if let Some(column) = names().find(|it| test.has(&it.name)) {
        return (Some(column.name.clone()), IdSource::Test);
    }
    // More columns than one would be predictions under names of their own.
    let Some(first) = names().next().filter(|it| it.is_unique() && sample.columns.len() > 1) else {
        return (None, IdSource::Test);
    };
    let same = |column: &&Column| column.is_unique() && column.values == first.values;
    if let Some(column) = test.columns.iter().find(same) {
        return (Some(first.name.clone()), IdSource::Column(column.name.clone()));
    }
    if sample.rows == test.rows && sample.complete && test.complete {
        return (Some(first.name.clone()), IdSource::Sample);
    }
    (None, IdSource::Test)
}

/// Whether some value of an identifier is no plain whole number.
pub(super) fn is_worded(column: &Column) -> bool {
    column.present().any(|value| value.parse::<i64>().ok().is_none_or(|it| it.to_string() != value))
}
