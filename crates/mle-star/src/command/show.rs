//! `mle-star show`

use std::process::ExitCode;

use anyhow::Context;
use camino::Utf8PathBuf;
use clap::Args;
use mle_star::RunError;
use mle_star::look::{look_at, read};
use mle_star_exec::limits::size;
use mle_star_exec::{Captured, Ended};
use mle_star_search::event::{Output, Record};
use mle_star_search::rundir::RunDir;
use mle_star_view::{Detail, Overview, Work, plain_json, plain_lines, score};

use crate::failure::Failure;

/// Look into a run: where it is, what happened, or what one step gave
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The run directory
    run: Utf8PathBuf,

    /// One step, such as phase2/path-0/outer-1/inner-2/coder
    #[arg(long, value_name = "STEP")]
    step: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  mle-star show runs/titanic-1
  mle-star show runs/titanic-1 --step phase2/path-0/outer-1/inner-2/coder
  mle-star show runs/titanic-1 --json | jq .best";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dir = RunDir::at(&arguments.run);
    if !dir.journal().is_file() {
        return Err(RunError::NoRun(arguments.run.clone()).into());
    }
    let work = Work::on(&dir);
    let records = read(&dir)?;
    let text = match &arguments.step {
        Some(step) => show_step(&records, step, arguments.json)?,
        None if arguments.json => {
            let (overview, _) = look_at(&records, work);
            mle_star::look::json(&overview).context("cannot show the run")?
        }
        None => show_run(&records, &dir, work),
    };
    super::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn show_run(records: &[Record], dir: &RunDir, work: Work) -> String {
    let open: Vec<String> =
        Overview::of(records).open_steps().iter().map(|step| step.key.clone()).collect();
    let (overview, state) = look_at(records, work);
    let glance = overview.glance();
    let mut lines: Vec<String> =
        records.iter().filter_map(|it| mle_star_view::line(it, Detail::Steps)).collect();
    let best = glance.best.map_or_else(|| "-".to_owned(), score);
    lines.push(String::new());
    lines.push(format!(
        "{} · best {best} · {} agent calls · {} scripts · {} warnings",
        state, glance.agent_calls, glance.scripts, glance.warnings,
    ));
    lines.extend(open.iter().map(|step| format!("not finished: {step}")));
    if dir.submission().is_file() {
        lines.push(format!("submission: {}", dir.submission()));
    }
    lines.join("\n")
}

fn show_step(records: &[Record], step: &str, json: bool) -> Result<String, Failure> {
    let steps =
        records.iter().filter_map(|it| it.finished().map(|(key, output)| (it, key, output)));
    let found = steps.clone().rev().find(|(_, key, _)| key.as_str() == step);
    let Some((record, _, output)) = found else {
        let known = steps.map(|(_, key, _)| key.as_str());
        let hint = match mle_star_search::models::nearest(step, known) {
            Some(near) => format!("did you mean {near}?"),
            None => "`mle-star show <run>` lists the steps".to_owned(),
        };
        return Err(Failure::usage(anyhow::anyhow!("the run has no finished step `{step}`"), hint));
    };
    if json {
        let json = serde_json::to_string_pretty(record).context("cannot show the step")?;
        return Ok(plain_json(&json));
    }
    Ok(match output {
        Output::Asked { reply, no_answer: None } => plain_lines(&reply.text),
        Output::Asked { no_answer: Some(reason), .. } => {
            format!("no answer: {}", plain_lines(reason))
        }
        Output::Ran { outcome, script, .. } => format!(
            "script: solutions/{script}\nended {} after {:.1} s; sandbox: {}; memory: {}\n\n{}\n{}",
            in_words(outcome.ended),
            outcome.duration_seconds,
            outcome.tier,
            size(outcome.usage.memory_bytes),
            shown(&outcome.stdout),
            shown(&outcome.stderr),
        ),
        Output::NotDone { lack, .. } => format!("not done: {}", plain_lines(&lack.to_string())),
        Output::Totals { duration_seconds, cost_usd } => {
            let cost = cost_usd.map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.2}"));
            format!("running time: {duration_seconds:.1} s\ncost: {cost}")
        }
    })
}

/// What a stream carried, and where there is more of it.
fn shown(stream: &Captured) -> String {
    let more = match &stream.file {
        Some(file) if stream.truncated => format!("\n(more of it: {})", plain_lines(file.as_str())),
        Some(_) | None => String::new(),
    };
    format!("{}{more}", plain_lines(&stream.text))
}

fn in_words(ended: Ended) -> String {
    match ended {
        Ended::Exited { code } => format!("with exit code {code}"),
        Ended::Signaled { signal } => format!("by signal {signal}"),
        Ended::TimedOut { after_seconds } => format!("at its limit of {after_seconds} s"),
        Ended::Exceeded { resource, used, limit } => {
            format!("because it {}", resource.exceeded(used, limit))
        }
    }
}
