//! Runs a run and shows what happens.

use std::convert::Infallible;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use mle_star::pipeline::complete;
use mle_star::{FinalResult, Progress, RunError};
use mle_star_search::Run;
use mle_star_search::event::Record;
use mle_star_search::models::LogLevel;
use mle_star_search::rundir::RunDir;
use mle_star_search::step::Request;
use mle_star_view::log::is_logged;
use mle_star_view::{Detail, Overview, Style, folded, live, plain, preparing, score, shell_word};
use mle_star_web::{Patience, Server, Source};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::terminal::{Live, say};
use crate::failure::{CUT_SHORT, Failure, INTERRUPTED, TERMINATED};

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

    /// Serve a web page of the run while it lasts, and print its address on standard error
    #[arg(long)]
    ui: bool,
}

impl Output {
    /// Says on standard error what is done before a run begins.
    pub(crate) fn progress(&self) -> Progress {
        if self.quiet { Progress::default() } else { Progress::new(|line| say(&plain(line))) }
    }

    /// The live part of the terminal, where one is wanted and can be had.
    fn live(&self) -> Result<Option<Live>, Failure> {
        // Records on standard output are for programs, or for reading one by one.
        if self.quiet || self.json { Ok(None) } else { Ok(Live::begin()?) }
    }
}

/// What is said after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its outcome.
    Outcome,
    /// Its outcome, and what a newcomer may want to do with it.
    WhatToTryNext,
}

/// Runs what `open` gives to its end, showing what happens on standard error.
pub(crate) fn watch(
    output: &Output,
    ending: Ending,
    open: impl Future<Output = Result<Run, RunError>>,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let mut live = output.live()?;
        // Opening may take minutes, and what it started must not outlive us.
        let run = tokio::select! {
            biased;
            code = signals.raised() => {
                say("interrupted; nothing was begun");
                return Ok(ExitCode::from(code));
            }
            run = open => run?,
            never = show_preparing(&mut live) => match never {},
        };
        let root = run.dir().root().to_owned();
        if !output.quiet {
            say(&format!("run directory: {root}"));
        }
        for error in super::logging::listen(&run) {
            say(&format!("warning: no log: {}", plain(&error.to_string())));
        }
        let _page = output.ui.then(|| serve(&run));
        let mut shown = Shown::new(output, live, &run);
        show_beginning(&mut shown)?;
        let mut records = run.subscribe();
        let mut work = pin!(complete(&run));
        let ended = tokio::select! {
            biased;
            code = signals.next(run.dir()) => Err(code),
            result = &mut work => Ok(result),
            never = show(&mut shown, &mut records) => match never {},
        };
        let ended = match ended {
            Ok(result) => Ok(result),
            Err(code) => {
                say("ending; what is in flight may finish (once more to end now)");
                run.halt();
                tokio::select! {
                    biased;
                    _ = signals.next(run.dir()) => Err(code),
                    result = &mut work => Ok(result),
                    () = landing(&run) => Err(code),
                    never = show(&mut shown, &mut records) => match never {},
                }
            }
        };
        while let Ok(record) = records.try_recv() {
            show_record(&mut shown, &record);
        }
        drop(shown);
        let result = match ended {
            Ok(result) => result?,
            Err(code) => {
                mle_star::look::report_the_end(run.dir());
                let root = shell_word(root.as_str());
                say(&format!("interrupted; go on with: mle-star resume {root}"));
                return Ok(ExitCode::from(code));
            }
        };
        if !output.json {
            conclude(&run, &result);
        }
        if ending == Ending::WhatToTryNext && !output.json && !output.quiet {
            say(&what_to_try_next(run.dir()));
        }
        Ok(match result.phase_status.cut_short {
            Some(_) => ExitCode::from(CUT_SHORT),
            None => ExitCode::SUCCESS,
        })
    })
}

/// Serves the page of a run. It reads what is on disk, in a thread of its own; a page that cannot be
/// served is no reason not to run.
fn serve(run: &Run) -> Option<Server> {
    let source = Source::Run(run.dir().root().to_owned());
    match Server::start(source, 0, Patience::default()) {
        Ok(page) => {
            say(&format!("page: {}", page.address()));
            Some(page)
        }
        Err(error) => {
            say(&format!("warning: there is no page: {error}"));
            None
        }
    }
}

/// Ends when no step is in flight any more, or when scripts had 10 seconds and calls 60.
async fn landing(run: &Run) {
    let began = tokio::time::Instant::now();
    loop {
        let patience = if run.calls_in_flight() > 0 { 60 } else { 10 };
        if run.steps_in_flight() == 0 || began.elapsed() > Duration::from_secs(patience) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The ways in which a person, or the system, asks for an end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Never waited for. A file that may not grow is to be an error of whoever writes it, which can
    /// say what it is about; the signal would end us without a word.
    _file_size: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// The exit code of the next signal.
    async fn raised(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }

    /// The exit code of the next request for an end.
    async fn next(&mut self, dir: &RunDir) -> u8 {
        let asked_from_outside = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if dir.request() == Some(Request::Stop) && dir.set_request(None).is_ok() {
                    return;
                }
            }
        };
        tokio::select! {
            code = self.raised() => code,
            () = asked_from_outside => INTERRUPTED,
        }
    }
}

/// How a run is shown.
struct Shown<'a> {
    output: &'a Output,
    dir: &'a RunDir,
    /// What is less than this is not worth a line.
    least: LogLevel,
    /// Whether a person watches. A file wants to know when each line was written.
    is_watched: bool,
    /// What stands below the lines, and the run as it is shown there.
    live: Option<Live>,
    overview: Overview,
}

impl<'a> Shown<'a> {
    fn new(output: &'a Output, live: Option<Live>, run: &'a Run) -> Self {
        Self {
            output,
            dir: run.dir(),
            least: run.header().config.log_level,
            is_watched: std::io::stderr().is_terminal(),
            live,
            overview: Overview::default(),
        }
    }

    fn note(&mut self, record: &Record) {
        if let Some(live) = &mut self.live {
            self.overview.apply(record);
            live.changed();
        }
    }

    /// Ends when the live part is to be drawn, which is never where there is none.
    async fn due(&mut self) {
        match &mut self.live {
            Some(live) => live.due().await,
            None => std::future::pending().await,
        }
    }

    fn draw(&mut self) {
        if let Some(terminal) = &mut self.live {
            let window = terminal.window();
            terminal.draw(live(&self.overview, Timestamp::now(), window));
        }
    }
}

/// Shows for how long a run has been made ready, for ever.
async fn show_preparing(live: &mut Option<Live>) -> Infallible {
    let Some(live) = live else { return std::future::pending().await };
    let began = tokio::time::Instant::now();
    loop {
        live.due().await;
        let window = live.window();
        live.draw(preparing(began.elapsed().as_secs_f64(), window));
    }
}

/// Shows what is on record before the run goes on: as JSON all of it, else what the run is about.
fn show_beginning(shown: &mut Shown<'_>) -> Result<(), RunError> {
    let records = mle_star::look::read(shown.dir)?;
    let count = if shown.output.json { records.len() } else { 1 };
    records.iter().take(count).for_each(|record| show_line(shown, record));
    records.iter().for_each(|record| shown.note(record));
    Ok(())
}

/// Shows records as they come, for ever.
async fn show(shown: &mut Shown<'_>, records: &mut Receiver<Record>) -> Infallible {
    loop {
        tokio::select! {
            received = records.recv() => match received {
                Ok(record) => show_record(shown, &record),
                Err(RecvError::Lagged(count)) => catch_up(shown, records, count),
                Err(RecvError::Closed) => std::future::pending().await,
            },
            () = shown.due() => shown.draw(),
        }
    }
}

/// Goes on after `count` records were missed, which are still on disk.
fn catch_up(shown: &mut Shown<'_>, records: &mut Receiver<Record>, count: u64) {
    say(&format!("({count} records not shown)"));
    while let Ok(record) = records.try_recv() {
        show_line(shown, &record);
    }
    if shown.live.is_some()
        && let Ok(records) = mle_star::look::read(shown.dir)
    {
        shown.overview = Overview::of(&records);
    }
}

fn show_record(shown: &mut Shown<'_>, record: &Record) {
    show_line(shown, record);
    shown.note(record);
}

fn show_line(shown: &Shown<'_>, record: &Record) {
    let output = shown.output;
    if output.json {
        if let Ok(text) = serde_json::to_string(record) {
            let text = mle_star_view::plain_json(&text);
            // A reader that went away must not end the run.
            writeln!(anstream::stdout(), "{text}").ok();
        }
        return;
    }
    let level = mle_star_view::level(record);
    if output.quiet || !is_logged(level, shown.least) {
        return;
    }
    let Some(line) = mle_star_view::line(record, detail(output)) else { return };
    match (&shown.live, shown.is_watched) {
        (Some(live), _) => {
            let window = live.window();
            say(&window.colour.paint(style(level, &line), &folded(&line, window.columns)));
        }
        (None, true) => say(&line),
        (None, false) => say(&format!("{:.0} {} mle_star: {line}", record.at(), name(level))),
    }
}

/// How a line stands out from others.
fn style(level: LogLevel, line: &str) -> Style {
    match level {
        LogLevel::Error => Style::Bad,
        LogLevel::Warning => Style::Warning,
        LogLevel::Info | LogLevel::Debug if line.starts_with("===") => Style::Strong,
        LogLevel::Info | LogLevel::Debug => Style::Plain,
    }
}

fn name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "DEBUG",
        LogLevel::Info => "INFO",
        LogLevel::Warning => "WARNING",
        LogLevel::Error => "ERROR",
    }
}

fn detail(output: &Output) -> Detail {
    if output.verbose { Detail::Steps } else { Detail::Events }
}

fn conclude(run: &Run, result: &FinalResult) {
    let notes = result.phase_status.notes.iter();
    let mut lines: Vec<String> = notes.map(|note| format!("note: {}", plain(note))).collect();
    if let Some(why) = &result.phase_status.cut_short {
        lines.push(format!("ended early: {}", plain(why)));
    }
    lines.push(format!("scores: {}", phases(result)));
    let score = result.final_solution.score.map_or_else(|| "none".to_owned(), score);
    lines.push(format!("validation score: {score}"));
    lines.push(match result.submission_path.as_str() {
        "" => "submission: none could be made".to_owned(),
        path => format!("submission: {path}"),
    });
    lines.push(format!("result: {}", run.dir().result()));
    let report = run.dir().report("html");
    if report.is_file() {
        lines.push(format!("report: {report}"));
    }
    writeln!(anstream::stdout(), "{}", lines.join("\n")).ok();
}

/// What a newcomer may want to do after a first run.
fn what_to_try_next(dir: &RunDir) -> String {
    let run = shell_word(dir.root().as_str());
    format!(
        "\nWhat to try next:
  mle-star show {run}
      what happened, step by step
  mle-star ui {run}
      the same as a page, with every script, prompt and reply
  {}
      the report, one file to read or pass on
  mle-star run <folder> --agents playbook
      the same on data of yours",
        dir.report("html")
    )
}

/// The best score after each phase.
fn phases(result: &FinalResult) -> String {
    let scores = result.phase_scores().into_iter();
    let known = scores.filter_map(|(name, it)| Some(format!("{name} {}", score(it?))));
    known.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_is_told_commands_that_can_be_pasted() {
        let told = what_to_try_next(&RunDir::at("/home/me/my runs/demo-1"));
        insta::assert_snapshot!(told.trim_start(), @"
        What to try next:
          mle-star show '/home/me/my runs/demo-1'
              what happened, step by step
          mle-star ui '/home/me/my runs/demo-1'
              the same as a page, with every script, prompt and reply
          /home/me/my runs/demo-1/report.html
              the report, one file to read or pass on
          mle-star run <folder> --agents playbook
              the same on data of yours
        ");
    }
}
