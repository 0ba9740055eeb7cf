//! Further tables, and how their rows belong to those of the training and test tables.
//!
//! A table belongs if a column of it holds the values of a column that training and test rows
//! have: how many of them, and whether they repeat, decides what is done with it. Absent on
//! purpose: tables that belong only to another further table, and tables of words.

use std::collections::HashSet;

use super::Source;
use super::columns::{Use, usage};
use super::table::{Column, Table, number};

/// Fewer keys than this would tell little more than the column that holds them.
const MIN_KEYS: usize = 3;
/// The share of keys that must be found where both columns have the same name.
const SAME_NAME: f64 = 0.3;
/// The same where the names differ, and values alone speak.
const OTHER_NAME: f64 = 0.8;
/// Different numbers that a key of another name must have: small ones agree by accident.
const MIN_NUMBERS: usize = 20;

/// A further table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) source: Source,
    /// The columns of training and test rows that find the rows of the table.
    pub(crate) left: Vec<String>,
    /// The columns of the table that hold the same values.
    pub(crate) right: Vec<String>,
    pub(crate) matches: Matches,
    /// Columns of the table by what they are good for.
    pub(crate) numeric: Vec<String>,
    pub(crate) categorical: Vec<String>,
    pub(crate) dates: Vec<String>,
}

/// How many rows of the table a key finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matches {
    /// One: its columns are taken over.
    One,
    /// Several: they are summed up.
    Several,
}

impl Join {
    /// How the rows of `table` belong to those of `train` and `test`, if they do.
    pub(super) fn find(
        table: &Table,
        train: &Table,
        test: &Table,
        targets: &[String],
    ) -> Option<Self> {
        // What has all the columns of the training table is more of the same, not about it. What is
        // no table, scripts could not read.
        let shared = train.columns.iter().filter(|it| table.has(&it.name)).count();
        let is_more = shared * 5 >= train.columns.len() * 4 && train.columns.len() > 2;
        if is_more || !table.is_even {
            return None;
        }
        let (left, right, matches) = keys(table, train, test, targets)?;
        let mut join = Self {
            source: Source::of(table),
            left,
            right,
            matches,
            numeric: Vec::new(),
            categorical: Vec::new(),
            dates: Vec::new(),
        };
        for column in &table.columns {
            let name = &column.name;
            if join.right.contains(name) || targets.contains(name) || column.decimal.is_some() {
                continue;
            }
            match usage(column) {
                Use::Numeric => join.numeric.push(name.clone()),
                Use::Categorical => join.categorical.push(name.clone()),
                Use::Date => join.dates.push(name.clone()),
                Use::Text | Use::Code | Use::Nothing => {}
            }
        }
        let says_something = matches == Matches::Several
            || !(join.numeric.is_empty() && join.categorical.is_empty() && join.dates.is_empty());
        says_something.then_some(join)
    }
}

fn keys(
    table: &Table,
    train: &Table,
    test: &Table,
    targets: &[String],
) -> Option<(Vec<String>, Vec<String>, Matches)> {
    let usable = |column: &&Column| !targets.contains(&column.name) && !is_fraction(column);
    let left: Vec<&Column> =
        train.columns.iter().filter(usable).filter(|it| test.has(&it.name)).collect();
    let right: Vec<&Column> = table.columns.iter().filter(usable).collect();
    let mut found = Vec::new();
    for right in &right {
        let held: HashSet<String> = right.present().map(key).collect();
        if held.len() < MIN_KEYS {
            continue;
        }
        for left in &left {
            let Some(tested) = test.column(&left.name) else { continue };
            let known: HashSet<String> = left.present().map(key).collect();
            let tested: HashSet<String> = tested.present().map(key).collect();
            let covered = share(&known, &held).min(share(&tested, &held));
            let back = held.iter().filter(|it| known.contains(*it) || tested.contains(*it)).count();
            let back = back as f64 / held.len() as f64;
            // Of a table that was not read to its end, only the other direction is known.
            let covered = if table.complete { covered } else { covered.max(back) };
            let same_name = left.name == right.name;
            let belongs = if same_name {
                covered >= SAME_NAME
            } else if left.is_number() || right.is_number() {
                covered >= OTHER_NAME && back >= 0.5 && held.len() >= MIN_NUMBERS
            } else {
                covered >= OTHER_NAME
            };
            if belongs && known.len() >= MIN_KEYS {
                let rank = (right.is_unique(), same_name, known.len(), (covered * 100.0) as u32);
                found.push((rank, left.name.clone(), right.name.clone()));
            }
        }
    }
    let composite: Vec<String> =
        found.iter().filter(|it| it.0.1).map(|(_, name, _)| name.clone()).collect();
    let (rank, left, right) = found.into_iter().max_by(|a, b| a.0.cmp(&b.0))?;
    if rank.0 {
        return Some((vec![left], vec![right], Matches::One));
    }
    if composite.len() > 1 && are_key_together(table, train, test, &composite) {
        return Some((composite.clone(), composite, Matches::One));
    }
    Some((vec![left], vec![right], Matches::Several))
}

/// Whether several columns together find one row, where each alone finds several.
fn are_key_together(table: &Table, train: &Table, test: &Table, names: &[String]) -> bool {
    let tuples = |table: &Table| -> Vec<String> {
        let columns: Vec<&Column> = names.iter().filter_map(|name| table.column(name)).collect();
        let cell = |column: &Column, row: usize| {
            column.values.get(row).and_then(Option::as_deref).map(key).unwrap_or_default()
        };
        (0..table.rows)
            .map(|row| columns.iter().map(|it| cell(it, row)).collect::<Vec<_>>().join("|"))
            .collect()
    };
    let rows = tuples(table);
    let held: HashSet<String> = rows.iter().cloned().collect();
    let covered = |table: &Table| share(&tuples(table).into_iter().collect(), &held);
    held.len() == rows.len() && covered(train).min(covered(test)) >= SAME_NAME
}

/// The share of `keys` that are among `held`.
fn share(keys: &HashSet<String>, held: &HashSet<String>) -> f64 {
    keys.iter().filter(|it| held.contains(*it)).count() as f64 / keys.len().max(1) as f64
}

/// A key as text, so that `7`, `7.0` and ` 7` are the same.
fn key(value: &str) -> String {
    let value = value.trim();
    value.strip_suffix(".0").unwrap_or(value).to_owned()
}

/// Whether a column measures something: what has fractions names nothing.
fn is_fraction(column: &Column) -> bool {
    column.is_number() && column.present().filter_map(number).any(|it| it.fract() != 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(path: &str, text: &str) -> Table {
        Table::read_from(text.as_bytes(), path).unwrap().unwrap()
    }

    fn lines(header: &str, rows: std::ops::Range<usize>, line: impl Fn(usize) -> String) -> String {
        rows.map(|row| line(row) + "\n").fold(format!("{header}\n"), |text, line| text + &line)
    }

    /// How `text` belongs to rows with a shop, a day, a small number and a measure.
    fn found(text: &str) -> Option<(Vec<String>, Vec<String>, Matches)> {
        let line = |row: usize| {
            format!("{row},s{:02},2020-01-{:02},{},{}.5", row % 30, 1 + row % 20, row % 9, row % 50)
        };
        let header = "id,shop,day,few,measure";
        let train = table(
            "train.csv",
            &lines(&format!("{header},y"), 0..100, |row| format!("{},{}", line(row), row % 2)),
        );
        let test = table("test.csv", &lines(header, 100..160, line));
        let join = Join::find(&table("further.csv", text), &train, &test, &["y".to_owned()])?;
        Some((join.left, join.right, join.matches))
    }

    #[test]
    fn a_key_that_is_unique_finds_one_row_and_one_that_repeats_several() {
        let owned = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let one = lines("shop,area", 0..30, |it| format!("s{it:02},{}", it * 7));
        assert_eq!(found(&one), Some((owned(&["shop"]), owned(&["shop"]), Matches::One)));
        let renamed = one.replacen("shop", "where", 1);
        assert_eq!(found(&renamed), Some((owned(&["shop"]), owned(&["where"]), Matches::One)));
        let several = lines("shop,paid", 0..90, |it| format!("s{:02},{}", it % 30, it * 7 % 50));
        assert_eq!(found(&several), Some((owned(&["shop"]), owned(&["shop"]), Matches::Several)));
        let both = lines("shop,day,rain", 0..600, |it| {
            format!("s{:02},2020-01-{:02},{}", it % 30, 1 + it / 30, it % 13)
        });
        let keys = owned(&["shop", "day"]);
        assert_eq!(found(&both), Some((keys.clone(), keys, Matches::One)));
    }

    #[test]
    fn what_agrees_by_accident_does_not_belong() {
        // Small numbers and measures of the same size, words that never meet, more of the same.
        for text in [
            lines("number,area", 0..15, |it| format!("{it},{}", it * 7)),
            lines("weight,area", 0..60, |it| format!("{it}.5,{}", it * 7)),
            lines("shop,area", 0..30, |it| format!("other{it},{}", it * 7)),
            lines("planet,moons", 0..4, |it| format!("p{it},{it}")),
            lines("shop,area", 0..30, |it| format!("s{it:02},large, or small")),
            lines("id,shop,day,few,measure,y", 300..360, |it| {
                format!("{it},s{:02},2020-01-01,1,2.5,0", it % 30)
            }),
        ] {
            assert_eq!(found(&text), None, "{text}");
        }
    }
}
