//! How the phases are tied together: order, lanes, failures, money and secrets.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_exec::machine::{GpuInfo, Machine};
use mle_star_exec::{Ended, ExecError, Job, Outcome};
use mle_star_profile::{Bounds, ProfileError};
use mle_star_search::event::{Event, Header, Phase, Record};
use mle_star_search::models::{
    AgentConfig, AgentType, CodeBlock, ConfigLayer, FinalResult, OuterStepRecord, Phase1Result,
    Phase2Result, Phase3Result, PhaseOutcome, PhaseStatus, PipelineConfig, RefinementAttempt,
    RetrievedModel, SolutionPhase, SolutionScript, build_default_agent_configs,
};
use mle_star_search::rundir::RunDir;
use mle_star_search::{Completed, Diagnostics, Error, PipelineError, Ports, Run, RunCtx};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::yield_now;

use crate::world::{
    World, block, broken, fenced, index, interpret, outcome, score, script, submitting,
};

/// The smallest run with two paths.
const SMALL: &str = "M=1 T=1 K=1 L=2 R=1";

/// A new run with other ports than the world's own.
fn open_with(world: &World, change: impl FnOnce(&mut Ports)) -> Run {
    fs_err::create_dir_all(world.dir().root()).unwrap();
    let mut ports = world.ports();
    change(&mut ports);
    Run::create(world.dir(), world.header(), ports).unwrap()
}

/// A whole run, which must end before long.
async fn in_time(run: &Run) -> FinalResult {
    let completed =
        tokio::time::timeout(Duration::from_secs(20), mle_star_search::run(&run.ctx())).await;
    completed.unwrap().unwrap().result
}

async fn result_of(world: &World) -> FinalResult {
    world.run().await.unwrap().result
}

/// No script of `lane` can be started.
fn cannot_run(lane: &'static str) -> impl Fn(&Job) -> Option<Result<Outcome, ExecError>> {
    move |job| (job.workspace.file_name() == Some(lane)).then(|| Err(no_process()))
}

fn no_process() -> ExecError {
    ExecError::Spawn { program: "python3".into(), source: io::Error::other("out of processes") }
}

/// What is said of a script that could not be started.
fn not_run(step: &str) -> String {
    format!("could not run a script at step `{step}`: failed to start `python3`: out of processes")
}

/// What a path that failed at once gives.
fn stand_in(phase1: &Phase1Result) -> Phase2Result {
    Phase2Result {
        ablation_summaries: vec![String::new()],
        refined_blocks: vec![CodeBlock {
            content: String::new(),
            category: None,
            outer_step: Some(0),
        }],
        best_solution: phase1.initial_solution.clone(),
        best_score: phase1.initial_score,
        step_history: vec![OuterStepRecord {
            outer_step: 0,
            ablation_summary: String::new(),
            code_block: String::new(),
            plan: String::new(),
            inner_loop_attempts: Vec::new(),
            best_score_after_step: phase1.initial_score,
            was_skipped: true,
            failed: true,
        }],
    }
}

/// The steps of the journal, as they began and ended, with their times.
fn boundaries(world: &World) -> Vec<(String, Timestamp)> {
    let steps = world.records().into_iter().filter_map(|record| match record {
        Record::Started { at, key, .. } | Record::Finished { at, key, .. } => {
            Some((key.to_string(), at))
        }
        _ => None,
    });
    steps.collect()
}

/// Where in the journal the steps below `place` begin and end.
fn span(world: &World, place: &str) -> (usize, usize) {
    let boundaries = boundaries(world);
    let inside = |(key, _): &(String, Timestamp)| key.starts_with(place);
    let first = boundaries.iter().position(inside).unwrap();
    (first, boundaries.iter().rposition(inside).unwrap())
}

fn finished_at(world: &World, step: &str) -> Timestamp {
    let at = world.records().into_iter().find_map(|record| match record {
        Record::Finished { at, key, .. } if key.as_str() == step => Some(at),
        _ => None,
    });
    at.unwrap()
}

fn path_ends(world: &World) -> Vec<Event> {
    let events = world.events().into_iter().map(|(_, event)| event);
    events.filter(|event| matches!(event, Event::PathEnded { .. })).collect()
}

fn contents(solutions: &[SolutionScript]) -> Vec<&str> {
    solutions.iter().map(|it| it.content.as_str()).collect()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

fn asked(world: &World) -> Vec<String> {
    sorted(world.calls().into_iter().map(|call| call.step).collect())
}

/// A result without what differs between any two runs: times and folders.
fn timeless(world: &World, result: &FinalResult) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| key != "created_at" && key != "total_duration_seconds");
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let text = serde_json::to_string(result).unwrap();
    let text = text.replace(world.folder.path().to_str().unwrap(), "");
    let mut value = serde_json::from_str(&text).unwrap();
    strip(&mut value);
    value
}

/// An agent that is held up by `wait` before it answers.
struct HeldUp<W> {
    agent: Box<dyn Agent>,
    wait: W,
}

impl<W> std::fmt::Debug for HeldUp<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeldUp")
    }
}

impl<W> Agent for HeldUp<W>
where
    W: Fn(&Call) -> BoxFuture<'static, ()> + Send + Sync,
{
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        async {
            (self.wait)(call).await;
            self.agent.ask(call).await
        }
        .boxed()
    }
}

/// A run whose agent is held up by `wait` before each answer.
fn open_held_up(
    world: &World,
    wait: impl Fn(&Call) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Run {
    open_with(world, |ports| {
        let agent = std::mem::replace(&mut ports.agent, Box::new(Nobody));
        ports.agent = Box::new(HeldUp { agent, wait });
    })
}

#[derive(Debug)]
struct Nobody;

impl Agent for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }

    fn ask<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        std::future::pending().boxed()
    }
}

async fn for_turns(turns: usize) {
    for _ in 0..turns {
        yield_now().await;
    }
}

// The way from a task to a result.

/// REQ-OR-002
#[test]
fn a_run_cannot_be_described_without_a_folder_of_data_and_sound_settings() {
    let world = World::new(SMALL);
    let missing = world.task.data_dir.join("missing");
    let empty = world.task.data_dir.join("empty/deeper");
    fs_err::create_dir_all(&empty).unwrap();
    let profile = |folder| mle_star_profile::profile(folder, &Bounds::default());
    assert!(matches!(profile(&missing), Err(ProfileError::NoFolder { path }) if path == missing));
    assert!(matches!(profile(&empty), Err(ProfileError::Empty { path }) if path == empty));
    for setting in ["M=0", "T=0", "K=0", "L=0", "R=0", "time_limit_seconds=0"] {
        let layer = ConfigLayer::from_pairs([setting]).unwrap();
        assert!(layer.resolve().is_err(), "{setting}");
    }
}

/// REQ-OR-012, REQ-OR-013, REQ-OR-015, REQ-OR-016, REQ-OR-045
#[tokio::test]
async fn a_single_path_goes_from_phase_1_to_phase_2_to_finalization() {
    let world = World::new("M=1 T=1 K=1 L=1 R=3");
    let result = result_of(&world).await;
    assert_eq!(
        world.steps(),
        [
            "phase1/retriever",
            "phase1/candidate-0/init",
            "phase1/candidate-0/leakage",
            "phase1/candidate-0/attempt-0/run",
            "phase1/checks/data",
            "phase1/checks/leakage",
            "phase2/path-0/outer-0/ablation",
            "phase2/path-0/outer-0/study/attempt-0/run",
            "phase2/path-0/outer-0/summarize",
            "phase2/path-0/outer-0/extract-0/extractor",
            "phase2/path-0/outer-0/inner-0/coder",
            "phase2/path-0/outer-0/inner-0/leakage",
            "phase2/path-0/outer-0/inner-0/attempt-0/run",
            "finalization/subsampling_extract",
            "finalization/test",
            "finalization/leakage",
            "finalization/attempt-0/run",
            "totals",
        ]
    );
    assert_eq!(result.phase3, None);
    assert_eq!(result.phase_status.phase3, PhaseOutcome::Skipped);
    let test = &world.calls_of("test")[1];
    assert_eq!(test.input["final_solution"], script(0.6));
}

/// REQ-OR-036
#[tokio::test]
async fn the_result_tells_everything_that_the_phases_gave() {
    let world = World::new("M=1 T=1 K=1 L=1");
    let Completed { result, submission } = world.run().await.unwrap();
    let initial = SolutionScript {
        score: Some(score(0.5)),
        source_model: Some("model-0".to_owned()),
        ..SolutionScript::new(
            script(0.5),
            SolutionPhase::Init,
            finished_at(&world, "phase1/candidate-0/init"),
        )
    };
    let refined = SolutionScript {
        content: script(0.6),
        phase: SolutionPhase::Refined,
        score: Some(score(0.6)),
        created_at: finished_at(&world, "phase2/path-0/outer-0/inner-0/coder"),
        ..initial.clone()
    };
    let expected = FinalResult {
        task: world.task.clone(),
        config: world.config.clone(),
        phase1: Phase1Result {
            retrieved_models: vec![RetrievedModel {
                model_name: "model-0".to_owned(),
                example_code: "fit()".to_owned(),
            }],
            candidate_solutions: vec![initial.clone()],
            candidate_scores: vec![Some(score(0.5))],
            initial_solution: initial,
            initial_score: score(0.5),
        },
        phase2_results: vec![Phase2Result {
            ablation_summaries: vec!["The score line matters most.".to_owned()],
            refined_blocks: vec![CodeBlock {
                content: block(0.5),
                category: None,
                outer_step: Some(0),
            }],
            best_solution: refined,
            best_score: score(0.6),
            step_history: vec![OuterStepRecord {
                outer_step: 0,
                ablation_summary: "The score line matters most.".to_owned(),
                code_block: block(0.5),
                plan: "raise the score".to_owned(),
                inner_loop_attempts: vec![RefinementAttempt {
                    plan: "raise the score".to_owned(),
                    score: Some(score(0.6)),
                    code_block: block(0.6),
                    was_improvement: true,
                }],
                best_score_after_step: score(0.6),
                was_skipped: false,
                failed: false,
            }],
        }],
        phase3: None,
        final_solution: SolutionScript {
            score: Some(score(0.6)),
            ..SolutionScript::new(
                submitting(),
                SolutionPhase::Final,
                finished_at(&world, "finalization/test"),
            )
        },
        submission_path: world.dir().submission().into_string(),
        total_duration_seconds: result.total_duration_seconds,
        total_cost_usd: None,
        contamination: None,
        phase_status: PhaseStatus {
            phase1: PhaseOutcome::Completed,
            phase2: PhaseOutcome::Completed,
            phase3: PhaseOutcome::Skipped,
            finalization: PhaseOutcome::Completed,
            cut_short: None,
            notes: Vec::new(),
        },
    };
    assert_eq!(result, expected);

    let kept = world.dir().solution(&submission.unwrap());
    assert_eq!(fs_err::read_to_string(kept).unwrap(), "id,y\n1,2\n");
    let Record::Opened { at: opened, .. } = &world.records()[0] else { panic!() };
    let whole = finished_at(&world, "totals").duration_since(*opened).as_secs_f64();
    let unseen = whole - result.total_duration_seconds;
    assert!((0.0..=1.0).contains(&unseen), "the last look at the clock may be missing: {unseen}");
}

/// REQ-OR-013, REQ-OR-014, REQ-OR-018
#[tokio::test]
async fn every_path_begins_with_the_initial_solution_and_ends_in_the_ensemble() {
    let world = World::new("M=2 T=1 K=1 L=3 R=1").on("coder", |call| {
        fenced(&block(0.6 + 0.05 * if call.lane == "path-1" { 1.0 } else { 0.0 }))
    });
    let result = result_of(&world).await;
    assert_eq!(world.calls_of("retriever").len(), 1);
    let studied = world.calls_of("ablation");
    let lanes: BTreeSet<_> = studied.iter().map(|call| call.lane.as_str()).collect();
    assert_eq!(lanes, BTreeSet::from(["path-0", "path-1", "path-2"]));
    for call in &studied {
        assert_eq!(call.input["solution_script"], result.phase1.initial_solution.content);
    }
    let scores: Vec<_> = result.phase2_results.iter().map(|path| path.best_score).collect();
    assert_eq!(scores, [score(0.6), score(0.65), score(0.6)]);
    let bests: Vec<_> =
        result.phase2_results.iter().map(|path| path.best_solution.clone()).collect();
    assert_eq!(result.phase3.unwrap().input_solutions, bests);
}

/// REQ-OR-012, REQ-OR-013, REQ-OR-014, REQ-OR-016, REQ-OR-017
#[tokio::test]
async fn no_phase_begins_before_the_one_before_it_has_ended() {
    let world = World::new("M=2 T=2 K=2 L=2 R=2");
    result_of(&world).await;
    let phases: Vec<_> = world
        .records()
        .into_iter()
        .filter_map(|record| match record {
            Record::Happened { at, event: Event::PhaseStarted { phase }, .. } => {
                Some((at, phase, None))
            }
            Record::Happened { at, event: Event::PhaseEnded { phase, best }, .. } => {
                Some((at, phase, Some(best)))
            }
            _ => None,
        })
        .collect();
    let told: Vec<_> = phases.iter().map(|(_, phase, best)| (*phase, *best)).collect();
    assert_eq!(
        told,
        [
            (Phase::Phase1, None),
            (Phase::Phase1, Some(Some(score(0.55)))),
            (Phase::Phase2, None),
            (Phase::Phase2, Some(Some(score(0.611)))),
            (Phase::Phase3, None),
            (Phase::Phase3, Some(Some(score(0.9)))),
            (Phase::Finalization, None),
            (Phase::Finalization, Some(Some(score(0.9)))),
        ]
    );
    assert!(phases.is_sorted_by(|a, b| a.0 < b.0), "{phases:#?}");
    for (pair, place) in phases.chunks(2).zip(["phase1/", "phase2/", "phase3/", "finalization/"]) {
        let (began, ended) = (pair[0].0, pair[1].0);
        let steps = boundaries(&world).into_iter().filter(|(key, _)| key.starts_with(place));
        let outside: Vec<_> = steps.filter(|(_, at)| *at < began || *at > ended).collect();
        assert_eq!(outside, []);
    }
}

/// REQ-OR-014, REQ-OR-016
#[tokio::test]
async fn a_path_that_beats_the_ensemble_is_finalized_unless_the_paper_is_followed() {
    for (strict, chosen) in
        [(false, (SolutionPhase::Refined, 0.6)), (true, (SolutionPhase::Ensemble, 0.2))]
    {
        let world = World::new(&format!("{SMALL} strict_paper_selection={strict}"))
            .on("ensembler", |_| fenced(&format!("{}{}", script(0.2), submitting())));
        let result = result_of(&world).await;
        let selected: Vec<_> = world
            .events()
            .into_iter()
            .filter(|(_, event)| matches!(event, Event::Selected { .. }))
            .collect();
        let expected = Event::Selected { from: chosen.0, score: score(chosen.1) };
        assert_eq!(selected, [("finalization".to_owned(), expected)]);
        assert_eq!(result.final_solution.score, Some(score(chosen.1)));
    }
}

// What every agent is told.

/// REQ-OR-006, REQ-OR-008, REQ-OR-057
#[tokio::test]
async fn all_fourteen_agents_are_asked_by_their_names_with_their_tools() {
    let world = World::new("M=2 T=1 K=2 L=2 R=1").on("init", |call| {
        fenced(&if call.lane == "candidate-0" { broken() } else { script(0.5) })
    });
    result_of(&world).await;
    let names: BTreeSet<_> = AgentType::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), 14);
    let configs = build_default_agent_configs();
    assert_eq!(configs.keys().map(ToString::to_string).collect::<BTreeSet<_>>(), names);
    let calls = world.calls();
    assert_eq!(calls.iter().map(|call| call.role.clone()).collect::<BTreeSet<_>>(), names);
    for call in calls {
        let agent: AgentType = serde_json::from_value(json!(call.role)).unwrap();
        let AgentConfig { tools, .. } = &configs[&agent];
        assert_eq!(call.tools, tools.clone().unwrap_or_default(), "{}", call.step);
    }
}

/// REQ-OR-007
#[tokio::test]
async fn every_agent_is_a_grandmaster_who_knows_the_task_the_metric_and_the_hardware() {
    let world = World::new(SMALL).minimizing();
    result_of(&world).await;
    let prompts: BTreeSet<_> = world.calls().into_iter().map(|call| call.system_prompt).collect();
    let expected = "You are a Kaggle grandmaster with expert-level skills in machine learning, \
                    data science, and competitive data analysis. You approach every task \
                    methodically, writing clean, efficient, and well-tested code. You always \
                    validate your solutions against the training data before submission.\n\n\
                    # Task\n\n\
                    <task_description>\nPredict y from x.\n</task_description>\n\n\
                    # Metric\n\nrmse, to be minimized (lower is better).\n\n\
                    # Machine that runs the scripts\n\n\
                    - 2 cores, 8 GiB of memory\n\
                    - No GPU\n\
                    - No network: nothing can be downloaded or installed\n\
                    - Python 3.11.7 with these packages: numpy 2.1.0\n";
    assert_eq!(prompts, BTreeSet::from([expected.to_owned()]));
}

/// REQ-OR-004, REQ-OR-007
#[tokio::test]
async fn the_gpus_of_the_machine_are_recorded_and_told_to_the_agents() {
    let world = World::new(SMALL);
    let gpus = GpuInfo {
        cuda_available: true,
        gpu_count: 2,
        gpu_names: vec!["NVIDIA H200".to_owned(), "NVIDIA L4".to_owned()],
        ..GpuInfo::default()
    };
    let header = world.header();
    let header =
        Header { machine: Machine { gpus: gpus.clone(), ..header.machine.clone() }, ..header };
    fs_err::create_dir_all(world.dir().root()).unwrap();
    let run = Run::create(world.dir(), header, world.ports()).unwrap();
    in_time(&run).await;
    assert_eq!(Run::read_header(&world.dir()).unwrap().machine.gpus, gpus);
    let told = "- 2 CUDA GPUs: NVIDIA H200, NVIDIA L4\n";
    for call in world.calls() {
        assert!(call.system_prompt.contains(told), "{}", call.step);
    }
}

// Settings.

/// REQ-OR-001, REQ-OR-028, REQ-OR-044
#[tokio::test]
async fn the_defaults_are_those_of_the_paper_and_a_run_with_them_completes() {
    let world = World::new("");
    assert_eq!(
        serde_json::to_value(PipelineConfig::default()).unwrap(),
        json!({
            "num_retrieved_models": 4,
            "outer_loop_steps": 4,
            "inner_loop_steps": 4,
            "num_parallel_solutions": 2,
            "ensemble_rounds": 5,
            "time_limit_seconds": 86_400,
            "subsample_limit": 30_000,
            "max_debug_attempts": 3,
            "max_budget_usd": null,
            "model": "sonnet",
            "agent_models": {},
            "claude_path": null,
            "permission_mode": "bypassPermissions",
            "denied_commands": [],
            "log_level": "INFO",
            "log_file": null,
            "phase_time_budget": {
                "phase1": 0.1, "phase2": 0.65, "phase3": 0.15, "finalization": 0.1,
            },
            "script_timeout_seconds": null,
            "script_memory_limit": null,
            "script_process_limit": null,
            "script_output_limit": null,
            "script_workspace_limit": null,
            "script_file_limit": null,
            "max_concurrent_sessions": 4,
            "tool_profile": "minimal",
            "session": "call",
            "web_search": "auto",
            "strict_paper_selection": false,
            "early_submission": true,
            "prompts_dir": null,
            "seed": 0,
        })
    );
    let result = result_of(&world).await;
    assert_eq!(
        result.config,
        PipelineConfig { early_submission: false, ..PipelineConfig::default() }
    );
    assert_eq!(result.phase1.retrieved_models.len(), 4);
    let attempts = |path: &Phase2Result| {
        path.step_history.iter().map(|step| step.inner_loop_attempts.len()).collect::<Vec<_>>()
    };
    assert_eq!(
        result.phase2_results.iter().map(attempts).collect::<Vec<_>>(),
        [[4, 4, 4, 4], [4, 4, 4, 4]]
    );
    assert_eq!(result.phase3.unwrap().ensemble_plans.len(), 5);
    assert_eq!(result.submission_path, world.dir().submission());
}

/// REQ-OR-028, REQ-OR-045
#[tokio::test]
async fn each_setting_can_be_given_alone_and_holds_for_the_whole_run() {
    let world = World::new("outer_loop_steps=1 max_budget_usd=2.5");
    let expected = PipelineConfig {
        outer_loop_steps: 1,
        max_budget_usd: Some(2.5),
        early_submission: false,
        ..PipelineConfig::default()
    };
    let result = result_of(&world).await;
    assert_eq!(result.config, expected);
    assert_eq!(Run::read_header(&world.dir()).unwrap().config, expected);
    let studies = world.calls_of("ablation").into_iter().map(|call| call.step);
    assert_eq!(
        sorted(studies.collect()),
        ["phase2/path-0/outer-0/ablation", "phase2/path-1/outer-0/ablation"]
    );
    for path in &result.phase2_results {
        assert_eq!(path.step_history.len(), 1);
        assert_eq!(path.step_history[0].inner_loop_attempts.len(), 4);
    }
}

// Side by side.

/// REQ-OR-019
#[tokio::test]
async fn paths_run_side_by_side() {
    let world = World::new("M=1 T=2 K=2 L=2 R=1");
    result_of(&world).await;
    let (first_of_0, last_of_0) = span(&world, "phase2/path-0/");
    let (first_of_1, last_of_1) = span(&world, "phase2/path-1/");
    assert!(first_of_1 < last_of_0, "path 1 began only after path 0 had ended");
    assert!(first_of_0 < last_of_1, "path 0 began only after path 1 had ended");
    assert_eq!(world.warnings(), [] as [&str; 0]);
}

/// REQ-OR-019
#[tokio::test]
async fn a_path_that_is_answered_only_after_the_other_was_asked_does_not_hold_up_the_run() {
    let world = World::new(SMALL);
    let (asked, _) = watch::channel(false);
    let run = open_held_up(&world, move |call| {
        let mut other = asked.subscribe();
        match call.lane.as_str() {
            "path-0" => async move {
                other.wait_for(|asked| *asked).await.unwrap();
            }
            .boxed(),
            lane => {
                if lane == "path-1" {
                    asked.send_replace(true);
                }
                async {}.boxed()
            }
        }
    });
    let result = in_time(&run).await;
    assert_eq!(result.phase_status.phase2, PhaseOutcome::Completed);
}

/// REQ-OR-020
#[tokio::test]
async fn every_lane_has_a_workspace_of_its_own() {
    let world = World::new("M=2 T=1 K=1 L=2 R=1");
    result_of(&world).await;
    let workspaces: BTreeSet<_> = world.jobs().into_iter().map(|job| job.workspace).collect();
    let lanes = ["candidate-0", "candidate-1", "ensemble", "final", "merge", "path-0", "path-1"];
    let expected: BTreeSet<_> =
        lanes.iter().map(|lane| world.dir().root().join("work").join(lane)).collect();
    assert_eq!(workspaces, expected);
    for job in world.jobs() {
        assert_eq!(job.data_dir, world.task.data_dir);
    }
}

/// REQ-OR-020
#[tokio::test]
async fn what_one_path_changes_the_other_does_not_see() {
    let value = |lane: &str, outer: usize| match (lane, outer) {
        ("path-0", 0) => 0.7,
        ("path-0", _) => 0.71,
        (_, 0) => 0.8,
        (_, _) => 0.81,
    };
    let world = World::new("M=1 T=2 K=1 L=2 R=1")
        .on("coder", move |call| fenced(&block(value(&call.lane, index(call, "outer")))));
    let result = result_of(&world).await;
    let studied = |step: &str| {
        let call = world.calls_of("ablation").into_iter().find(|call| call.step == step).unwrap();
        call.input["solution_script"].as_str().unwrap().to_owned()
    };
    assert_eq!(studied("phase2/path-0/outer-0/ablation"), script(0.5));
    assert_eq!(studied("phase2/path-1/outer-0/ablation"), script(0.5));
    assert_eq!(studied("phase2/path-0/outer-1/ablation"), script(0.7));
    assert_eq!(studied("phase2/path-1/outer-1/ablation"), script(0.8));
    let inputs = result.phase3.unwrap().input_solutions;
    assert_eq!(contents(&inputs), [script(0.71), script(0.81)]);
    assert_eq!(result.phase1.initial_solution.content, script(0.5));
}

/// REQ-OR-023
#[tokio::test]
async fn phase_3_waits_for_the_slowest_path() {
    let world = World::new(SMALL);
    let run =
        open_held_up(&world, |call| for_turns(if call.lane == "path-1" { 200 } else { 0 }).boxed());
    in_time(&run).await;
    let (_, last_of_0) = span(&world, "phase2/path-0/");
    let (_, last_of_1) = span(&world, "phase2/path-1/");
    let (first_of_3, _) = span(&world, "phase3/");
    assert!(last_of_0 < last_of_1, "path 1 was to be the slow one");
    assert!(last_of_1 < first_of_3, "Phase 3 did not wait");
    let ended = |path| Event::PathEnded { path, best: score(0.6), failure: None, cut_short: false };
    assert_eq!(path_ends(&world), [ended(0), ended(1)]);
}

/// REQ-OR-056
#[tokio::test]
async fn paths_wait_for_each_other_where_only_one_session_is_allowed() {
    let world = World::new("M=1 T=2 K=2 L=2 R=1 max_concurrent_sessions=1");
    result_of(&world).await;
    let (_, last_of_0) = span(&world, "phase2/path-0/");
    let (first_of_1, _) = span(&world, "phase2/path-1/");
    assert!(last_of_0 < first_of_1);
    assert_eq!(world.warnings(), ["only 1 paths run at the same time; the others wait"]);
}

/// REQ-OR-056
#[tokio::test]
async fn never_are_there_more_paths_at_work_than_sessions() {
    let world = World::new("M=1 T=1 K=1 L=4 R=1 max_concurrent_sessions=2");
    result_of(&world).await;
    let spans: Vec<_> = (0..4).map(|path| span(&world, &format!("phase2/path-{path}/"))).collect();
    let at_work = |moment: usize| {
        spans.iter().filter(|(first, last)| (*first..=*last).contains(&moment)).count()
    };
    let most = (0..boundaries(&world).len()).map(at_work).max();
    assert_eq!(most, Some(2));
}

/// REQ-OR-049
#[tokio::test]
async fn of_all_the_scripts_it_tries_a_path_keeps_only_the_best() {
    let ballast = "# fifty kilobytes of script\n".repeat(2_000);
    let initial = format!("{ballast}{}", script(0.5));
    let world = World::new("M=1 T=3 K=4 L=2 R=1").on("init", {
        let initial = initial.clone();
        move |_| fenced(&initial)
    });
    let result = result_of(&world).await;
    for path in &result.phase2_results {
        assert_eq!(path.step_history.len(), 3);
        assert_eq!(path.best_solution.content, initial.replace("0.5", "0.623"));
        let text = serde_json::to_string(path).unwrap();
        let summary = text.len() - serde_json::to_string(&path.best_solution).unwrap().len();
        assert!(summary < 4_000, "{summary} bytes besides the best solution");
    }
}

// What can fail, and what stands in for it.

/// REQ-OR-022, REQ-OR-040, REQ-OR-043
#[tokio::test]
async fn a_path_that_fails_takes_no_other_with_it() {
    let world = World::new(SMALL).on_job(cannot_run("path-0"));
    let result = result_of(&world).await;
    let why = not_run("phase2/path-0/outer-0/study/attempt-0/run");
    assert_eq!(result.phase2_results[0], stand_in(&result.phase1));
    assert_eq!(result.phase2_results[1].best_score, score(0.6));
    assert!(!result.phase2_results[1].step_history[0].failed);
    let inputs = &result.phase3.as_ref().unwrap().input_solutions;
    assert_eq!(contents(inputs), [script(0.5), script(0.6)]);
    assert_eq!(
        result.phase_status,
        PhaseStatus {
            phase1: PhaseOutcome::Completed,
            phase2: PhaseOutcome::Completed,
            phase3: PhaseOutcome::Completed,
            finalization: PhaseOutcome::Completed,
            cut_short: None,
            notes: vec![format!("path 0 failed: {why}")],
        }
    );
    assert_eq!(
        path_ends(&world),
        [
            Event::PathEnded { path: 0, best: score(0.5), failure: Some(why), cut_short: false },
            Event::PathEnded { path: 1, best: score(0.6), failure: None, cut_short: false },
        ]
    );
}

/// REQ-OR-022
#[tokio::test]
async fn a_path_may_fail_while_another_is_still_at_work() {
    let world = World::new("M=1 T=2 K=2 L=2 R=1").on_job(cannot_run("path-0"));
    let run =
        open_held_up(&world, |call| for_turns(if call.lane == "path-1" { 50 } else { 0 }).boxed());
    let result = in_time(&run).await;
    assert_eq!(result.phase2_results[0], stand_in(&result.phase1));
    let scores: Vec<_> = result.phase2_results[1]
        .step_history
        .iter()
        .flat_map(|step| step.inner_loop_attempts.iter().map(|attempt| attempt.score))
        .collect();
    assert_eq!(scores, [0.6, 0.601, 0.61, 0.611].map(|value| Some(score(value))));
}

/// REQ-OR-014, REQ-OR-022, REQ-OR-040, REQ-OR-043
#[tokio::test]
async fn if_all_paths_fail_the_ensemble_is_made_of_copies_of_the_initial_solution() {
    let world = World::new(SMALL).on_job(cannot_run("path-0")).on_job(cannot_run("path-1"));
    let result = result_of(&world).await;
    let placeholder = stand_in(&result.phase1);
    assert_eq!(result.phase2_results, [placeholder.clone(), placeholder]);
    let initial = &result.phase1.initial_solution;
    assert_eq!(initial.score, Some(score(0.5)));
    let inputs = &result.phase3.as_ref().unwrap().input_solutions;
    assert_eq!(*inputs, [initial.clone(), initial.clone()]);
    let solutions = &world.calls_of("ens_planner")[0].prompt;
    assert_eq!(solutions.matches(&script(0.5)).count(), 2, "{solutions}");
    assert_eq!(result.phase_status.phase2, PhaseOutcome::Failed);
    assert_eq!(
        result.phase_status.notes,
        [0, 1].map(|path| {
            let step = format!("phase2/path-{path}/outer-0/study/attempt-0/run");
            format!("path {path} failed: {}", not_run(&step))
        })
    );
    assert_eq!(result.submission_path, world.dir().submission());
}

/// REQ-OR-015, REQ-OR-040, REQ-OR-043
#[tokio::test]
async fn if_the_only_path_fails_the_initial_solution_is_finalized() {
    let world = World::new("M=1 T=1 K=1 L=1").on_job(cannot_run("path-0"));
    let result = result_of(&world).await;
    assert_eq!(result.phase2_results, [stand_in(&result.phase1)]);
    assert_eq!((&result.phase3, result.phase_status.phase3), (&None, PhaseOutcome::Skipped));
    assert_eq!(world.calls_of("test")[1].input["final_solution"], script(0.5));
    assert_eq!(result.final_solution.score, Some(score(0.5)));
    assert_eq!(result.submission_path, world.dir().submission());
}

/// REQ-OR-016, REQ-OR-041, REQ-OR-043
#[tokio::test]
async fn if_phase_3_fails_the_best_path_is_finalized() {
    let world = World::new(SMALL)
        .on("coder", |call| fenced(&block(if call.lane == "path-0" { 0.8 } else { 0.7 })))
        .on_job(cannot_run("ensemble"));
    let result = result_of(&world).await;
    assert_eq!(result.phase3, None);
    assert_eq!(result.phase_status.phase2, PhaseOutcome::Completed);
    assert_eq!(result.phase_status.phase3, PhaseOutcome::Failed);
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Completed);
    assert_eq!(world.calls_of("test")[1].input["final_solution"], script(0.8));
    assert_eq!(result.final_solution.score, Some(score(0.8)));
    assert_eq!(result.submission_path, world.dir().submission());
}

/// REQ-OR-041
#[tokio::test]
async fn the_best_path_is_the_lowest_where_less_is_better_and_the_last_of_equals() {
    let finalized = async |values: [f64; 3]| {
        let world = World::new("M=1 T=1 K=1 L=3 R=1")
            .minimizing()
            .on("init", |_| fenced(&script(0.9)))
            .on("coder", move |call| {
                let path = index(call, "path");
                fenced(&format!("{}\npath = {path}", block(values[path])))
            })
            .on_job(cannot_run("ensemble"));
        result_of(&world).await;
        world.calls_of("test")[1].input["final_solution"].as_str().unwrap().to_owned()
    };
    assert!(finalized([0.4, 0.3, 0.5]).await.contains("path = 1"));
    assert!(finalized([0.3, 0.5, 0.3]).await.contains("path = 2"));
}

/// REQ-OR-043
#[tokio::test]
async fn if_no_submission_can_be_written_the_best_solution_is_the_result() {
    let world = World::new(SMALL)
        .on("test", |_| fenced("print('done')"))
        .on("debugger", |_| "I have no idea.".to_owned());
    let Completed { result, submission } = world.run().await.unwrap();
    assert_eq!(submission, None);
    let best = result.phase3.as_ref().unwrap().best_ensemble.clone();
    assert_eq!(result.final_solution, best);
    assert_eq!(result.submission_path, "");
    assert_eq!(result.phase_status.phase3, PhaseOutcome::Completed);
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Failed);
    let warning = "no submission could be made; the best solution is kept: FileNotFoundError: \
                   ./final/submission.csv";
    assert!(world.warnings().contains(&warning.to_owned()), "{:#?}", world.warnings());
}

/// REQ-OR-043
#[tokio::test]
async fn if_the_submission_script_cannot_be_run_the_best_solution_is_the_result() {
    let world = World::new(SMALL).on_job(cannot_run("final"));
    let Completed { result, submission } = world.run().await.unwrap();
    assert_eq!(submission, None);
    let best = result.phase3.as_ref().unwrap().best_ensemble.clone();
    assert_eq!(result.final_solution, best);
    assert_eq!(result.submission_path, "");
    assert_eq!(
        (result.phase_status.phase3, result.phase_status.finalization),
        (PhaseOutcome::Completed, PhaseOutcome::Failed)
    );
}

/// REQ-OR-041, REQ-OR-043
#[tokio::test]
async fn a_phase_that_failed_is_told_with_its_cause() {
    for (lane, note) in [
        ("ensemble", format!("Phase 3 failed: {}", not_run("phase3/round-0/attempt-0/run"))),
        ("final", format!("finalization failed: {}", not_run("finalization/attempt-0/run"))),
    ] {
        let world = World::new(SMALL).on_job(cannot_run(lane));
        let result = result_of(&world).await;
        assert_eq!(result.phase_status.notes, std::slice::from_ref(&note));
        assert_eq!(world.warnings(), [note]);
    }
}

/// REQ-OR-022, REQ-OR-041, REQ-OR-043
#[tokio::test]
async fn a_finished_run_with_a_failed_part_is_handed_back_as_it_was() {
    for lane in ["path-0", "ensemble", "final"] {
        let failing = Arc::new(AtomicBool::new(true));
        let world = World::new(SMALL).on_job({
            let failing = Arc::clone(&failing);
            move |job| cannot_run(lane)(job).filter(|_| failing.load(Ordering::Relaxed))
        });
        let before = result_of(&world).await;
        let (calls, jobs) = (world.calls().len(), world.jobs().len());
        failing.store(false, Ordering::Relaxed);
        let run = world.reopen();
        let after = in_time(&run).await;
        assert_eq!(after, before, "{lane}");
        assert_eq!((world.calls().len(), world.jobs().len()), (calls, jobs), "{lane}");
    }
}

/// REQ-OR-022, REQ-OR-040
#[tokio::test]
async fn a_path_that_failed_stays_failed_when_the_run_goes_on_later() {
    let failing = Arc::new(AtomicBool::new(true));
    let world = World::new(SMALL)
        .on_job({
            let failing = Arc::clone(&failing);
            move |job| cannot_run("path-0")(job).filter(|_| failing.load(Ordering::Relaxed))
        })
        .on_call({
            let failing = Arc::clone(&failing);
            move |call| {
                let down = failing.load(Ordering::Relaxed) && call.role == "ensembler";
                down.then(|| Err(AgentError::Unauthorized { reason: "overloaded".to_owned() }))
            }
        });
    world.run().await.unwrap_err();
    failing.store(false, Ordering::Relaxed);
    let run = world.reopen();
    let completed = mle_star_search::run(&run.ctx()).await;
    let result = completed.expect("what was recorded no longer fits").result;
    assert_eq!(result.phase2_results[0], stand_in(&result.phase1));
    let failures: Vec<_> = path_ends(&world)
        .into_iter()
        .map(|event| matches!(event, Event::PathEnded { failure: Some(_), .. }))
        .collect();
    assert_eq!(failures, [true, false]);
}

/// REQ-OR-042
#[tokio::test]
async fn if_no_candidate_runs_the_error_tells_how_far_the_run_got() {
    let world = World::new("M=2 T=1 K=1").on_call(|call| {
        let text = match call.role.as_str() {
            "init" => fenced(&broken()),
            "debugger" => "I have no idea.".to_owned(),
            _ => return None,
        };
        Some(Ok(Reply { cost_usd: Some(0.25), ..Reply::text(text) }))
    });
    let error = world.run().await.unwrap_err();
    let PipelineError::Phase1 { source, diagnostics } = &error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "Phase 1 failed: all 2 candidates produced execution errors");
    let steps = world.steps();
    assert_eq!(
        **diagnostics,
        Diagnostics {
            elapsed_seconds: diagnostics.elapsed_seconds,
            // Two candidates, and three repairs of each.
            cost_usd: Some(2.0),
            last_finished_step: steps.last().cloned(),
            finished_steps: steps.len(),
            scripts: diagnostics.scripts.clone(),
        }
    );
    assert!(!diagnostics.scripts.is_empty());
    for name in &diagnostics.scripts {
        assert!(world.dir().solution(name).is_file(), "{name} is lost");
    }
    assert!(diagnostics.elapsed_seconds > 0.0);
    assert_eq!(error.diagnostics(), &**diagnostics);
    assert_eq!(
        serde_json::to_value(diagnostics).unwrap()["last_finished_step"],
        "phase1/candidate-1/attempt-2/debugger"
    );
}

/// REQ-OR-042
#[tokio::test]
async fn whatever_ends_phase_1_is_the_source_of_the_error_and_what_was_done_is_kept() {
    let cases: [(World, &str); 3] = [
        (
            World::new("M=2").on("retriever", |_| "No idea.".to_owned()),
            "the reply of A_retriever could not be read: No idea.",
        ),
        (
            World::new("M=2").on("retriever", |_| json!({ "models": [] }).to_string()),
            "A_retriever returned zero models",
        ),
        (
            World::new("M=2").on_job(cannot_run("merge")),
            "could not run a script at step `phase1/merge-1/attempt-0/run`",
        ),
    ];
    for (world, expected) in cases {
        let error = world.run().await.unwrap_err();
        assert!(matches!(error, PipelineError::Phase1 { .. }), "{error:?}");
        assert_eq!(error.cause().to_string(), expected);
        assert_eq!(error.diagnostics().finished_steps, world.steps().len());
        for job in world.jobs() {
            let kept = world.dir().root().join("solutions").read_dir_utf8().unwrap();
            let mut kept = kept.map(|file| fs_err::read_to_string(file.unwrap().path()).unwrap());
            assert!(kept.any(|script| script == job.script), "a script was lost");
        }
    }
}

// Agents that cannot be asked.

fn unavailable() -> AgentError {
    AgentError::Unauthorized { reason: "overloaded".to_owned() }
}

fn unauthorized() -> AgentError {
    AgentError::Unauthorized { reason: "the key was revoked".to_owned() }
}

/// REQ-OR-051
#[tokio::test]
async fn an_agent_that_cannot_be_asked_stops_the_run_and_nothing_done_is_done_again() {
    const SETTINGS: &str = "M=2 T=1 K=2 L=2 R=2";
    let undisturbed = World::new(SETTINGS);
    let expected = timeless(&undisturbed, &result_of(&undisturbed).await);
    for (step, error) in [
        ("phase1/retriever", unavailable as fn() -> AgentError),
        ("phase1/candidate-1/init", unauthorized),
        ("phase2/path-0/outer-0/inner-1/coder", unavailable),
        ("phase2/path-1/outer-0/ablation", unauthorized),
        ("phase3/round-1/ensembler", unavailable),
        ("finalization/test", unauthorized),
    ] {
        let down = Arc::new(AtomicBool::new(true));
        let world = World::new(SETTINGS).on_call({
            let down = Arc::clone(&down);
            move |call| {
                let fails = call.step == step && down.load(Ordering::Relaxed);
                fails.then(|| Err(error()))
            }
        });
        let stopped = world.run().await.unwrap_err();
        let PipelineError::Stopped { source, diagnostics } = &stopped else { panic!("{step}") };
        let Error::Agent { key, source } = source.as_ref() else { panic!("{step}: {source:?}") };
        assert_eq!((key.as_str(), source.to_string()), (step, error().to_string()));
        let done = world.steps();
        assert_eq!(diagnostics.finished_steps, done.len());
        assert!(!done.iter().any(|it| it == step), "{step} was recorded");
        let failed = |event: &Event| matches!(event, Event::PathEnded { failure: Some(_), .. });
        assert!(!path_ends(&world).iter().any(failed), "{step} was held against a path");

        down.store(false, Ordering::Relaxed);
        let run = world.reopen();
        let result = in_time(&run).await;
        assert_eq!(timeless(&world, &result), expected, "{step}");
        assert_eq!(sorted(world.steps()), sorted(undisturbed.steps()));
        let mut calls = asked(&undisturbed);
        calls.push(step.to_owned());
        assert_eq!(asked(&world), sorted(calls), "only {step} is asked twice");
        assert_eq!(world.jobs().len(), undisturbed.jobs().len(), "{step}");
    }
}

/// REQ-OR-022
#[tokio::test]
async fn an_agent_that_gives_no_answer_stops_nothing() {
    let world = World::new("M=1 T=1 K=2 L=2 R=1").on_call(|call| {
        let refuses = call.lane == "path-0" && call.role == "coder";
        refuses.then(|| Err(AgentError::NoAnswer { reason: "refused".to_owned(), cost_usd: None }))
    });
    let result = result_of(&world).await;
    let scores: Vec<_> = result.phase2_results.iter().map(|path| path.best_score).collect();
    assert_eq!(scores, [score(0.5), score(0.601)]);
    assert_eq!(result.phase_status.notes, [] as [&str; 0]);
    assert!(world.steps().contains(&"phase2/path-0/outer-0/inner-0/coder".to_owned()));
}

/// REQ-OR-051
#[tokio::test]
async fn a_second_run_knows_nothing_of_the_first() {
    let world = World::new(SMALL);
    let first = result_of(&world).await;
    let once = asked(&world);
    let Err(Error::Journal(_)) = Run::create(world.dir(), world.header(), world.ports()) else {
        panic!("the second run took the place of the first");
    };
    let beside = RunDir::at(world.dir().root().with_file_name("beside"));
    fs_err::create_dir_all(beside.root()).unwrap();
    let run = Run::create(beside, world.header(), world.ports()).unwrap();
    let mut second = in_time(&run).await;
    second.submission_path = second.submission_path.replace("/beside/", "/run/");
    assert_eq!(second, first);
    let twice = once.iter().flat_map(|step| [step.clone(), step.clone()]).collect();
    assert_eq!(asked(&world), sorted(twice));
}

// Money.

/// A world in which every useful reply costs something.
fn costing(settings: &str, cost: impl Fn(&Call) -> Option<f64> + Send + Sync + 'static) -> World {
    let useful = World::new("").ports().agent;
    World::new(settings).on_call(move |call| {
        let mut answer = useful.ask(call);
        // It only lets others go first.
        let mut reply = std::iter::repeat_with(|| (&mut answer).now_or_never()).flatten();
        let reply = reply.next()?;
        Some(reply.map(|reply| Reply { cost_usd: cost(call), ..reply }))
    })
}

/// REQ-OR-036
#[tokio::test]
async fn the_costs_of_all_calls_add_up_and_those_of_unanswered_ones_too() {
    let world = costing("M=1 T=1 K=2 L=2 R=1", |_| Some(0.25)).on_call(|call| {
        (call.role == "planner").then(|| {
            Err(AgentError::NoAnswer { reason: "refused".to_owned(), cost_usd: Some(10.0) })
        })
    });
    let result = result_of(&world).await;
    let planners = world.calls_of("planner").len();
    assert_eq!(planners, 2);
    let others = world.calls().len() - planners;
    let expected = 20.0 + 0.25 * f64::from(u32::try_from(others).unwrap());
    assert_eq!(result.total_cost_usd, Some(expected));
}

/// REQ-OR-036
#[tokio::test]
async fn the_cost_is_unknown_where_no_agent_tells_it_and_known_where_one_does() {
    let silent = World::new(SMALL);
    assert_eq!(result_of(&silent).await.total_cost_usd, None);
    let free = costing(SMALL, |call| (call.role == "retriever").then_some(0.0));
    assert_eq!(result_of(&free).await.total_cost_usd, Some(0.0));
}

/// REQ-OR-036, REQ-OR-042
#[tokio::test]
async fn what_was_paid_before_a_stop_is_part_of_the_total_and_paid_once() {
    let down = Arc::new(AtomicBool::new(true));
    let world = costing(SMALL, |_| Some(0.5)).on_call({
        let down = Arc::clone(&down);
        move |call| {
            let fails = call.role == "ensembler" && down.load(Ordering::Relaxed);
            fails.then(|| Err(unavailable()))
        }
    });
    let stopped = world.run().await.unwrap_err();
    let half = |calls: usize| Some(0.5 * f64::from(u32::try_from(calls).unwrap()));
    assert_eq!(stopped.diagnostics().cost_usd, half(world.calls().len() - 1));
    down.store(false, Ordering::Relaxed);
    let run = world.reopen();
    let result = in_time(&run).await;
    assert_eq!(result.total_cost_usd, half(world.calls().len() - 1));
}

// Secrets.

const SECRET: &str = "sk-ant-0123456789";

fn keeping_secrets(world: &World) -> Run {
    open_with(world, |ports| ports.secrets = vec![SECRET.to_owned()])
}

/// All text in the run directory.
fn all_files(world: &World) -> Vec<(String, String)> {
    let mut folders = vec![world.dir().root().to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.to_string(), fs_err::read_to_string(&path).unwrap()));
            }
        }
    }
    files
}

fn assert_no_secret(world: &World) {
    let telling: Vec<_> = all_files(world)
        .into_iter()
        .filter_map(|(path, text)| text.contains(SECRET).then_some(path))
        .collect();
    assert_eq!(telling, [] as [&str; 0]);
}

#[tokio::test]
async fn a_secret_in_a_reply_or_in_what_a_script_prints_is_not_written_down() {
    let world = World::new(SMALL)
        .on("init", |_| fenced(&format!("# {SECRET}\n{}", script(0.5))))
        .on("summarize", |_| format!("The key is {SECRET}, twice {SECRET}."))
        .on_job(|job| {
            let mut said = interpret(job);
            said.stdout.text = format!("{SECRET}\n{}", said.stdout.text);
            said.stderr.text = format!("warning: {SECRET}");
            Some(Ok(said))
        });
    let result = in_time(&keeping_secrets(&world)).await;
    assert_no_secret(&world);
    let summary = &result.phase2_results[0].ablation_summaries[0];
    assert_eq!(summary, "The key is [redacted], twice [redacted].");
    assert_eq!(result.phase1.initial_solution.content, format!("# [redacted]\n{}", script(0.5)));
    assert!(!serde_json::to_string(&result).unwrap().contains(SECRET));
    for call in world.calls() {
        assert!(!call.prompt.contains(SECRET), "{} is told a secret", call.step);
    }
}

#[tokio::test]
async fn a_secret_in_a_traceback_is_not_written_down() {
    let world = World::new(SMALL).on("debugger", |_| "I have no idea.".to_owned()).on_job(|job| {
        let stderr = format!("Traceback (most recent call last):\nKeyError: '{SECRET}'\n");
        let fails = job.workspace.file_name() == Some("path-0");
        fails.then(|| Ok(outcome(Ended::Exited { code: 1 }, "", &stderr)))
    });
    in_time(&keeping_secrets(&world)).await;
    assert_no_secret(&world);
    let bug = &world.calls_of("debugger")[0].input["bug"];
    assert!(bug.as_str().unwrap().contains("KeyError: '[redacted]'"), "{bug}");
}

#[tokio::test]
async fn a_secret_in_a_structured_reply_is_not_written_down() {
    let world = World::new(SMALL).on_call(|call| {
        let structured = json!({ "models": [
            { "model_name": format!("model {SECRET}"), "example_code": SECRET },
        ] });
        (call.role == "retriever").then(|| {
            Ok(Reply { structured: Some(structured), ..Reply::text("See the structured part.") })
        })
    });
    in_time(&keeping_secrets(&world)).await;
    assert_no_secret(&world);
}

#[tokio::test]
async fn a_secret_in_the_reason_for_no_answer_is_not_written_down() {
    let world = World::new(SMALL).on_call(|call| {
        let reason = format!("{SECRET} may not do this");
        (call.role == "summarize").then(|| Err(AgentError::NoAnswer { reason, cost_usd: None }))
    });
    in_time(&keeping_secrets(&world)).await;
    assert_no_secret(&world);
}

// The one place where it all comes together.

fn gives<T>(_: impl Future<Output = Result<T, PipelineError>>) {}

fn part_gives<T>(_: impl Future<Output = Result<T, Error>>) {}

/// REQ-OR-055
#[test]
fn one_function_of_one_module_ties_the_phases_together() {
    fn whole(ctx: &RunCtx<'_>) {
        gives::<Completed>(mle_star_search::run(ctx));
    }
    fn parts(ctx: &RunCtx<'_>, phase1: &Phase1Result, best: &SolutionScript) {
        part_gives::<Phase1Result>(mle_star_search::phase1::run_phase1(ctx));
        part_gives::<Phase2Result>(mle_star_search::phase2::run_phase2_outer_loop(
            ctx,
            best,
            phase1.initial_score,
        ));
        part_gives::<Phase3Result>(mle_star_search::phase3::run_phase3(ctx, &[]));
        part_gives::<mle_star_search::finalize::Finalized>(
            mle_star_search::finalize::run_finalization(ctx, best, &[]),
        );
    }
    let _: fn(&RunCtx<'_>) = whole;
    let _: fn(&RunCtx<'_>, &Phase1Result, &SolutionScript) = parts;
}
