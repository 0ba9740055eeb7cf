//! `mle-star run --dry-run`

use std::process::ExitCode;

use camino::Utf8Path;
use mle_star::Pipeline;
use mle_star::estimate::{Estimate, Prices, Range};
use mle_star::pipeline::yaml;
use mle_star_search::event::Record;
use mle_star_search::rundir::RunDir;
use mle_star_view::plain_lines;

use crate::failure::Failure;

/// Checks what a run would check, and says what it would take.
pub(super) fn dry_run(pipeline: Pipeline, runs: &Utf8Path) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let header = runtime.block_on(pipeline.check())?;
    let estimate = Estimate::of(&header.config, header.reference_discussions.len());
    let settings = plain_lines(&yaml(&header.config)?);
    let cost = cost(&estimate, &prices(runs));
    super::print(&format!("{}\n\n{}\n{cost}", settings.trim_end(), table(&estimate)))?;
    Ok(ExitCode::SUCCESS)
}

/// What calls cost in the runs in a folder, which need not exist. Damaged runs do not count.
fn prices(runs: &Utf8Path) -> Prices {
    let mut prices = Prices::default();
    let entries = runs.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let journal = RunDir::at(entry.path()).journal();
        if journal.is_file()
            && let Ok(records) = mle_star_journal::read::<Record>(&journal)
        {
            prices.add_run(&records);
        }
    }
    prices
}

fn table(estimate: &Estimate) -> String {
    let row = |name: &str, least: &str, most: &str| format!("{name:20}  {least:>6}  {most:>6}\n");
    let counts = |name: &str, it: Range| row(name, &it.least.to_string(), &it.most.to_string());
    let made = estimate.calls.iter().filter(|(_, range)| range.most > 0);
    std::iter::once(row("role", "least", "most"))
        .chain(made.map(|(role, range)| counts(role, *range)))
        .chain([counts("all calls", estimate.all_calls()), counts("scripts", estimate.scripts)])
        .collect()
}

fn cost(estimate: &Estimate, prices: &Prices) -> String {
    match (estimate.cost(prices), prices.runs()) {
        (None, _) => "cost: unknown, no earlier run here has costs".to_owned(),
        (Some((least, most)), runs) => {
            let runs =
                if runs == 1 { "1 earlier run".to_owned() } else { format!("{runs} earlier runs") };
            format!("cost: ${least:.2} to ${most:.2}, by the mean cost of each role in {runs} here")
        }
    }
}
