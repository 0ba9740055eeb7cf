//! The table of faults and outcomes, as `docs/reliability.md` shows it.

use std::fmt::Write as _;

use crate::answers::Answers;
use crate::fault::{self, Fault};
use crate::stand_in::MISHAPS;
use crate::trial::{Report, Trials};

/// Where the table stands in a document.
const BEGIN: &str = "<!-- faults: begin -->";
const END: &str = "<!-- faults: end -->";

/// A line of the table.
#[derive(Debug, Default)]
struct Row {
    name: String,
    promise: &'static str,
    runs: usize,
    lives: usize,
    held: usize,
    skipped: bool,
}

impl Row {
    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.lives += report.lives;
        self.held += usize::from(report.problems.is_empty());
    }

    fn line(&self) -> String {
        let Self { name, promise, runs, lives, held, skipped } = self;
        match skipped {
            true => format!("| {name} | {promise} | skipped: nothing can be mounted here | | |"),
            false => format!("| {name} | {promise} | {runs} | {lives} | {held} |"),
        }
    }
}

/// Tries every fault, flaw and mishap so many times, and gives the table and what did not hold.
pub fn make(
    trials: &Trials,
    each: u64,
    seed: u64,
    mut say: impl FnMut(&str),
) -> anyhow::Result<(String, usize)> {
    let mut rows = Vec::new();
    let mut failures = 0;
    let mut run = |row: &mut Row, plan: &crate::trial::Plan| {
        let report = trials.run(plan)?;
        failures += usize::from(!report.problems.is_empty());
        say(&format!("{} (seed {}): {}", row.name, plan.seed, summary(&report)));
        row.add(&report);
        anyhow::Ok(())
    };
    for fault in Fault::ALL {
        let promise = if fault.keeps_the_result() { "same result" } else { "a valid result" };
        let mut row = Row { name: fault.name().to_owned(), promise, ..Row::default() };
        row.skipped = fault.needs_mount() && !fault::can_mount();
        let times = if row.skipped { 0 } else { each };
        for number in 0..times {
            run(&mut row, &trials.plan_of(fault, seed + number))?;
        }
        rows.push(row);
    }
    for (kind, mishap) in MISHAPS.into_iter().enumerate() {
        let name = format!("CLI: {mishap}, 30 % of calls");
        let mut row = Row { name, promise: "same result", ..Row::default() };
        for number in 0..each {
            run(&mut row, &trials.plan_of_mishap(kind, seed + number))?;
        }
        rows.push(row);
    }
    for flaw in Answers::all_flaws() {
        let name = format!("answer: {flaw}, and a kill");
        let mut row = Row { name, promise: "as without the kill", ..Row::default() };
        for number in 0..each {
            run(&mut row, &trials.plan_of_flaw(flaw, seed + number))?;
        }
        rows.push(row);
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
    let Report { befell, lives, seconds, code, same, problems } = report;
    let befell: Vec<&str> = befell.iter().map(|it| it.name()).collect();
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
