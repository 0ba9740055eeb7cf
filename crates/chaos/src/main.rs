//! The `chaos` command: seeds in, what did not hold out.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand};
use mle_star_chaos::fault::Fault;
use mle_star_chaos::handicap;
use mle_star_chaos::place::Programs;
use mle_star_chaos::soak::Soak;
use mle_star_chaos::stand_in::{self, Temper};
use mle_star_chaos::table;
use mle_star_chaos::trial::{Plan, Report, Trials, side_by_side};

/// What a call of a long run may leave in memory, in bytes: its place in the result.
const SOAK_MEMORY_PER_CALL: f64 = 1_000.0;

/// Tries to break whole runs, by seed
#[derive(Debug, Parser)]
#[command(name = "chaos")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kill the orchestrator, supervisors, keepers and the CLI, and resume
    Kill(Seeds),
    /// Everything at once: wrong answers, a CLI that misbehaves, signals, kills, disks
    Mix(Seeds),
    /// One fault, by its name in the table
    One {
        /// The name
        fault: String,
        #[command(flatten)]
        seeds: Seeds,
    },
    /// Every fault by itself, and the table of what came of it
    Table(Table),
    /// A simulated run of many thousand calls: what it takes, and whether that grows
    Soak {
        /// Outer steps
        #[arg(long, default_value_t = 60)]
        outer: u32,
        /// Inner steps of each
        #[arg(long, default_value_t = 40)]
        inner: u32,
    },
    #[command(name = "__claude", hide = true)]
    Claude(StandIn),
    #[command(name = "__unsynced", hide = true)]
    Unsynced {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct Seeds {
    /// How many runs
    #[arg(long, default_value_t = 20)]
    runs: u64,
    /// The first seed; each run takes the next
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No run begins after so many seconds
    #[arg(long, default_value_t = 14_400)]
    seconds: u64,
    /// How many runs side by side
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

#[derive(Debug, Args)]
struct Table {
    /// How many runs of each
    #[arg(long, default_value_t = 3)]
    each: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The document that the table stands in
    #[arg(long)]
    into: Option<Utf8PathBuf>,
    /// How many runs side by side
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

#[derive(Debug, Args)]
struct StandIn {
    ledger: Utf8PathBuf,
    seed: u64,
    share: u64,
    kind: usize,
    thinks: u64,
    #[arg(last = true)]
    arguments: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let command = Cli::parse().command;
    if let Command::Claude(StandIn { ledger, seed, share, kind, thinks, arguments }) = command {
        return Ok(stand_in::play(&ledger, Temper { seed, share, kind, thinks }, &arguments));
    }
    if let Command::Unsynced { program } = command {
        return Err(handicap::go_on_without_sync(&program));
    }
    if let Command::Soak { outer, inner } = command {
        return soak(outer, inner);
    }
    own_mounts();
    let own = std::env::current_exe()?;
    let own = Utf8PathBuf::from_path_buf(own).ok().context("our own path is not UTF-8")?;
    let trials = Trials::new(Programs::find(&own)?)?;
    match command {
        Command::Kill(seeds) => many(&trials, "kill", &seeds, |seed| trials.kill_plan(seed)),
        Command::Mix(seeds) => many(&trials, "mix", &seeds, |seed| trials.mixed_plan(seed)),
        Command::One { fault, seeds } => {
            let fault = Fault::ALL.into_iter().find(|it| it.name() == fault);
            let fault = fault.context("there is no such fault; `chaos table` has their names")?;
            if let Some(why) = fault.hindrance() {
                say(&format!("skipped: {why}"));
                return Ok(ExitCode::SUCCESS);
            }
            let mode = format!("one '{}'", fault.name());
            many(&trials, &mode, &seeds, |seed| trials.plan_of(fault, seed))
        }
        Command::Table(Table { each, seed, into, jobs }) => {
            let (table, failures) = table::make(&trials, each, seed, jobs, say)?;
            match into {
                None => say(&table),
                Some(path) => {
                    let document = fs_err::read_to_string(&path)?;
                    let placed = table::placed(&document, &table);
                    let placed = placed.with_context(|| format!("`{path}` has no place for it"))?;
                    fs_err::write(&path, placed)?;
                }
            }
            Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Claude(_) | Command::Soak { .. } | Command::Unsynced { .. } => {
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn soak(outer: u32, inner: u32) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let every = (u64::from(outer) * u64::from(inner) * 6 / 50).max(1);
    let soak = runtime.block_on(Soak::run(outer, inner, every))?;
    say(&soak.table());
    let calls = soak.samples.last().map_or(0, |it| it.calls);
    say(&format!("{calls} calls in {:.1} s", soak.seconds));
    say(&format!("memory: {:.0} bytes a call", soak.memory_per_call()));
    if let Some((first, second)) = soak.journal_per_call() {
        say(&format!("journal: {first:.0} bytes a call, then {second:.0}"));
    }
    if let Some((least, most)) = soak.files() {
        say(&format!("open files: {least} to {most}"));
    }
    let complaints = soak.complaints(SOAK_MEMORY_PER_CALL);
    complaints.iter().for_each(|complaint| say(complaint));
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Goes on in a namespace where file systems can be mounted that nobody else sees, if that can be.
fn own_mounts() {
    if std::env::var_os("CHAOS_MOUNTS").is_some() {
        return;
    }
    let namespaces: &[&str] =
        if rustix::process::geteuid().is_root() { &["-m"] } else { &["-U", "-r", "-m"] };
    let works = std::process::Command::new("unshare").args(namespaces).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        say("skipped: faults of disks, because nothing can be mounted here");
        return;
    }
    let Ok(own) = std::env::current_exe() else { return };
    let error = std::process::Command::new("unshare")
        .args(namespaces)
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env("CHAOS_MOUNTS", "1")
        .exec();
    say(&format!("skipped: faults of disks ({error})"));
}

fn many(
    trials: &Trials,
    mode: &str,
    seeds: &Seeds,
    plan: impl Fn(u64) -> Plan + Sync,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let all: Vec<u64> = (seeds.seed..seeds.seed + seeds.runs).collect();
    let outcomes = side_by_side(seeds.jobs, &all, |seed| {
        if began.elapsed() > Duration::from_secs(seeds.seconds) {
            return None;
        }
        let plan = plan(*seed);
        let outcome = trials.run(&plan);
        say(&told(mode, &plan, &outcome));
        Some((*seed, outcome))
    });
    let tried: Vec<_> = outcomes.into_iter().flatten().collect();
    let reports: Vec<&Report> = tried.iter().filter_map(|(_, it)| it.as_ref().ok()).collect();
    let is_good = |it: &&(u64, anyhow::Result<Report>)| {
        it.1.as_ref().is_ok_and(|report| report.problems.is_empty())
    };
    let failed: Vec<u64> = tried.iter().filter(|it| !is_good(it)).map(|(seed, _)| *seed).collect();
    let count = |is: &dyn Fn(&Report) -> bool| reports.iter().filter(|it| is(it)).count();
    say(&format!(
        "{} runs of `{mode}`, {} lives, {} faults in {} of them: {} ended the same as in peace, \
         {} failed {failed:?}, {:.0} s",
        tried.len(),
        reports.iter().map(|it| it.lives).sum::<usize>(),
        reports.iter().map(|it| it.befell.len() + it.mishaps).sum::<usize>(),
        count(&|it| !it.befell.is_empty() || it.mishaps > 0),
        count(&|it| it.same),
        failed.len(),
        began.elapsed().as_secs_f64()
    ));
    if tried.len() < all.len() {
        say(&format!("the time was over before {} more", all.len() - tried.len()));
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What came of a plan, and how to see it again if it is not what it should be.
fn told(mode: &str, plan: &Plan, outcome: &anyhow::Result<Report>) -> String {
    let (line, is_good) = match outcome {
        Ok(report) => (table::summary(report), report.problems.is_empty()),
        Err(error) => (format!("FAILED: {error:#}"), false),
    };
    let Plan { seed, agents, answers, temper, .. } = plan;
    let mut lines = vec![format!(
        "seed {seed} · {agents:?} {} % · {} flaws · {line}",
        temper.share,
        answers.flaws.len()
    )];
    if !is_good {
        lines.extend(answers.flaws.iter().map(|flaw| format!("    {flaw}")));
        let again = format!("cargo run -p mle-star-chaos -- {mode} --runs 1 --seed {seed}");
        lines.push(format!("    again: {again}"));
    }
    lines.join("\n")
}

fn say(line: &str) {
    writeln!(anstream::stdout(), "{}", line.trim_end()).ok();
}
