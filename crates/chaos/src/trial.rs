//! One trial: a run in peace, the same run under faults, and a comparison.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fs_err as fs;

use crate::answers::{Answers, is_whole_submission};
use crate::check::{self, Traits};
use crate::fault::{self, Aftermath, Fault, PATIENCE};
use crate::place::{Agents, Ended, Life, Place, Programs};
use crate::random::Random;
use crate::stand_in::{ANY, Temper};

/// A stand-in that does what it should.
const CALM: Temper = Temper { seed: 0, share: 0, kind: ANY };

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
}

/// What came of a trial.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Faults that came in time.
    pub befell: Vec<Fault>,
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
        let scripted = peace(&programs, Agents::Scripted, &Answers::good())?;
        let over_cli = peace(&programs, Agents::OverCli, &Answers::good())?;
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
        let count = 1 + random.below(5);
        let faults = (0..count).filter_map(|_| random.pick(choices).copied()).collect();
        Plan { seed, agents, answers: Answers::good(), temper: CALM, faults }
    }

    /// A plan with a bit of everything.
    pub fn mixed_plan(&self, seed: u64) -> Plan {
        let mut random = Random::of(seed ^ 0xA5A5_0000);
        let agents = if random.percent(60) { Agents::OverCli } else { Agents::Scripted };
        let share = random.below(31);
        let answers = Answers::flawed(&self.steps, share, &mut random);
        let share = random.below(31);
        let temper = Temper { seed, share, kind: ANY };
        let possible = |fault: &Fault| {
            let of_cli = [Fault::KillKeeper, Fault::KillCli, Fault::PauseCli].contains(fault);
            (agents == Agents::OverCli || !of_cli) && (fault::can_mount() || !fault.needs_mount())
        };
        let choices: Vec<Fault> = Fault::ALL.into_iter().filter(possible).collect();
        let count = random.below(4);
        let mut faults: Vec<Fault> =
            (0..count).filter_map(|_| random.pick(&choices).copied()).collect();
        if faults.iter().any(|it| it.needs_mount()) {
            faults.retain(|it| *it != Fault::NoProcesses); // nobody may not write to what is mounted
        }
        Plan { seed, agents, answers, temper, faults }
    }

    /// A plan of one fault.
    pub fn plan_of(&self, fault: Fault, seed: u64) -> Plan {
        let of_cli = [Fault::KillKeeper, Fault::KillCli, Fault::PauseCli].contains(&fault);
        let agents = if of_cli { Agents::OverCli } else { Agents::Scripted };
        Plan { seed, agents, answers: Answers::good(), temper: CALM, faults: vec![fault] }
    }

    /// A plan of one flaw of the answers.
    pub fn plan_of_flaw(&self, flaw: &str, seed: u64) -> Plan {
        let answers = Answers::with_flaw(flaw, &self.steps, &mut Random::of(seed));
        let faults = vec![Fault::KillOrchestrator];
        Plan { seed, agents: Agents::OverCli, answers, temper: CALM, faults }
    }

    /// A plan of one mishap of the CLI, in three of ten calls.
    pub fn plan_of_mishap(&self, kind: usize, seed: u64) -> Plan {
        let temper = Temper { seed, share: 30, kind };
        let (agents, answers) = (Agents::OverCli, Answers::good());
        Plan { seed, agents, answers, temper, faults: Vec::new() }
    }

    /// Carries out a plan. What goes wrong with the product is in the report; an error is ours.
    pub fn run(&self, plan: &Plan) -> anyhow::Result<Report> {
        let began = Instant::now();
        let peaceful = match (plan.answers.flaws.is_empty(), plan.agents) {
            (true, Agents::Scripted) => self.good[0].clone(),
            (true, Agents::OverCli) => self.good[1].clone(),
            (false, agents) => peace(&self.programs, agents, &plan.answers)?,
        };
        let mut place = Place::new(&self.programs, plan.agents, &plan.answers, plan.temper)?;
        if plan.faults.contains(&Fault::NoProcesses) {
            place.drop_privileges()?;
        }
        let runs = place.root().join("runs");
        let mounts = plan.faults.iter().any(|it| it.needs_mount());
        if mounts {
            fault::mount_small(&runs)?;
        }
        let mut report = Report::default();
        let torn = Mutex::new(Vec::new());
        let is_over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| watch_submission(&place, &is_over, &torn));
            let ended = endure(&place, plan, &peaceful, &mut report);
            is_over.store(true, Ordering::Relaxed);
            ended
        });
        match ended {
            Ok(ended) => {
                report.code = ended.code;
                let keeps = report.befell.iter().all(|it| it.keeps_the_result());
                report.problems.extend(check::end(&place, &ended, &peaceful, keeps));
                report.same = keeps && report.problems.is_empty();
            }
            Err(error) => report.problems.push(format!("{error:#}")),
        }
        report.problems.extend(torn.into_inner().unwrap_or_default());
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
    let mut ended = life.finish(PATIENCE)?;
    // What befell it before it had begun anything is an error without a loss.
    if place.run().is_none() && !report.befell.is_empty() {
        report.lives += 1;
        ended = place.live()?.finish(PATIENCE)?;
    }
    // A submission that vanished under our hands may stop the run; there is nothing to mend.
    let stopped = ended.code == Some(1) && peaceful.code != Some(1);
    if stopped && report.befell.contains(&Fault::DeleteWorkspaces) {
        report.lives += 1;
        ended = place.live()?.finish(PATIENCE)?;
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
    let goal = now + random.below(peaceful.journal_bytes.saturating_sub(now).max(1));
    life.wait_until(PATIENCE, || place.journal_bytes() > goal)?;
    let pause = Duration::from_millis(random.below(60));
    life.wait_until(pause, || false)?;
    Ok(())
}

/// Looks at the submission again and again: whenever it is there, it must be whole.
fn watch_submission(place: &Place, is_over: &AtomicBool, torn: &Mutex<Vec<String>>) {
    while !is_over.load(Ordering::Relaxed) {
        if let Some(run) = place.run()
            && let Ok(text) = fs::read_to_string(run.join("final/submission.csv"))
            && !is_whole_submission(&text)
            && let Ok(mut torn) = torn.lock()
            && torn.is_empty()
        {
            torn.push(format!("a submission of {} bytes was seen", text.len()));
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

/// A run in peace.
fn peace(programs: &Programs, agents: Agents, answers: &Answers) -> anyhow::Result<Traits> {
    let place = Place::new(programs, agents, answers, CALM)?;
    let ended = place.live()?.finish(PATIENCE)?;
    let traits = check::traits(&place, &ended).with_context(|| {
        let flaws = answers.flaws.join(", ");
        format!("a run in peace ended with {:?} ({flaws}): {}", ended.code, ended.said)
    })?;
    let problems = check::end(&place, &ended, &traits, true);
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
