//! Drills: runs that run out of time, money or agents, and what is left of them.
//!
//! Time is simulated: an agent that thinks for an hour costs nothing but a look at the clock.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use mle_star_agent::{Agent, AgentError, Call, Reply, Wait};
use mle_star_exec::{Ended, ExecError, Executor, Job, Outcome};
use mle_star_search::event::{Decision, Event, Lack, Output, Phase, Record};
use mle_star_search::models::{
    FinalResult, PhaseOutcome, Score, SolutionPhase, is_improvement_or_equal,
};
use mle_star_search::state::{CurrentPhase, PathStatus, PipelineState};
use mle_star_search::summary::Summary;
use mle_star_search::{Completed, Error, OnChange, PipelineError, Ports, Run};
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};

use crate::world::{World, block, fenced, outcome, script, submitting};

/// Seconds that an end may come late.
const GRACE: f64 = 30.0;

type Thinking = dyn Fn(&Call) -> f64 + Send + Sync;
type Working = dyn Fn(&Job) -> f64 + Send + Sync;
type Fault = dyn Fn(&Call, f64) -> Option<AgentError> + Send + Sync;

/// A world in which agents take time and cost money, and scripts take time.
struct Drill {
    world: World,
    /// Seconds that a call takes.
    thinking: Arc<Thinking>,
    /// Seconds that a script takes.
    working: Arc<Working>,
    /// What a call costs, in US dollars.
    price: Arc<Thinking>,
    /// What is wrong with the agents after so many seconds of this life.
    fault: Arc<Fault>,
    till: Arc<Mutex<Till>>,
}

/// What really was spent, and what may be at this moment.
#[derive(Debug, Default)]
struct Till {
    paid: f64,
    /// The caps of the calls in flight.
    open: Vec<f64>,
}

impl Drill {
    fn new(settings: &str) -> Self {
        Self::of(World::new(settings))
    }

    fn of(mut world: World) -> Self {
        world.simulated = true;
        Self {
            world,
            thinking: Arc::new(|_| 1.0),
            working: Arc::new(|_| 1.0),
            price: Arc::new(|_| 0.0),
            fault: Arc::new(|_, _| None),
            till: Arc::default(),
        }
    }

    fn thinking(mut self, seconds: impl Fn(&Call) -> f64 + Send + Sync + 'static) -> Self {
        self.thinking = Arc::new(seconds);
        self
    }

    fn working(mut self, seconds: impl Fn(&Job) -> f64 + Send + Sync + 'static) -> Self {
        self.working = Arc::new(seconds);
        self
    }

    fn price(mut self, dollars: impl Fn(&Call) -> f64 + Send + Sync + 'static) -> Self {
        self.price = Arc::new(dollars);
        self
    }

    fn fault(
        mut self,
        fault: impl Fn(&Call, f64) -> Option<AgentError> + Send + Sync + 'static,
    ) -> Self {
        self.fault = Arc::new(fault);
        self
    }

    /// The same drill in a folder of its own, stopped after the first `bytes` of its journal.
    fn stopped_after(&self, bytes: usize) -> Self {
        let mut world = World::new("");
        world.config = self.world.config.clone();
        world.task = self.world.task.clone();
        let (from, to) = (self.world.dir(), world.dir());
        fs_err::create_dir_all(to.root().join("solutions")).unwrap();
        let journal = fs_err::read(from.journal()).unwrap();
        fs_err::write(to.journal(), &journal[..bytes]).unwrap();
        for entry in from.root().join("solutions").read_dir_utf8().unwrap() {
            let file = entry.unwrap().into_path();
            fs_err::copy(&file, to.solution(file.file_name().unwrap())).unwrap();
        }
        Self {
            thinking: Arc::clone(&self.thinking),
            working: Arc::clone(&self.working),
            price: Arc::clone(&self.price),
            ..Self::of(world)
        }
    }

    fn ports(&self) -> Ports {
        let Ports { agent, executor, clock, secrets } = self.world.ports();
        let agent = SlowAgent {
            inner: agent,
            thinking: Arc::clone(&self.thinking),
            price: Arc::clone(&self.price),
            fault: Arc::clone(&self.fault),
            till: Arc::clone(&self.till),
            budget: self.world.config.max_budget_usd,
            began: Instant::now(),
        };
        let executor = SlowExecutor { inner: executor, working: Arc::clone(&self.working) };
        Ports { agent: Box::new(agent), executor: Box::new(executor), clock, secrets }
    }

    fn open(&self) -> Run {
        fs_err::create_dir_all(self.world.dir().root()).unwrap();
        Run::create(self.world.dir(), self.world.header(), self.ports()).unwrap()
    }

    fn reopen(&self) -> Run {
        let header = self.world.header();
        Run::resume(self.world.dir(), header, self.ports(), OnChange::Stop).unwrap()
    }

    async fn run(&self) -> Result<Completed, PipelineError> {
        let run = self.open();
        mle_star_search::run(&run.ctx()).await
    }

    async fn resume(&self) -> Result<Completed, PipelineError> {
        let run = self.reopen();
        run.rehearse(mle_star_search::run(&run.ctx()))?;
        mle_star_search::run(&run.ctx()).await
    }

    /// A whole run, of which everything holds that holds of any.
    async fn sound(&self) -> FinalResult {
        let completed = self.run().await.unwrap();
        self.check(&completed);
        self.stays(&completed).await;
        completed.result
    }

    /// Taking up a run that has ended gives the same, and does nothing.
    async fn stays(&self, completed: &Completed) {
        let (calls, jobs) = (self.world.calls().len(), self.world.jobs().len());
        let journal = fs_err::read(self.world.dir().journal()).unwrap();
        assert_eq!(self.resume().await.unwrap(), *completed);
        assert_eq!((self.world.calls().len(), self.world.jobs().len()), (calls, jobs));
        assert_eq!(fs_err::read(self.world.dir().journal()).unwrap(), journal);
    }

    /// What holds of any result, however short the run was cut.
    fn check(&self, completed: &Completed) {
        let FinalResult { config, phase1, phase2_results, phase3, .. } = &completed.result;
        let seconds = completed.result.total_duration_seconds;
        assert!(seconds <= self.limit() + GRACE, "{seconds} s of {}", self.limit());

        assert_eq!(phase1.candidate_solutions.len(), phase1.retrieved_models.len());
        assert_eq!(phase1.candidate_scores.len(), phase1.retrieved_models.len());
        assert_eq!(phase2_results.len(), config.num_parallel_solutions);
        let direction = completed.result.task.metric_direction;
        for path in phase2_results {
            let steps = config.outer_loop_steps;
            let records = (path.step_history.len(), path.refined_blocks.len());
            assert_eq!((records, path.ablation_summaries.len()), ((steps, steps), steps));
            let mut best = phase1.initial_score;
            for step in &path.step_history {
                let attempts = if step.was_skipped { 0 } else { config.inner_loop_steps };
                assert_eq!(step.inner_loop_attempts.len(), attempts);
                assert!(is_improvement_or_equal(step.best_score_after_step, best, direction));
                best = step.best_score_after_step;
            }
            assert_eq!(path.best_score, best);
            assert_eq!(path.best_solution.score, Some(best));
        }
        if let Some(phase3) = phase3 {
            let rounds = config.ensemble_rounds;
            assert_eq!((phase3.attempts.len(), phase3.ensemble_plans.len()), (rounds, rounds));
        }

        let last = completed.result.final_solution.score.unwrap();
        for (key, event) in self.world.events() {
            if let Event::Evaluated { score: Some(score), .. } = event {
                assert!(is_improvement_or_equal(last, score, direction), "{score} at {key}");
            }
        }
        let paid = self.till.lock().unwrap().paid;
        let total = completed.result.total_cost_usd.unwrap_or(0.0);
        assert!(total >= paid - 1e-9, "{total} of {paid} is counted");
        let submission = self.world.dir().submission();
        assert_eq!(submission.exists(), !completed.result.submission_path.is_empty());
        assert_eq!(submission.exists(), completed.submission.is_some());
    }

    fn limit(&self) -> f64 {
        Duration::from_secs(self.world.config.time_limit_seconds).as_secs_f64()
    }

    /// The events of one kind, in order.
    fn told<T>(&self, which: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.world.events().iter().filter_map(|(_, event)| which(event)).collect()
    }

    /// Who wrote the solutions whose submissions were published.
    fn published(&self) -> Vec<SolutionPhase> {
        self.told(|event| match event {
            Event::Published { from, .. } => Some(*from),
            _ => None,
        })
    }

    fn summaries(&self) -> Vec<Summary> {
        self.told(|event| match event {
            Event::Summarized { summary } => Some((**summary).clone()),
            _ => None,
        })
    }

    /// What was lacking where loops were cut.
    fn cuts(&self) -> Vec<(String, Lack)> {
        let cuts = self.world.records().into_iter().filter_map(|record| match record {
            Record::Decided { key, decision: Decision::CutShort(lack), .. } => {
                Some((key.to_string(), lack))
            }
            _ => None,
        });
        cuts.collect()
    }

    /// The seconds of each wait for the agents.
    fn waits(&self) -> Vec<u64> {
        self.told(|event| match event {
            Event::Waiting { seconds, .. } => Some(*seconds),
            _ => None,
        })
    }

    fn cost_warnings(&self) -> usize {
        self.world.warnings().iter().filter(|it| it.contains("of the budget of")).count()
    }
}

struct SlowAgent {
    inner: Box<dyn Agent>,
    thinking: Arc<Thinking>,
    price: Arc<Thinking>,
    fault: Arc<Fault>,
    till: Arc<Mutex<Till>>,
    budget: Option<f64>,
    began: Instant,
}

impl std::fmt::Debug for SlowAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SlowAgent")
    }
}

impl Agent for SlowAgent {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        async {
            if let Some(fault) = (self.fault)(call, self.began.elapsed().as_secs_f64()) {
                return Err(fault);
            }
            let _open = call.max_budget_usd.map(|cap| self.reserve(cap));
            sleep(Duration::from_secs_f64((self.thinking)(call))).await;
            let mut reply = self.inner.ask(call).await?;
            let price = (self.price)(call);
            if price > 0.0 {
                reply.cost_usd = Some(price);
                self.till.lock().unwrap().paid += price;
            }
            Ok(reply)
        }
        .boxed()
    }
}

impl SlowAgent {
    /// What calls in flight may spend together is never more than what is left.
    fn reserve(&self, cap: f64) -> Open<'_> {
        let mut till = self.till.lock().unwrap();
        till.open.push(cap);
        let promised: f64 = till.open.iter().sum();
        assert!(promised + till.paid <= self.budget.unwrap() + 1e-9, "{till:?}");
        Open { till: &self.till, cap }
    }
}

/// A call in flight.
struct Open<'a> {
    till: &'a Mutex<Till>,
    cap: f64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut till = self.till.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(at) = till.open.iter().position(|cap| cap.total_cmp(&self.cap).is_eq()) {
            till.open.remove(at);
        }
    }
}

struct SlowExecutor {
    inner: Box<dyn Executor>,
    working: Arc<Working>,
}

impl std::fmt::Debug for SlowExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SlowExecutor")
    }
}

impl Executor for SlowExecutor {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        async {
            let takes = Duration::from_secs_f64((self.working)(job));
            if takes > job.time_limit {
                sleep(job.time_limit).await;
                let after_seconds = job.time_limit.as_secs_f64();
                return Ok(outcome(Ended::TimedOut { after_seconds }, "", ""));
            }
            sleep(takes).await;
            self.inner.run(job).await
        }
        .boxed()
    }

    fn slots(&self) -> usize {
        self.inner.slots()
    }
}

// Time.

/// REQ-OR-024, REQ-OR-030
#[tokio::test(start_paused = true)]
async fn a_deadline_before_any_score_ends_the_run_with_diagnostics() {
    for limit in [60.0, 600.0, 86_400.0] {
        let drill = Drill::new(&format!("M=2 T=1 K=1 L=1 time_limit_seconds={limit}"))
            .thinking(move |call| if call.role == "init" { limit } else { limit / 100.0 });
        let error = drill.run().await.unwrap_err();
        let PipelineError::Exhausted { diagnostics, .. } = &error else { panic!("{error:?}") };
        assert!(diagnostics.elapsed_seconds <= limit + GRACE);
        assert!(diagnostics.finished_steps >= 1);
        assert!(diagnostics.last_finished_step.is_some());

        let calls = drill.world.calls().len();
        let again = drill.resume().await.unwrap_err();
        assert!(matches!(again, PipelineError::Exhausted { .. }));
        assert_eq!(drill.world.calls().len(), calls);
    }
}

/// REQ-OR-024, REQ-OR-030
#[tokio::test(start_paused = true)]
async fn a_deadline_before_models_are_found_ends_the_run_too() {
    let drill = Drill::new("T=1 K=1 L=1 time_limit_seconds=60").thinking(|_| 1e6);
    let error = drill.run().await.unwrap_err();
    assert!(matches!(error, PipelineError::Exhausted { .. }), "{error:?}");
    assert!(error.diagnostics().elapsed_seconds <= 60.0);
}

/// REQ-OR-024, REQ-OR-030, REQ-OR-034, REQ-OR-043
#[tokio::test(start_paused = true)]
async fn a_deadline_after_one_score_in_phase_1_ends_with_that_solution() {
    let drill = Drill::new("M=3 T=2 K=2 L=2 R=2 time_limit_seconds=1000 early_submission=true")
        .thinking(|call| {
            let slow = call.step.starts_with("phase1/") && !call.lane.ends_with("candidate-0");
            if slow && call.role != "retriever" { 400.0 } else { 10.0 }
        });
    let result = drill.sound().await;
    assert_eq!(drill.published(), [SolutionPhase::Init]);

    assert_eq!(result.phase1.candidate_scores.iter().flatten().count(), 1);
    assert_eq!(result.final_solution.score.unwrap().to_string(), "0.5");
    assert_eq!(result.phase_status.cut_short.as_deref(), Some("the time is over"));
    assert!(result.phase2_results.iter().flat_map(|it| &it.step_history).all(|it| it.was_skipped));
    assert!(drill.world.calls_of("ens_planner").is_empty());
}

/// REQ-OR-024, REQ-OR-025, REQ-OR-030, REQ-OR-034, REQ-OR-043
#[tokio::test(start_paused = true)]
async fn a_deadline_in_phase_2_keeps_the_best_so_far() {
    for limit in [60.0, 600.0, 86_400.0] {
        let settings = format!("M=2 T=4 K=4 L=2 R=1 time_limit_seconds={limit}");
        let drill = Drill::new(&format!("{settings} early_submission=true"))
            .thinking(move |_| limit / 100.0)
            .working(move |_| limit / 50.0);
        let result = drill.sound().await;

        assert_eq!(result.phase_status.cut_short.as_deref(), Some("the time is over"));
        assert_eq!(result.phase_status.phase2, PhaseOutcome::Completed);
        let first = &result.phase2_results[0];
        assert!(first.best_score.get() > result.phase1.initial_score.get(), "{limit}");
        assert!(first.step_history.last().unwrap().was_skipped);
        // Phase 2 leaves time for an ensemble, unless the reserve of a short run takes it.
        let ensembled = result.final_solution.score.unwrap().to_string() == "0.9";
        assert!(ensembled || limit < 1500.0);
        assert_eq!(result.phase_status.finalization, PhaseOutcome::Completed);
        assert_eq!(drill.published().len(), 2);
    }
}

/// REQ-OR-030, REQ-OR-034, REQ-OR-043
#[tokio::test(start_paused = true)]
async fn a_deadline_in_phase_3_keeps_the_rounds_that_were_made() {
    let drill = Drill::new("M=1 T=1 K=1 L=2 R=5 time_limit_seconds=3600 early_submission=true")
        .thinking(|call| if call.role == "ens_planner" { 1200.0 } else { 5.0 });
    let result = drill.sound().await;

    let phase3 = result.phase3.unwrap();
    let plans: Vec<&str> = phase3.ensemble_plans.iter().map(String::as_str).collect();
    let expected =
        ["average them, way 0", "average them, way 1", "[skipped]", "[skipped]", "[skipped]"];
    assert_eq!(plans, expected);
    assert_eq!(result.final_solution.score.unwrap().to_string(), "0.9");
    assert_eq!(result.phase_status.cut_short.as_deref(), Some("the time is over"));
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Completed);
}

/// What the test agent writes in the end takes for ever.
fn endless_ending(settings: &str) -> Drill {
    let world = World::new(settings).on_call(|call| {
        (call.step == "finalization/test")
            .then(|| Ok(Reply::text(fenced(&format!("# endless\n{}", submitting())))))
    });
    Drill::of(world).working(|job| if job.script.contains("# endless") { 1e6 } else { 5.0 })
}

/// REQ-OR-024, REQ-OR-043
#[tokio::test(start_paused = true)]
async fn a_submission_script_that_is_too_slow_leaves_the_early_submission() {
    let drill = endless_ending("M=1 T=1 K=1 L=1 R=1 time_limit_seconds=3600 early_submission=true");
    let result = drill.sound().await;

    assert_eq!(result.phase_status.finalization, PhaseOutcome::Failed);
    assert_eq!(result.phase_status.cut_short.as_deref(), Some("the time is over"));
    let notes = &result.phase_status.notes;
    assert!(notes.iter().any(|note| note.contains("the submission is the early one")), "{notes:?}");
    assert_eq!(drill.published(), [SolutionPhase::Init]);
    assert_eq!(result.final_solution.score.unwrap().to_string(), "0.6");
}

// Money.

/// Every call costs the same, and takes a second.
fn paid(settings: &str, price: f64) -> Drill {
    Drill::new(settings).price(move |_| price)
}

/// REQ-OR-027, REQ-OR-029, REQ-OR-030, REQ-OR-043
#[tokio::test(start_paused = true)]
async fn money_that_runs_out_in_any_phase_ends_the_run_with_the_best_so_far() {
    let settings = "M=2 T=2 K=2 L=2 R=2 early_submission=true";
    let whole = paid(settings, 1.0);
    let full = whole.run().await.unwrap().result;
    let total = full.total_cost_usd.unwrap();
    assert!(whole.till.lock().unwrap().paid.total_cmp(&total).is_eq());

    let mut phases = BTreeSet::new();
    let mut budget = 2.0;
    while budget < total + 2.0 {
        let drill = paid(&format!("{settings} max_budget_usd={budget}"), 1.0);
        let outcome = drill.run().await;
        let spent = drill.till.lock().unwrap().paid;
        // A call that began with a cap below its price overspends; at most one of each lane did.
        assert!(spent <= budget + 2.0, "${spent} of ${budget}");
        assert!(drill.cost_warnings() <= 1);
        let Ok(completed) = outcome else {
            phases.insert("none");
            assert!(budget < 8.0, "${budget}: {outcome:?}");
            budget += 1.0;
            continue;
        };
        drill.check(&completed);
        drill.stays(&completed).await;
        if let Some(why) = &completed.result.phase_status.cut_short {
            assert_eq!(why, "the budget is spent");
            assert_eq!(drill.cost_warnings(), 1, "${budget}");
            let cut = drill.cuts().first().map(|(key, _)| key.clone()).unwrap_or_default();
            phases.insert(match cut.split('/').next() {
                Some("phase1") => "phase1",
                Some("phase2") => "phase2",
                Some("phase3") => "phase3",
                _ => "finalization",
            });
        }
        budget += 1.0;
    }
    let expected = ["finalization", "none", "phase1", "phase2", "phase3"];
    assert_eq!(phases, BTreeSet::from(expected));
}

/// REQ-OR-029
#[tokio::test(start_paused = true)]
async fn no_iteration_begins_when_nearly_all_is_spent() {
    // The first inner step of the path spends what is left, up to 96 %.
    let drill = Drill::new("M=1 T=3 K=3 L=1 max_budget_usd=100")
        .price(|call| if call.step.contains("inner-0/coder") { 96.0 } else { 0.01 });
    let result = drill.sound().await;

    let history = &result.phase2_results[0].step_history;
    let plans: Vec<&str> =
        history[0].inner_loop_attempts.iter().map(|it| it.plan.as_str()).collect();
    assert_eq!(plans, ["raise the score", "[skipped]", "[skipped]"]);
    assert!(history[1].was_skipped && history[2].was_skipped);
    // The rest pays for finalization.
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Completed);
    assert_eq!(result.phase_status.cut_short.as_deref(), Some("the budget is spent"));
    assert!(drill.cuts().iter().all(|(_, lack)| *lack == Lack::Money));
}

/// REQ-OR-029, REQ-OR-030
#[tokio::test(start_paused = true)]
async fn without_any_money_finalization_asks_nobody() {
    // An ensemble writes its submission by itself, so it can be run as it is.
    let drill = Drill::new("M=1 T=1 K=1 L=2 R=1 max_budget_usd=1")
        .price(|call| if call.role == "ensembler" { 1.01 } else { 0.001 });
    let completed = drill.run().await.unwrap();
    // The ensemble was paid for, but no agent could check it for leakage.
    drill.check(&completed);
    drill.stays(&completed).await;
    let after: Vec<String> = drill.world.calls().into_iter().map(|call| call.step).collect();
    assert!(!after.iter().any(|step| step.starts_with("finalization")), "{after:?}");
    assert_eq!(completed.result.phase_status.cut_short.as_deref(), Some("the budget is spent"));
    let warned = drill.world.warnings();
    assert!(warned.iter().any(|it| it.contains("no time, money or agent")), "{warned:?}");
}

/// REQ-OR-029
#[tokio::test(start_paused = true)]
async fn most_of_the_budget_is_warned_of_once_in_all_lives_of_a_run() {
    let settings = "M=2 T=1 K=2 L=2 R=1 max_budget_usd=30";
    let whole = paid(settings, 1.0);
    whole.run().await.unwrap();
    assert_eq!(whole.cost_warnings(), 1);
    let journal = fs_err::read(whole.world.dir().journal()).unwrap();
    for end in line_ends(&journal).into_iter().rev().step_by(7) {
        let drill = whole.stopped_after(end);
        drill.resume().await.unwrap();
        assert_eq!(drill.cost_warnings(), 1, "after {end} bytes");
    }
}

fn line_ends(journal: &[u8]) -> Vec<usize> {
    let newlines = journal.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    newlines.map(|(at, _)| at + 1).collect()
}

// Paths.

/// REQ-OR-023, REQ-OR-026, REQ-OR-043, REQ-OR-050
#[tokio::test(start_paused = true)]
async fn a_slow_path_is_cancelled_with_its_best_so_far_and_a_fast_one_completes() {
    let drill = Drill::new("M=1 T=2 K=3 L=2 R=1 time_limit_seconds=10000")
        .thinking(|call| if call.lane == "path-1" { 1000.0 } else { 1.0 });
    let run = drill.open();
    let completed = mle_star_search::run(&run.ctx()).await.unwrap();
    drill.check(&completed);

    let statuses = run.state().phase2_path_statuses;
    assert_eq!(statuses, [PathStatus::Completed, PathStatus::Cancelled]);
    drop(run);
    drill.stays(&completed).await;
    let [fast, slow] = &completed.result.phase2_results[..] else { panic!("two paths") };
    assert!(fast.step_history.iter().all(|step| !step.was_skipped));
    assert_eq!(slow.best_score.to_string(), "0.6");
    assert!(slow.step_history[1].was_skipped);
    // The slow one was stopped at the end of Phase 2, not of the run: Phase 3 had its time.
    assert_eq!(completed.result.phase3.unwrap().ensemble_scores.iter().flatten().count(), 1);
    assert_eq!(drill.reopen().state().phase2_path_statuses, statuses);
}

/// REQ-OR-023, REQ-OR-026
#[tokio::test(start_paused = true)]
async fn paths_that_wait_for_each_other_share_the_time_fairly() {
    let settings = "M=1 T=4 K=4 L=2 R=1 max_concurrent_sessions=1 time_limit_seconds=10000";
    let drill = Drill::new(settings)
        .thinking(|call| if call.lane.starts_with("path-") { 400.0 } else { 1.0 });
    let result = drill.sound().await;
    for path in &result.phase2_results {
        assert!(
            path.best_score.get() > result.phase1.initial_score.get(),
            "each path got its turn"
        );
        assert!(path.step_history[3].was_skipped);
    }
    let statuses = drill.reopen().state().phase2_path_statuses;
    assert_eq!(statuses, [PathStatus::Cancelled; 2]);
}

// Agents that cannot be reached.

fn unavailable() -> AgentError {
    AgentError::Unavailable { reason: "529 overloaded".to_owned() }
}

/// A result without what an outage may change.
fn without_times(mut result: FinalResult) -> serde_json::Value {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                map.retain(|key, _| key != "created_at" && key != "total_duration_seconds");
                map.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    result.submission_path.clear();
    result.task.data_dir = "".into();
    let mut value = serde_json::to_value(result).unwrap();
    strip(&mut value);
    value
}

/// REQ-OR-052
#[tokio::test(start_paused = true)]
async fn an_outage_of_an_hour_is_waited_out_and_costs_no_step() {
    let settings = "M=2 T=1 K=2 L=2 R=1";
    let expected = Drill::new(settings).sound().await;
    for begins in [0.0, 3.0, 9.0, 15.0, 20.0, 25.0] {
        let drill = Drill::new(settings)
            .fault(move |_, now| (begins..begins + 3600.0).contains(&now).then(unavailable));
        let result = drill.sound().await;
        assert!(result.total_duration_seconds > 3600.0);
        assert!(result.total_duration_seconds < 3600.0 + 400.0);
        assert_eq!(without_times(result), without_times(expected.clone()), "{begins}");
        let waits = drill.waits();
        let of_one_lane: BTreeSet<u64> = waits.iter().copied().collect();
        assert!(of_one_lane.is_superset(&BTreeSet::from([1, 2, 4, 256])), "{waits:?}");
        assert!(of_one_lane.iter().all(|wait| *wait <= 300));
    }
}

/// REQ-OR-052
#[tokio::test(start_paused = true)]
async fn an_agent_is_asked_again_after_one_two_and_four_seconds() {
    let drill = Drill::new("M=1 T=1 K=1 L=1").fault(|_, now| (now < 6.5).then(unavailable));
    let result = drill.sound().await;
    assert_eq!(drill.waits(), [1, 2, 4]);
    assert_eq!(result.phase_status.cut_short, None);
}

/// REQ-OR-030, REQ-OR-052
#[tokio::test(start_paused = true)]
async fn agents_that_never_come_back_end_the_run_with_what_there_is() {
    let settings = "M=1 T=2 K=2 L=2 R=2 time_limit_seconds=7200 early_submission=true";
    let before = Drill::new(settings).fault(|_, _| Some(unavailable()));
    let error = before.run().await.unwrap_err();
    let PipelineError::Exhausted { source, diagnostics, .. } = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains("529 overloaded"), "{source}");
    assert!(diagnostics.elapsed_seconds <= 7200.0 + GRACE);

    let drill =
        Drill::new(settings).fault(|call, _| (!call.step.starts_with("phase1")).then(unavailable));
    let result = drill.sound().await;
    let why = result.phase_status.cut_short.unwrap();
    assert!(why == "the time is over" || why.contains("529 overloaded"), "{why}");
    assert_eq!(drill.published(), [SolutionPhase::Init]);
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Failed);
    assert_eq!(drill.world.calls().iter().filter(|it| !it.step.starts_with("phase1")).count(), 0);
}

/// REQ-OR-023, REQ-OR-052
#[tokio::test(start_paused = true)]
async fn an_outage_at_the_end_of_the_paths_does_not_take_the_agents_from_later_phases() {
    let drill = Drill::new("M=1 T=4 K=4 L=2 R=1 time_limit_seconds=10000")
        .thinking(|call| if call.lane.starts_with("path-") { 300.0 } else { 5.0 })
        .fault(|_, now| (6800.0..7400.0).contains(&now).then(unavailable));
    let result = drill.sound().await;

    assert_eq!(result.phase_status.cut_short.as_deref(), Some("the time is over"));
    assert_eq!(result.final_solution.score.unwrap().to_string(), "0.9");
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Completed);
    let attempts = result.phase2_results.iter().flat_map(|it| &it.step_history);
    let plans: BTreeSet<&str> = attempts
        .flat_map(|step| &step.inner_loop_attempts)
        .map(|attempt| attempt.plan.as_str())
        .collect();
    assert!(!plans.contains("[planner failed]"), "{plans:?}");
}

/// REQ-OR-052
#[tokio::test(start_paused = true)]
async fn a_run_that_is_taken_up_during_an_outage_says_that_it_waits() {
    let whole = Drill::new("M=1 T=1 K=1 L=1").fault(|_, now| (now < 600.0).then(unavailable));
    whole.run().await.unwrap();
    let waiting =
        |record: &Record| matches!(record, Record::Happened { event: Event::Waiting { .. }, .. });
    let last = whole.world.records().iter().rposition(waiting).unwrap();
    let journal = fs_err::read(whole.world.dir().journal()).unwrap();
    let drill = whole
        .stopped_after(line_ends(&journal)[last])
        .fault(|_, now| (now < 6.5).then(unavailable));
    drill.resume().await.unwrap();
    let again = drill.waits().split_off(whole.waits().len());
    assert_eq!(again, [1, 2, 4]);
}

/// REQ-OR-052
#[tokio::test(start_paused = true)]
async fn waits_that_an_agent_tells_of_are_told() {
    let drill = Drill::of(World::new("M=1 T=1 K=1 L=1").on_call(|call| {
        if call.role == "retriever" {
            let wait = |seconds| Wait { time: Duration::from_secs(seconds), reason: "529".into() };
            [2, 4].into_iter().for_each(|seconds| call.waits.tell(wait(seconds)));
        }
        None
    }));
    drill.run().await.unwrap();
    assert_eq!(drill.waits(), [2, 4]);
}

/// REQ-OR-030, REQ-OR-052
#[tokio::test(start_paused = true)]
async fn a_run_that_only_waits_ends_when_it_is_told_to_and_owes_nothing() {
    let drill = Drill::new("M=1 T=1 K=1 L=1").fault(|_, _| Some(unavailable()));
    let run = drill.open();
    let ctx = run.ctx();
    let mut work = pin!(mle_star_search::run(&ctx));
    let in_a_wait = Duration::from_secs(100);
    assert!(timeout(in_a_wait, &mut work).await.is_err());
    assert_eq!(run.steps_in_flight(), 1);
    run.halt();
    assert!(timeout(Duration::from_millis(1), &mut work).await.is_err());
    assert_eq!(run.steps_in_flight(), 0);
    let asked = drill.world.calls().len();
    assert!(timeout(in_a_wait, &mut work).await.is_err());
    assert_eq!(drill.world.calls().len(), asked, "nothing begins after that");
    let ended = drill.world.records().pop().unwrap();
    assert!(matches!(&ended, Record::Abandoned { key, .. } if key.as_str().ends_with("retriever")));
}

/// REQ-OR-052
#[tokio::test(start_paused = true)]
async fn agents_that_refuse_us_stop_the_run_at_once_and_it_can_be_resumed() {
    let settings = "M=1 T=1 K=2 L=2 R=1";
    let expected = Drill::new(settings).sound().await;
    let mut drill = Drill::new(settings).fault(|call, _| {
        call.step
            .contains("path-1/outer-0/inner-1")
            .then(|| AgentError::Unauthorized { reason: "401".to_owned() })
    });
    let error = drill.run().await.unwrap_err();
    assert!(matches!(error, PipelineError::Stopped { .. }), "{error:?}");
    assert!(matches!(error.cause(), Error::Agent { .. }));
    assert_eq!(drill.waits(), [0_u64; 0]);
    let before = drill.world.steps();
    let calls = drill.world.calls().len();

    drill.fault = Arc::new(|_, _| None);
    let completed = drill.resume().await.unwrap();
    assert_eq!(without_times(completed.result), without_times(expected));
    let again: Vec<_> = drill.world.calls().split_off(calls);
    assert!(again.iter().all(|call| !before.contains(&call.step)));
}

// Lives.

fn settings_records(world: &World) -> usize {
    world.records().iter().filter(|it| matches!(it, Record::Settings { .. })).count()
}

/// The steps that were done more than once, apart from those that were not done at first.
fn redone(world: &World) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let done = world.records().into_iter().filter_map(|record| match record {
        Record::Finished { output: Output::NotDone { .. } | Output::Totals { .. }, .. } => None,
        Record::Finished { key, .. } => Some(key.to_string()),
        _ => None,
    });
    done.filter(|key| !seen.insert(key.clone())).collect()
}

/// REQ-OR-024, REQ-OR-030, REQ-OR-038, REQ-OR-050
#[tokio::test(start_paused = true)]
async fn with_a_raised_time_limit_a_run_goes_on_where_it_was_cut() {
    let settings = "M=1 T=3 K=2 L=2 R=2 early_submission=true";
    let mut drill = Drill::new(&format!("{settings} time_limit_seconds=1000"))
        .thinking(|_| 30.0)
        .working(|_| 20.0);
    let first = drill.run().await.unwrap();
    drill.check(&first);
    assert!(first.result.phase_status.cut_short.is_some());
    let calls = drill.world.calls().len();

    // The same limits: every decision stands.
    drill.stays(&first).await;
    assert_eq!(settings_records(&drill.world), 0);

    drill.world.config.time_limit_seconds = 100_000;
    let second = drill.resume().await.unwrap();
    drill.check(&second);
    assert_eq!(second.result.phase_status.cut_short, None);
    assert_eq!(settings_records(&drill.world), 1);
    let more = drill.world.calls().split_off(calls);
    assert!(more.iter().all(|call| !call.step.starts_with("phase1")), "Phase 1 was done");
    assert!(more.iter().any(|call| call.step.contains("outer-2")), "it goes on refining");
    assert!(more.iter().any(|call| call.step.starts_with("finalization")), "finalized anew");
    let redone = redone(&drill.world);
    let late = |key: &String| key.starts_with("finalization") || key.starts_with("phase3");
    assert!(redone.iter().all(late), "{redone:?}");
    for (old, new) in first.result.phase2_results.iter().zip(&second.result.phase2_results) {
        assert!(new.best_score.get() >= old.best_score.get());
        assert!(new.step_history.iter().all(|step| !step.was_skipped));
    }

    // What is told of the run is what it came to, not what it had come to before.
    let unlimited = Drill::new(settings);
    let expected = unlimited.run().await.unwrap().result;
    assert_eq!(second.result.final_solution.content, expected.final_solution.content);
    let state = drill.reopen().state();
    assert_eq!(state.phase2_path_statuses, [PathStatus::Completed; 2]);
    assert_eq!(state.current_phase, CurrentPhase::Complete);
    let summary = drill.summaries().pop().unwrap();
    let total = second.result.total_duration_seconds;
    assert!((summary.durations.total_duration_seconds - total).abs() < 1e-9);
    let phases = summary.durations.phase1_duration_seconds
        + summary.durations.phase2_duration_seconds
        + summary.durations.phase3_duration_seconds
        + summary.durations.finalization_duration_seconds;
    assert!((phases - total).abs() < 1.0, "{phases} of {total}");
    drill.stays(&second).await;
}

/// REQ-OR-027, REQ-OR-029, REQ-OR-030
#[tokio::test(start_paused = true)]
async fn with_a_raised_budget_a_run_goes_on_where_it_was_cut() {
    let mut drill = paid("M=1 T=3 K=2 L=2 R=2 early_submission=true max_budget_usd=25", 1.0);
    let first = drill.run().await.unwrap();
    drill.check(&first);
    assert_eq!(first.result.phase_status.cut_short.as_deref(), Some("the budget is spent"));
    drill.stays(&first).await;

    drill.world.config.max_budget_usd = Some(1000.0);
    let second = drill.resume().await.unwrap();
    drill.check(&second);
    drill.stays(&second).await;
    assert_eq!(second.result.phase_status.cut_short, None);
    assert_eq!(settings_records(&drill.world), 1);
    let late = |key: &String| key.starts_with("finalization") || key.starts_with("phase3");
    assert!(redone(&drill.world).iter().all(late));
    let paid = drill.till.lock().unwrap().paid;
    assert!((second.result.total_cost_usd.unwrap() - paid).abs() < 1e-9);
    let summary = drill.summaries().pop().unwrap();
    assert!((summary.costs.total_cost_usd - paid).abs() < 1e-9);
    assert_eq!(summary.lineage.last().unwrap(), "Finalization: took the Ensemble solution");
}

/// REQ-OR-024, REQ-OR-030
#[tokio::test(start_paused = true)]
async fn dying_after_the_limit_was_raised_changes_nothing() {
    let mut whole = Drill::new("M=1 T=2 K=1 L=2 R=1 early_submission=true time_limit_seconds=1000")
        .thinking(|_| 60.0)
        .working(|_| 20.0);
    let first = whole.run().await.unwrap();
    assert!(first.result.phase_status.cut_short.is_some());
    let before = whole.world.records().len();
    whole.world.config.time_limit_seconds = 100_000;
    let second = whole.resume().await.unwrap();
    assert_eq!(second.result.phase_status.cut_short, None);

    let journal = fs_err::read(whole.world.dir().journal()).unwrap();
    for (record, end) in line_ends(&journal).into_iter().enumerate().skip(before - 1) {
        let drill = whole.stopped_after(end);
        let completed = drill.resume().await.unwrap();
        let result = without_times(completed.result.clone());
        assert_eq!(result, without_times(second.result.clone()), "after {record}");
        assert_eq!(settings_records(&drill.world), 1, "after {record}");
        assert_eq!(drill.summaries().len(), 2, "after {record}");
        drill.check(&completed);
        drill.stays(&completed).await;
    }
}

/// REQ-OR-030
#[tokio::test(start_paused = true)]
async fn an_exhausted_run_goes_on_with_a_raised_limit() {
    let mut drill = Drill::new("M=1 T=1 K=1 L=1 time_limit_seconds=60").thinking(|_| 30.0);
    let error = drill.run().await.unwrap_err();
    assert!(matches!(error, PipelineError::Exhausted { .. }), "{error:?}");
    drill.world.config.time_limit_seconds = 86_400;
    let completed = drill.resume().await.unwrap();
    drill.check(&completed);
    drill.stays(&completed).await;
    assert_eq!(completed.result.phase_status.cut_short, None);
    assert_eq!(redone(&drill.world), [""; 0]);
}

/// REQ-OR-024, REQ-OR-029, REQ-OR-030
#[tokio::test(start_paused = true)]
async fn dying_at_any_record_of_a_run_that_is_cut_short_keeps_what_was_decided() {
    let timed = Drill::new("M=1 T=2 K=2 L=2 R=1 time_limit_seconds=1000 early_submission=true")
        .thinking(|_| 30.0)
        .working(|_| 20.0);
    let cost = paid("M=1 T=2 K=2 L=2 R=1 max_budget_usd=20 early_submission=true", 1.0);
    for whole in [timed, cost] {
        let expected = whole.sound().await;
        assert!(expected.phase_status.cut_short.is_some());
        let journal = fs_err::read(whole.world.dir().journal()).unwrap();
        let ends = line_ends(&journal);
        assert!(ends.len() > 60, "{} records", ends.len());
        let last_cut = whole.world.records().iter().rposition(is_cut).unwrap();
        for (record, end) in ends.iter().enumerate() {
            let drill = whole.stopped_after(*end);
            let (finished, cuts) = (drill.world.steps(), drill.cuts());
            let completed = drill.resume().await.unwrap();

            drill.check(&completed);
            drill.stays(&completed).await;
            assert_eq!(drill.world.steps()[..finished.len()], finished[..], "after {record}");
            assert_eq!(drill.cuts()[..cuts.len()], cuts[..], "after {record}");
            assert_eq!(redone(&drill.world), [""; 0], "after {record}");
            assert!(completed.result.phase_status.cut_short.is_some(), "after {record}");
            if record > last_cut {
                // All is decided: nothing but the clock may differ.
                let scores = |result: &FinalResult| {
                    let paths = result.phase2_results.iter().map(|it| it.best_score);
                    paths.chain(result.final_solution.score).collect::<Vec<_>>()
                };
                assert_eq!(scores(&completed.result), scores(&expected), "after {record}");
            }
        }
    }
}

fn is_cut(record: &Record) -> bool {
    matches!(record, Record::Decided { decision: Decision::CutShort(_), .. })
}

// The early submission.

/// REQ-OR-043
#[tokio::test(start_paused = true)]
async fn an_early_submission_stands_before_phase_2_begins_and_is_replaced_in_the_end() {
    let drill = Drill::new("M=1 T=1 K=1 L=2 R=1 early_submission=true");
    let result = drill.sound().await;
    let order = drill.told(|event| match event {
        Event::Published { score, .. } => Some(format!("published {score}")),
        Event::PhaseStarted { phase } => Some(format!("{phase:?}")),
        _ => None,
    });
    let expected = ["Phase1", "published 0.5", "Phase2", "Phase3", "Finalization", "published 0.9"];
    assert_eq!(order, expected);
    assert_eq!(result.phase_status.notes, [""; 0]);

    let without = Drill::new("M=1 T=1 K=1 L=2 R=1");
    without.sound().await;
    assert_eq!(without.published(), [SolutionPhase::Ensemble]);
}

/// REQ-OR-043
#[tokio::test(start_paused = true)]
async fn a_finalization_that_fails_keeps_the_early_submission_and_says_so() {
    let failing = |early: bool| {
        let world =
            World::new(&format!("M=1 T=1 K=1 L=1 early_submission={early}")).on_call(|call| {
                let broken = call.step.starts_with("finalization/")
                    && (call.role == "debugger" || call.step.ends_with("/test"));
                broken.then(|| Ok(Reply::text(fenced("raise ValueError('no such column')"))))
            });
        Drill::of(world)
    };
    let kept = failing(true);
    let result = kept.sound().await;
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Failed);
    let notes = ["the submission is the early one, of the initial solution (score 0.5)"];
    assert_eq!(result.phase_status.notes, notes);
    assert_eq!(result.submission_path, kept.world.dir().submission());
    let script = kept.world.dir().root().join("final/solution.py");
    assert!(fs_err::read_to_string(script).unwrap().contains("submission.csv"));

    let result = failing(false).sound().await;
    assert_eq!(result.submission_path, "");
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Failed);
}

/// REQ-OR-043
#[tokio::test(start_paused = true)]
async fn a_submission_that_does_not_fit_the_sample_is_mended_or_not_published() {
    let drill = Drill::new("M=1 T=1 K=1 L=1 max_debug_attempts=2 early_submission=true");
    let sample = drill.world.task.data_dir.join("sample_submission.csv");
    fs_err::write(sample, "id,target\n1,0\n2,0\n3,0\n").unwrap();
    let result = drill.sound().await;
    assert_eq!(result.submission_path, "");
    assert_eq!(drill.published(), []);
    let debugged = drill.world.calls_of("debugger");
    let early = debugged.iter().filter(|it| it.step.contains("early_submission")).count();
    assert_eq!((early, debugged.len()), (1, 3), "one early repair, and those of the end");
    assert!(debugged.iter().all(|it| it.prompt.contains("target")), "{}", debugged[0].prompt);
}

// What can be known of a run.

/// REQ-OR-050
#[tokio::test(start_paused = true)]
async fn a_run_says_where_it_is_at_any_time() {
    let drill = Drill::new("M=2 T=1 K=1 L=2 R=1").thinking(|_| 10.0).price(|_| 0.5);
    let run = drill.open();
    let ctx = run.ctx();
    let mut states: Vec<PipelineState> = vec![run.state()];
    {
        let mut search = pin!(mle_star_search::run(&ctx));
        loop {
            tokio::select! {
                done = &mut search => {
                    drill.check(&done.unwrap());
                    break;
                }
                () = sleep(Duration::from_secs(3)) => states.push(run.state()),
            }
        }
    }
    states.push(run.state());

    let mut phases: Vec<CurrentPhase> = states.iter().map(|it| it.current_phase).collect();
    phases.dedup();
    let expected = [
        CurrentPhase::Init,
        CurrentPhase::Phase1,
        CurrentPhase::Phase2,
        CurrentPhase::Phase3,
        CurrentPhase::Finalization,
        CurrentPhase::Complete,
    ];
    assert_eq!(phases, expected);
    for pair in states.windows(2) {
        assert!(pair[0].elapsed_seconds <= pair[1].elapsed_seconds);
        assert!(pair[0].accumulated_cost_usd <= pair[1].accumulated_cost_usd);
        let best = |state: &PipelineState| state.best_score_so_far.map(Score::get);
        assert!(best(&pair[0]) <= best(&pair[1]));
        assert!(pair[0].agent_call_count <= pair[1].agent_call_count);
    }
    let in_phase2 = states.iter().find(|it| it.current_phase == CurrentPhase::Phase2).unwrap();
    assert_eq!(in_phase2.phase2_path_statuses, [PathStatus::Running; 2]);
    let last = states.last().unwrap();
    assert_eq!(last.phase2_path_statuses, [PathStatus::Completed; 2]);
    assert_eq!(last.best_score_so_far.unwrap().to_string(), "0.9");
    assert_eq!(last.agent_call_count, drill.world.calls().len());
    assert!((last.accumulated_cost_usd - drill.till.lock().unwrap().paid).abs() < 1e-9);
}

/// REQ-OR-027, REQ-OR-037, REQ-OR-038, REQ-OR-039
#[tokio::test(start_paused = true)]
async fn a_run_sums_up_what_it_cost_how_long_it_took_and_where_its_solution_is_from() {
    let price = |call: &Call| if call.lane == "path-1" { 2.0 } else { 1.0 };
    let drill =
        Drill::new("M=2 T=1 K=2 L=2 R=1 early_submission=true").thinking(|_| 10.0).price(price);
    let result = drill.sound().await;
    let summaries = drill.summaries();
    let [Summary { costs, durations, lineage }] = &summaries[..] else { panic!("{summaries:?}") };

    let of = |place: &str| -> f64 {
        drill.world.calls().iter().filter(|it| it.step.starts_with(place)).map(price).sum()
    };
    let roles: f64 = costs.per_role_cost_usd.values().sum();
    let told = [
        costs.phase1_cost_usd,
        costs.phase2_cost_usd,
        costs.phase3_cost_usd,
        costs.finalization_cost_usd,
        costs.total_cost_usd,
        costs.estimated_cost_usd,
        roles,
    ];
    let expected =
        [of("phase1"), of("phase2"), of("phase3"), of("finalization"), of(""), 0.0, of("")];
    assert_eq!(told.map(|it| it.to_string()), expected.map(|it| it.to_string()));
    let paths = [of("phase2/path-0"), of("phase2/path-1")];
    assert_eq!(format!("{:?}", costs.phase2_per_path_cost_usd), format!("{paths:?}"));
    assert_eq!(result.total_cost_usd.unwrap().to_string(), of("").to_string());

    let phases = durations.phase1_duration_seconds
        + durations.phase2_duration_seconds
        + durations.phase3_duration_seconds
        + durations.finalization_duration_seconds;
    assert!((phases - result.total_duration_seconds).abs() < 0.1, "{durations:?}");
    assert!(durations.phase2_duration_seconds > 50.0);

    let expected = [
        "Phase 1: models model-0, model-1",
        "Phase 1: best candidate model-0; initial solution (Merged) scored 0.55",
        "Phase 2: path 0 reached 0.601 by outer 0 inner 0, outer 0 inner 1",
        "Phase 2: path 1 reached 0.601 by outer 0 inner 0, outer 0 inner 1",
        "Phase 3: round 0 combined 2 solutions to 0.9",
        "Finalization: took the Ensemble solution",
    ];
    assert_eq!(lineage[..], expected);
}

// Whatever happens.

/// What chance decides of a run.
#[derive(Debug, Clone)]
struct Fate {
    sizes: [usize; 5],
    limit: u64,
    budget: f64,
    price: f64,
    seed: u64,
    /// Of a hundred calls, so many write a script that fails or no answer.
    failing: u64,
    early: bool,
    minimize: bool,
}

fn fate() -> impl Strategy<Value = Fate> {
    let sizes = [1..3_usize, 1..3, 1..3, 1..3, 1..3];
    let amounts = (60..4000_u64, 1.0..60.0, 0.01..3.0, 0..40_u64);
    (sizes, amounts, any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
        |(sizes, (limit, budget, price, failing), seed, early, minimize)| Fate {
            sizes,
            limit,
            budget,
            price,
            seed,
            failing,
            early,
            minimize,
        },
    )
}

/// A number below `below` that depends on the place and the seed alone.
fn lot(seed: u64, place: &str, below: u64) -> u64 {
    let mixed = place.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (mixed >> 17) % below
}

fn seconds(whole: u64) -> f64 {
    Duration::from_secs(whole).as_secs_f64()
}

fn drill_of(fate: &Fate) -> Drill {
    let Fate { sizes: [m, t, k, l, r], limit, budget, price, seed, failing, early, minimize } =
        fate.clone();
    let mut world = World::new(&format!(
        "M={m} T={t} K={k} L={l} R={r} time_limit_seconds={limit} max_budget_usd={budget} \
         early_submission={early} max_debug_attempts=1"
    ))
    .on_call(move |call| {
        let score = seconds(lot(seed, &format!("{} score", call.step), 1000)) / 1000.0;
        if lot(seed, &format!("{} fails", call.step), 100) < failing {
            return match call.role.as_str() {
                "init" | "merger" | "ensembler" => {
                    Some(Ok(Reply::text(fenced("raise ValueError('no such column')"))))
                }
                "coder" | "planner" | "ens_planner" | "test" => {
                    Some(Err(AgentError::NoAnswer { reason: "refused".to_owned(), cost_usd: None }))
                }
                _ => None,
            };
        }
        let text = match call.role.as_str() {
            "init" | "merger" | "debugger" => fenced(&script(score)),
            "coder" => fenced(&block(score)),
            "ensembler" => fenced(&format!("{}{}", script(score), submitting())),
            _ => return None,
        };
        Some(Ok(Reply::text(text)))
    });
    if minimize {
        world = world.minimizing();
    }
    Drill::of(world)
        .thinking(move |call| seconds(lot(seed, &call.step, limit / 10)))
        .working(move |job| seconds(lot(seed, &job.script, limit / 7)))
        .price(move |call| price * (0.1 + seconds(lot(seed, &call.step, 10)) / 10.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    /// REQ-OR-024, REQ-OR-027, REQ-OR-029, REQ-OR-030, REQ-OR-043
    #[test]
    fn whatever_happens_the_best_is_kept_and_the_limits_hold(fate in fate()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let drill = drill_of(&fate);
            match drill.run().await {
                Ok(completed) => {
                    drill.check(&completed);
                    drill.stays(&completed).await;
                }
                Err(error) => {
                    let stopped = matches!(error, PipelineError::Stopped { .. });
                    assert!(!stopped, "{error:?}");
                    let elapsed = error.diagnostics().elapsed_seconds;
                    assert!(elapsed <= drill.limit() + GRACE, "{elapsed}");
                    let scored = drill.told(|event| match event {
                        Event::Evaluated { score, .. } => *score,
                        _ => None,
                    });
                    assert_eq!(scored, []);
                }
            }
        });
    }
}

/// REQ-OR-025
#[tokio::test(start_paused = true)]
async fn no_phase_before_the_last_touches_its_reserve() {
    let drill = Drill::new("M=2 T=4 K=4 L=2 R=4 time_limit_seconds=10000")
        .thinking(|_| 700.0)
        .working(|_| 300.0);
    drill.sound().await;
    let began = drill.world.records().into_iter().find_map(|record| match record {
        Record::Happened {
            at, event: Event::PhaseStarted { phase: Phase::Finalization }, ..
        } => Some(at),
        _ => None,
    });
    let began = began.unwrap().duration_since(jiff::Timestamp::UNIX_EPOCH).as_secs_f64();
    assert!(began <= 9000.0 + 1.0, "{began}");
}

/// A call that the deadline cuts off was paid for, though its bill was never seen.
///
/// REQ-OR-027
#[tokio::test(start_paused = true)]
async fn a_call_that_the_deadline_cuts_off_is_taken_to_have_cost_what_its_like_do() {
    // The last planner thinks for ever.
    let endless = |call: &Call| call.step.ends_with("inner-3/planner");
    let drill = Drill::new("M=1 T=1 K=4 L=1 time_limit_seconds=3600")
        .thinking(move |call| if endless(call) { 1e9 } else { 1.0 })
        .price(|_| 0.5);
    let run = drill.open();
    let completed = mle_star_search::run(&run.ctx()).await.unwrap();
    let records = drill.world.records();
    let cut_off = records.iter().filter_map(Record::finished).filter(|(_, output)| {
        matches!(output, Output::NotDone { lack: Lack::Time, cut_off: true })
    });
    assert_eq!(cut_off.count(), 1);
    let seen: f64 = records
        .iter()
        .filter_map(Record::finished)
        .filter_map(|(_, output)| output.cost_usd())
        .sum();
    assert!((completed.result.total_cost_usd.unwrap() - (seen + 0.5)).abs() < 1e-9);
}

/// The paper's selection may be worse than the initial solution; its submission does not replace
/// the early one then.
#[tokio::test(start_paused = true)]
async fn a_worse_submission_never_replaces_the_early_one() {
    let settings = "M=1 T=1 K=1 L=2 R=1 strict_paper_selection=true early_submission=true";
    let world = World::new(settings).on("ensembler", |_| fenced(&script(0.1)));
    let completed = world.run().await.unwrap();
    assert_eq!(completed.result.final_solution.score, Score::new(0.1));
    let published: Vec<Event> = world
        .events()
        .into_iter()
        .map(|(_, event)| event)
        .filter(|event| matches!(event, Event::Published { .. }))
        .collect();
    let score = Score::new(0.5).unwrap();
    assert_eq!(published, [Event::Published { score, from: SolutionPhase::Init }]);
    assert!(completed.result.phase_status.notes.iter().any(|note| note.contains("early")));
    assert!(!completed.result.submission_path.is_empty());
}
