//! One trial: a run in peace, the same run under faults, and a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fs_err as fs;

use crate::answers::{Answers, is_whole_submission};
use crate::check::{self, Traits};
use crate::fault::{self, Aftermath, Fault};
use crate::place::{Agents, Ended, GRACE, Life, OPENING, Place, Programs};
use crate::processes;
use crate::random::Random;
use crate::stand_in::{ANY, CALM, Temper};

/// How many milliseconds a stand-in thinks that is to be hit.
const THINKS: u64 = 400;
/// The seconds of a run that is to be cut short, or that has something in it that takes all it gets.
const SHORT: u32 = 25;

/// What is to happen in a trial.
#[derive(Debug, Clone)]
pub struct Plan {
    /// From which all of it follows.
    pub seed: u64,
    /// Through what the agents answer.
    pub agents: Agents,
    /// What they answer.
    pub answers: Answers,
    /// How the stand-in behaves.
    pub temper: Temper,
    /// What befalls the run, one after the other.
    pub faults: Vec<Fault>,
    /// A time limit that may cut it short, in seconds.
    pub time_limit: Option<u32>,
}

/// What came of a trial.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Faults that came in time.
    pub befell: Vec<Fault>,
    /// How often the stand-in misbehaved.
    pub mishaps: usize,
    /// How often the product was started.
    pub lives: usize,
    /// How long it took.
    pub seconds: f64,
    /// The exit code of the last life.
    pub code: Option<i32>,
    /// Whether the end was compared with that in peace, and was the same.
    pub same: bool,
    /// What did not hold.
    pub problems: Vec<String>,
}

/// Trials with the same programs; what they have in common is done once.
#[derive(Debug)]
pub struct Trials {
    programs: Programs,
    /// The steps that are asked of agents in a run with good answers.
    pub steps: Vec<String>,
    good: [Traits; 2],
}

impl Trials {
    /// Makes ready: runs the task once in peace with each kind of agents.
    pub fn new(programs: Programs) -> anyhow::Result<Self> {
        let scripted = peace(&programs, Agents::Scripted, &Answers::good(), None)?;
        let over_cli = peace(&programs, Agents::OverCli, &Answers::good(), None)?;
        let steps = scripted.calls.clone();
        Ok(Self { programs, steps, good: [scripted, over_cli] })
    }

    /// A plan of kills alone.
    pub fn kill_plan(&self, seed: u64) -> Plan {
        let mut random = Random::of(seed);
        let agents = if random.percent(50) { Agents::OverCli } else { Agents::Scripted };
        let choices = match agents {
            Agents::OverCli => Fault::KILLS.as_slice(),
            Agents::Scripted => Fault::KILLS.get(..3).unwrap_or_default(),
        };
        let count = random.below(5);
        // The first is the one that matters most, and comes early enough to come at all.
        let others = (0..count).filter_map(|_| random.pick(choices).copied());
        let faults: Vec<Fault> = std::iter::once(Fault::KillOrchestrator).chain(others).collect();
        let temper = Temper { thinks: thinks_for(&faults), ..CALM };
        Plan { seed, agents, answers: Answers::good(), temper, faults, time_limit: None }
    }

    /// A plan with a bit of everything.
    pub fn mixed_plan(&self, seed: u64) -> Plan {
        let mut random = Random::of(seed ^ 0xA5A5_0000);
        let over_cli = random.percent(60);
        let share = random.below(31);
        let answers = Answers::flawed(&self.steps, share, &mut random);
        let agents = answers.agents(over_cli);
        let share = random.below(31);
        let possible = |fault: &Fault| {
            (agents == Agents::OverCli || !fault.is_of_the_cli()) && fault.hindrance().is_none()
        };
        let choices: Vec<Fault> = Fault::ALL.into_iter().filter(possible).collect();
        let count = 1 + random.below(3);
        let mut faults: Vec<Fault> =
            (0..count).filter_map(|_| random.pick(&choices).copied()).collect();
        if faults.iter().any(|it| it.needs_mount()) {
            faults.retain(|it| !it.needs_nobody()); // who may not write to what is mounted
        }
        let temper = Temper { seed, share, kind: ANY, thinks: thinks_for(&faults) };
        let is_short = random.percent(10) || answers.need_a_short_run();
        let time_limit = is_short.then_some(SHORT);
        Plan { seed, agents, answers, temper, faults, time_limit }
    }

    /// A plan of one fault.
    pub fn plan_of(&self, fault: Fault, seed: u64) -> Plan {
        let agents = if fault.is_of_the_cli() { Agents::OverCli } else { Agents::Scripted };
        let faults = vec![fault];
        let temper = Temper { thinks: thinks_for(&faults), ..CALM };
        Plan { seed, agents, answers: Answers::good(), temper, faults, time_limit: None }
    }

    /// A plan of one flaw of the answers.
    pub fn plan_of_flaw(&self, flaw: &str, seed: u64) -> Plan {
        let answers = Answers::with_flaw(flaw, &self.steps, &mut Random::of(seed));
        let faults = vec![Fault::KillOrchestrator];
        let agents = answers.agents(true);
        Plan { seed, agents, answers, temper: CALM, faults, time_limit: None }
    }

    /// A plan of one mishap of the CLI, in three of ten calls.
    pub fn plan_of_mishap(&self, kind: usize, seed: u64) -> Plan {
        let temper = Temper { seed, share: 30, kind, thinks: 0 };
        let (agents, answers) = (Agents::OverCli, Answers::good());
        Plan { seed, agents, answers, temper, faults: Vec::new(), time_limit: None }
    }

    /// Carries out a plan. What goes wrong with the product is in the report; an error is ours.
    pub fn run(&self, plan: &Plan) -> anyhow::Result<Report> {
        let began = Instant::now();
        let peaceful = match (plan.answers.flaws.is_empty(), plan.agents) {
            (true, Agents::Scripted) => self.good[0].clone(),
            (true, Agents::OverCli) => self.good[1].clone(),
            (false, agents) => {
                let limit = plan.time_limit.filter(|_| plan.answers.need_a_short_run());
                peace(&self.programs, agents, &plan.answers, limit)?
            }
        };
        let mut place = Place::new(&self.programs, plan.agents, &plan.answers, plan.temper)?;
        if plan.faults.iter().any(|it| it.needs_nobody()) {
            place.drop_privileges()?;
        }
        if let Some(limit) = plan.time_limit {
            place.time_limit_seconds = limit;
        }
        let runs = place.root().join("runs");
        let mounts = plan.faults.iter().any(|it| it.needs_mount());
        if mounts {
            fault::mount_small(&runs)?;
        }
        let mut report = Report::default();
        let seen = Mutex::new(Seen::default());
        let is_over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| watch(&place, &is_over, &seen));
            let ended = endure(&place, plan, &peaceful, &mut report);
            is_over.store(true, Ordering::Relaxed);
            ended
        });
        match ended {
            Ok(ended) => {
                report.code = ended.code;
                let keeps = report.befell.iter().all(|it| it.keeps_the_result())
                    && plan.time_limit.is_none();
                let may_fail = plan.time_limit.is_some();
                let problems = check::end(&place, &ended, &peaceful, keeps, may_fail);
                report.problems.extend(problems);
                report.same = keeps && report.problems.is_empty();
            }
            Err(error) => report.problems.push(format!("{error:#}")),
        }
        let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.problems.extend(seen.torn);
        report.problems.extend(rerun(&seen.supervisors, &report.befell));
        report.mishaps = place.ledger().lines().filter(|it| it.starts_with("mishap")).count();
        report.seconds = began.elapsed().as_secs_f64();
        if let (false, Some(kept)) = (report.problems.is_empty(), std::env::var_os("CHAOS_KEEP")) {
            std::process::Command::new("cp").arg("-a").arg(place.root()).arg(kept).status().ok();
        }
        if mounts {
            fault::unmount(&runs);
        }
        Ok(report)
    }
}

/// Lets the faults of a plan befall a run, resumes it after each, and waits for its end.
fn endure(
    place: &Place,
    plan: &Plan,
    peaceful: &Traits,
    report: &mut Report,
) -> anyhow::Result<Ended> {
    let began = Instant::now();
    let mut random = Random::of(plan.seed ^ 0x0F0F);
    let mut life = place.live()?;
    report.lives = 1;
    for fault in &plan.faults {
        wait_for_a_moment(place, &mut life, peaceful, &mut random)?;
        let name = fault.name();
        life = match fault.befall(place, life, &mut random).context(name)? {
            Aftermath::TooLate(life) => life,
            Aftermath::Alive(life) => {
                report.befell.push(*fault);
                life
            }
            Aftermath::Down => {
                report.befell.push(*fault);
                report.lives += 1;
                std::thread::sleep(Duration::from_millis(random.below(200)));
                place.live()?
            }
        };
    }
    let mut ended = life.finish(place.patience())?;
    if let Some(limit) = plan.time_limit {
        let lives = u32::try_from(report.lives).unwrap_or(1);
        let most = Duration::from_secs(limit.into()) + GRACE + OPENING * lives;
        let took = began.elapsed();
        anyhow::ensure!(took < most, "with {limit} s it took {took:?} in {lives} lives");
    }
    // What befell it before it had begun anything is an error without a loss.
    if place.run().is_none() && !report.befell.is_empty() {
        report.lives += 1;
        ended = place.live()?.finish(place.patience())?;
    }
    // A submission that vanished under our hands may stop the run; there is nothing to mend.
    let stopped = ended.code == Some(1) && peaceful.code != Some(1);
    if stopped && report.befell.contains(&Fault::DeleteWorkspaces) {
        report.lives += 1;
        ended = place.live()?.finish(place.patience())?;
    }
    Ok(ended)
}

/// Waits until the run has come so far, or for a while.
fn wait_for_a_moment(
    place: &Place,
    life: &mut Life,
    peaceful: &Traits,
    random: &mut Random,
) -> anyhow::Result<()> {
    if random.percent(20) {
        let pause = Duration::from_millis(random.below(800));
        life.wait_until(pause, || false)?;
        return Ok(());
    }
    let now = place.journal_bytes();
    let end = peaceful.journal_bytes * 19 / 20; // else it would often come too late
    let goal = now + random.below(end.saturating_sub(now).max(1));
    life.wait_until(place.patience(), || place.journal_bytes() > goal)?;
    let pause = Duration::from_millis(random.below(60));
    life.wait_until(pause, || false)?;
    Ok(())
}

/// What was seen while a run went on.
#[derive(Debug, Default)]
struct Seen {
    /// A submission that was not whole.
    torn: Option<String>,
    /// The supervisors of each job.
    supervisors: BTreeMap<String, BTreeSet<i32>>,
}

/// Looks again and again: whenever there is a submission it must be whole, and whoever supervises a
/// script is counted.
fn watch(place: &Place, is_over: &AtomicBool, seen: &Mutex<Seen>) {
    while !is_over.load(Ordering::Relaxed) {
        let submission =
            place.run().and_then(|run| fs::read_to_string(run.join("final/submission.csv")).ok());
        let torn = submission.filter(|text| !is_whole_submission(text));
        let supervisors = processes::supervisors(place.root());
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = torn {
            seen.torn = Some(format!("a submission of {} bytes was seen", text.len()));
        }
        for (pid, job) in supervisors {
            seen.supervisors.entry(job).or_default().insert(pid);
        }
        drop(seen);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Scripts that ran more often than what befell the run explains.
fn rerun(supervisors: &BTreeMap<String, BTreeSet<i32>>, befell: &[Fault]) -> Vec<String> {
    // One that is killed leaves its like inside of the sandbox, for an instant and without a parent.
    let most = 1 + 2 * befell.iter().filter(|it| it.may_stop_scripts()).count();
    let often = supervisors.iter().filter(|(_, pids)| pids.len() > most);
    often.map(|(job, pids)| format!("`{job}` was run {} times", pids.len())).collect()
}

/// How many milliseconds a stand-in is to think, so that these can befall it.
fn thinks_for(faults: &[Fault]) -> u64 {
    if faults.iter().any(|it| it.is_of_the_cli()) { THINKS } else { 0 }
}

/// Does `work` on all items, so many at a time, and gives what came of them in their order.
pub fn side_by_side<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(index, result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// A run in peace.
fn peace(
    programs: &Programs,
    agents: Agents,
    answers: &Answers,
    time_limit: Option<u32>,
) -> anyhow::Result<Traits> {
    let mut place = Place::new(programs, agents, answers, CALM)?;
    if let Some(limit) = time_limit {
        place.time_limit_seconds = limit;
    }
    let ended = place.live()?.finish(place.patience())?;
    let traits = check::traits(&place, &ended).with_context(|| {
        let flaws = answers.flaws.join(", ");
        format!("a run in peace ended with {:?} ({flaws}): {}", ended.code, ended.said)
    })?;
    let problems = check::end(&place, &ended, &traits, true, false);
    if !problems.is_empty() {
        let kept = place.root().join("problems");
        fs::write(kept, problems.join("\n"))?;
        anyhow::bail!(
            "a run in peace is not as it should be ({}): {}",
            answers.flaws.join(", "),
            problems.join("; ")
        );
    }
    Ok(traits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_side_by_side_comes_back_in_order() {
        let items: Vec<u64> = (0..50).collect();
        let doubled: Vec<u64> = items.iter().map(|it| 2 * it).collect();
        assert_eq!(side_by_side(4, &items, |it| 2 * it), doubled);
    }

    #[test]
    fn a_script_that_ran_twice_is_told_unless_what_befell_explains_it() {
        let seen = [("a".to_owned(), [7, 8].into()), ("b".to_owned(), [9].into())].into();
        assert_eq!(rerun(&seen, &[Fault::KillOrchestrator]), ["`a` was run 2 times"]);
        assert_eq!(rerun(&seen, &[Fault::KillSupervisor]), [""; 0]);
    }
}
