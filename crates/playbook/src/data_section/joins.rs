//! The lines of the data section that take in further tables.

use super::{literals, quoted, reading};
use crate::shape::{Join, Matches};

const HELPERS: &str = include_str!("joining.py");
/// Further tables are taken in before the first of these: keys are still as they were read, and
/// no row is gone.
const BEFORE: [&str; 2] = ["train[NUMERIC] = ", "train = train.dropna(subset=TARGETS)"];

/// A data section that also takes in `joins`, if it is one that can.
pub(crate) fn with_joins(section: &str, joins: &[&Join]) -> Option<String> {
    let place = BEFORE.iter().find_map(|it| section.find(it))?;
    let (before, after) = (section.get(..place)?, section.get(place..)?);
    let mut lines = Vec::new();
    if !section.contains("def joined(") {
        lines.push(format!("\n{}\n\n", HELPERS.trim_end()));
    }
    lines.extend(joins.iter().map(|join| taking_in(join)));
    Some(format!("{before}{}\n{after}", lines.join("\n")))
}

fn taking_in(join: &Join) -> String {
    let Join { source, left, right, matches, numeric, categorical, dates } = join;
    let keys: Vec<String> = left.iter().map(|it| format!("`{it}`")).collect();
    let (how, what) = match matches {
        Matches::One => ("looked_up", "one row"),
        Matches::Several => ("summed_up", "several rows"),
    };
    let name = name(&source.path);
    let texts = right.iter().chain(categorical).chain(dates);
    let texts: Vec<String> = texts.map(|it| format!("{}: str", quoted(it))).collect();
    let reading = reading(source, &format!(", dtype={{{}}}", texts.join(", ")));
    let (left, right) = (literals(left), literals(right));
    format!(
        "# {path}: {what} for each {keys}.\n\
         further = {reading}\n\
         made = {how}(further.dropna(subset={right}), {right}, {numbers}, {categories}, {dates})\n\
         train, test = joined(train, {left}, {name}, made), joined(test, {left}, {name}, made)\n\
         for columns, part in zip((NUMERIC, CATEGORICAL, DATES), made):\n    \
         columns.extend({name} + \" \" + column for column in part)\n",
        path = source.path.replace(char::is_control, " "),
        keys = keys.join(" and ").replace(char::is_control, " "),
        numbers = literals(numeric),
        categories = literals(categorical),
        dates = literals(dates),
        name = name,
    )
}

/// What the columns of a table are called after: the name of its file, as a literal.
fn name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    quoted(file.split('.').next().unwrap_or(file))
}
