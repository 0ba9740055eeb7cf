//! Runs a run and shows what happens.

use std::convert::Infallible;
use std::future::Future;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use mle_star::pipeline::complete;
use mle_star::{FinalResult, RunError};
use mle_star_search::Run;
use mle_star_search::event::Record;
use mle_star_view::Detail;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::failure::{Failure, INTERRUPTED};

/// How a run is shown.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print every record of the journal as a line of JSON on standard output
    #[arg(long)]
    json: bool,

    /// Print nothing but the outcome
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,

    /// Print every step
    #[arg(long, short)]
    verbose: bool,
}

/// Runs what `open` gives to its end, showing what happens on standard error.
pub(crate) fn watch(
    output: &Output,
    open: impl Future<Output = Result<Run, RunError>>,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let run = open.await?;
        let root = run.dir().root().to_owned();
        if !output.quiet {
            say(&format!("run directory: {root}"));
        }
        if run.header().config.max_budget_usd.is_some() {
            say("warning: max_budget_usd is recorded, but this version does not enforce it yet");
        }
        show_beginning(output, &run)?;
        let mut records = run.subscribe();
        let result = tokio::select! {
            biased;
            () = interrupted() => {
                let root = mle_star_view::shell_word(root.as_str());
                say(&format!("interrupted; go on with: mle-star resume {root}"));
                return Ok(ExitCode::from(INTERRUPTED));
            }
            result = complete(&run) => result,
            never = show(output, &mut records) => match never {},
        };
        while let Ok(record) = records.try_recv() {
            show_record(output, &record);
        }
        let result = result?;
        if !output.json {
            conclude(&run, &result);
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Shows what is on record before the run goes on: as JSON all of it, else what the run is about.
fn show_beginning(output: &Output, run: &Run) -> Result<(), RunError> {
    let dir = run.dir();
    let records: Vec<Record> = mle_star_journal::read(&dir.journal())
        .map_err(|error| RunError::Open { run: dir.root().to_owned(), source: error.into() })?;
    let shown = if output.json { records.len() } else { 1 };
    records.iter().take(shown).for_each(|record| show_record(output, record));
    Ok(())
}

/// Shows records as they come, for ever.
async fn show(output: &Output, records: &mut Receiver<Record>) -> Infallible {
    loop {
        match records.recv().await {
            Ok(record) => show_record(output, &record),
            Err(RecvError::Lagged(count)) => say(&format!("({count} records not shown)")),
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn show_record(output: &Output, record: &Record) {
    if output.json {
        if let Ok(text) = serde_json::to_string(record) {
            let text = mle_star_view::plain_json(&text);
            // A reader that went away must not end the run.
            writeln!(anstream::stdout(), "{text}").ok();
        }
    } else if !output.quiet
        && let Some(line) = mle_star_view::line(record, detail(output))
    {
        say(&line);
    }
}

fn detail(output: &Output) -> Detail {
    if output.verbose { Detail::Steps } else { Detail::Events }
}

fn conclude(run: &Run, result: &FinalResult) {
    let notes = result.phase_status.notes.iter();
    let mut lines: Vec<String> =
        notes.map(|note| format!("note: {}", mle_star_view::plain(note))).collect();
    let score = result.final_solution.score.map_or_else(|| "none".to_owned(), |it| it.to_string());
    lines.push(format!("validation score: {score}"));
    lines.push(match result.submission_path.as_str() {
        "" => "submission: none could be made".to_owned(),
        path => format!("submission: {path}"),
    });
    lines.push(format!("result: {}", run.dir().result()));
    writeln!(anstream::stdout(), "{}", lines.join("\n")).ok();
}

fn say(line: &str) {
    writeln!(anstream::stderr(), "{line}").ok(); // standard error may be closed
}

/// Ends when the person, or the system, asks for an end.
async fn interrupted() {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => if interrupt.is_err() { std::future::pending().await },
        () = terminate => {}
    }
}
