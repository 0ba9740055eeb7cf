//! The table of faults and outcomes, as `docs/reliability.md` shows it.

use std::fmt::Write as _;

use crate::answers::Answers;
use crate::fault::Fault;
use crate::stand_in::MISHAPS;
use crate::trial::{Plan, Report, Trials, side_by_side};

/// Where the table stands in a document.
const BEGIN: &str = "<!-- faults: begin -->";
const END: &str = "<!-- faults: end -->";

/// A line of the table.
#[derive(Debug, Default)]
struct Row {
    name: String,
    promise: &'static str,
    /// Runs in which it happened.
    runs: usize,
    lives: usize,
    held: usize,
    skipped: Option<&'static str>,
}

/// How often another seed is tried for a run in which the fault came in time.
const TRIES: u64 = 4;

impl Row {
    fn new(name: impl Into<String>, promise: &'static str) -> Self {
        Self { name: name.into(), promise, ..Self::default() }
    }

    fn add(&mut self, report: &Report) {
        self.lives += report.lives;
        self.runs += 1;
        self.held += usize::from(report.problems.is_empty());
    }

    fn line(&self) -> String {
        let Self { name, promise, runs, lives, held, skipped } = self;
        match skipped {
            Some(why) => format!("| {name} | {promise} | skipped: {why} | | |"),
            None => format!("| {name} | {promise} | {runs} | {lives} | {held} |"),
        }
    }
}

/// Makes the plan of a row from a seed.
type Planned<'a> = Box<dyn Fn(u64) -> Plan + Sync + 'a>;

/// Tries every fault, flaw and mishap so many times, and gives the table and what did not hold.
pub fn make(
    trials: &Trials,
    each: u64,
    seed: u64,
    jobs: usize,
    say: impl Fn(&str) + Sync,
) -> anyhow::Result<(String, usize)> {
    let mut rows: Vec<(Row, Planned<'_>)> = Vec::new();
    for fault in Fault::ALL {
        let promise = if fault.keeps_the_result() { "same result" } else { "a valid result" };
        let skipped = fault.hindrance();
        let row = Row { skipped, ..Row::new(fault.name(), promise) };
        rows.push((row, Box::new(move |seed| trials.plan_of(fault, seed))));
    }
    for (kind, mishap) in MISHAPS.into_iter().enumerate() {
        let row = Row::new(format!("CLI: {mishap}, 30 % of calls"), "same result");
        rows.push((row, Box::new(move |seed| trials.plan_of_mishap(kind, seed))));
    }
    for flaw in Answers::all_flaws() {
        let row = Row::new(format!("answer: {flaw}, and a kill"), "as without the kill");
        rows.push((row, Box::new(move |seed| trials.plan_of_flaw(flaw, seed))));
    }
    let planned: Vec<(usize, u64)> = (0..rows.len())
        .filter(|index| rows.get(*index).is_some_and(|(row, _)| row.skipped.is_none()))
        .flat_map(|index| (0..each).map(move |number| (index, seed + number)))
        .collect();
    let reports = side_by_side(jobs, &planned, |(index, seed)| {
        let Some((row, plan)) = rows.get(*index) else { return Ok((*index, Report::default())) };
        let mut report = Report::default();
        for another in 0..TRIES {
            report = trials.run(&plan(seed + 1000 * another))?;
            let seed = seed + 1000 * another;
            say(&format!("{} (seed {seed}): {}", row.name, summary(&report)));
            let happened = !report.befell.is_empty() || report.mishaps > 0;
            if happened || !report.problems.is_empty() {
                break;
            }
        }
        anyhow::Ok((*index, report))
    });
    let mut failures = 0;
    let mut rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
    for report in reports {
        let (index, report) = report?;
        failures += usize::from(!report.problems.is_empty());
        let happened = !report.befell.is_empty() || report.mishaps > 0;
        // What did not happen did not hold either.
        if happened || !report.problems.is_empty() {
            rows.get_mut(index).into_iter().for_each(|row| row.add(&report));
        }
    }
    let mut table =
        "| fault | promised | runs | lives | held |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for row in &rows {
        writeln!(table, "{}", row.line())?;
    }
    Ok((table, failures))
}

/// A report in one line.
pub fn summary(report: &Report) -> String {
    let Report { befell, mishaps, lives, seconds, code, same, problems } = report;
    let mut befell: Vec<String> = befell.iter().map(|it| it.name().to_owned()).collect();
    if *mishaps > 0 {
        befell.push(format!("{mishaps} mishaps"));
    }
    let befell = if befell.is_empty() { "nothing".to_owned() } else { befell.join(", ") };
    let code = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    let verdict = match (problems.is_empty(), same) {
        (true, true) => "same".to_owned(),
        (true, false) => "valid".to_owned(),
        (false, _) => format!("FAILED: {}", problems.join("; ")),
    };
    format!("{befell} · {lives} lives · exit {code} · {seconds:.1} s · {verdict}")
}

/// The document with the table in its place.
pub fn placed(document: &str, table: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let expected = format!("a\n{BEGIN}\nnew\n{END}\nb\n");
        assert_eq!(placed(&document, "new\n"), Some(expected));
        assert_eq!(placed("no marks", "new\n"), None);
    }
}
