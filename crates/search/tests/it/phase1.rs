//! Phase 1: Algorithm 1 and its failure paths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_search::evaluate::Purpose;
use mle_star_search::event::{Event, Phase};
use mle_star_search::models::{
    OutputSchema, Phase1Result, RetrievedModel, SolutionPhase, SolutionScript,
};
use mle_star_search::phase1::run_phase1;
use mle_star_search::roles::{
    check_data_usage, generate_candidate, merge_solutions, parse_retriever_output, retrieve_models,
};
use mle_star_search::{Error, PipelineError, Ports, Run};
use serde_json::json;

use crate::world::{World, block, broken, fenced, index, score, script, solution};

const NO_LEAK: &str =
    r#"{"answers": [{"leakage_status": "No Data Leakage", "code_block": "import math"}]}"#;

/// A script that fails before it can print its score.
fn failing() -> String {
    format!("{}{}", broken(), script(0.0))
}

/// A script that runs to the end and says nothing of its score.
const SILENT: &str = "print('done')\n";

async fn phase1(world: &World) -> Result<Phase1Result, Error> {
    let run = world.open();
    run_phase1(&run.ctx()).await
}

async fn retrieved(world: &World) -> Result<Vec<RetrievedModel>, Error> {
    let run = world.open();
    retrieve_models(&run.ctx()).await
}

/// A world whose candidates and merges score what is said, in that order. `None` fails, and no
/// debugger can help it.
fn scoring(candidates: &'static [Option<f64>], merges: &'static [Option<f64>]) -> World {
    let source = |score: Option<f64>| fenced(&score.map_or_else(failing, script));
    World::new(&format!("M={}", candidates.len()))
        .on("init", move |call| source(candidates[index(call, "candidate")]))
        .on("merger", move |call| source(merges[index(call, "merge") - 1]))
        .on("debugger", move |_| source(None))
}

fn retrieving(settings: &str, reply: impl Into<String>) -> World {
    let reply = reply.into();
    World::new(settings).on("retriever", move |_| reply.clone())
}

fn model(name: &str) -> RetrievedModel {
    RetrievedModel { model_name: name.to_owned(), example_code: "fit()".to_owned() }
}

fn models(names: &[&str]) -> serde_json::Value {
    names.iter().map(|name| json!({"model_name": name, "example_code": "fit()"})).collect()
}

/// A script as it is, but for the time at which it was written.
fn undated(script: &SolutionScript) -> SolutionScript {
    SolutionScript { created_at: Timestamp::UNIX_EPOCH, ..script.clone() }
}

fn candidate(content: &str, value: Option<f64>, model: &str) -> SolutionScript {
    SolutionScript {
        score: value.map(score),
        is_executable: value.is_some(),
        source_model: Some(model.to_owned()),
        ..SolutionScript::new(content, SolutionPhase::Init, Timestamp::UNIX_EPOCH)
    }
}

/// What was merged into what, by score.
fn merged_pairs(world: &World) -> Vec<(String, String)> {
    let text = |call: &Call, key: &str| {
        let code = call.input[key].as_str().unwrap();
        code.lines().find_map(|line| line.strip_prefix("score = ")).unwrap_or("?").to_owned()
    };
    let merges = world.calls_of("merger");
    merges.iter().map(|call| (text(call, "base_code"), text(call, "reference_code"))).collect()
}

fn pair(base: &str, reference: &str) -> (String, String) {
    (base.to_owned(), reference.to_owned())
}

/// `role` answers `reply` at one step, and as before elsewhere.
fn at_step(world: World, step: &'static str, reply: impl Into<String>) -> World {
    let reply = reply.into();
    world.on_call(move |call| (call.step == step).then(|| Ok(Reply::text(reply.as_str()))))
}

fn leak(code_block: &str) -> String {
    json!({"answers": [{"leakage_status": "Yes Data Leakage", "code_block": code_block}]})
        .to_string()
}

// ---- retrieval

/// REQ-P1-001, REQ-P1-002, REQ-P1-003, REQ-P1-007, REQ-P1-019
#[tokio::test]
async fn the_retriever_is_asked_once_with_the_web_at_hand_and_a_schema_to_fill() {
    let world = World::new("M=3");
    assert_eq!(
        retrieved(&world).await.unwrap(),
        [model("model-0"), model("model-1"), model("model-2")]
    );
    let calls = world.calls();
    assert_eq!(calls.len(), 1);
    let call = &calls[0];
    assert_eq!((call.role.as_str(), call.variant.as_deref()), ("retriever", None));
    assert_eq!(call.input, json!({"task_description": "Predict y from x.", "M": 3}));
    assert_eq!(call.tools, ["WebSearch", "WebFetch"]);
    assert_eq!(call.schema, Some(OutputSchema::RetrieverOutput.json_schema()));
    assert!(call.prompt.contains("Predict y from x."), "{}", call.prompt);
    assert_eq!(world.warnings(), [""; 0]);
    assert_eq!(
        world.events(),
        [(
            String::new(),
            Event::Retrieved {
                models: ["model-0", "model-1", "model-2"].map(str::to_owned).into()
            }
        )]
    );
}

/// REQ-P1-005, REQ-P1-007, REQ-P1-032
#[tokio::test]
async fn fewer_models_than_wanted_are_worked_with_after_a_warning() {
    let world = retrieving("M=4", json!({"models": models(&["a", "b", "c"])}).to_string());
    let result = phase1(&world).await.unwrap();
    assert_eq!(result.retrieved_models, [model("a"), model("b"), model("c")]);
    assert_eq!(result.candidate_solutions.len(), 3);
    assert_eq!(result.candidate_scores.len(), 3);
    assert_eq!(world.warnings(), ["A_retriever found 3 models of 4"]);
}

/// REQ-P1-007
#[tokio::test]
async fn of_more_models_than_wanted_the_first_are_taken() {
    let world = retrieving("M=2", json!({"models": models(&["a", "b", "c"])}).to_string());
    assert_eq!(retrieved(&world).await.unwrap(), [model("a"), model("b")]);
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-P1-005
#[tokio::test]
async fn no_models_end_the_run_by_name() {
    for reply in [r#"{"models": []}"#, "[]", "```json\n[]\n```"] {
        let world = retrieving("M=2", reply);
        let error = world.run().await.unwrap_err();
        assert!(matches!(error, PipelineError::Phase1 { .. }), "{reply}: {error:?}");
        assert_eq!(error.cause().to_string(), "A_retriever returned zero models", "{reply}");
        assert_eq!(world.calls().len(), 1, "{reply}");
    }
    let structured =
        Reply { structured: Some(json!({"models": []})), ..Reply::text("None, sorry.") };
    let error = parse_retriever_output(&structured).unwrap_err();
    assert_eq!(error.to_string(), "A_retriever returned zero models");
}

/// REQ-P1-006, REQ-P1-005
#[tokio::test]
async fn entries_without_name_or_code_are_dropped_with_a_warning() {
    let reply = json!({"models": [
        {"model_name": " ", "example_code": "fit()"},
        {"model_name": "a", "example_code": "fit()"},
        {"model_name": "b", "example_code": "\n\t"},
        {"model_name": "c", "example_code": "fit()"},
    ]});
    let world = retrieving("M=2", reply.to_string());
    assert_eq!(retrieved(&world).await.unwrap(), [model("a"), model("c")]);
    assert_eq!(world.warnings(), ["dropped 2 retrieved models without name or code"]);

    let world = retrieving("M=3", reply.to_string());
    assert_eq!(retrieved(&world).await.unwrap(), [model("a"), model("c")]);
    assert_eq!(
        world.warnings(),
        ["dropped 2 retrieved models without name or code", "A_retriever found 2 models of 3"]
    );
}

/// REQ-P1-006, REQ-P1-005
#[tokio::test]
async fn nothing_but_blank_entries_is_no_model_at_all() {
    let reply = json!({"models": [{"model_name": "", "example_code": "fit()"}]});
    let error = retrieved(&retrieving("M=1", reply.to_string())).await.unwrap_err();
    assert_eq!(error.to_string(), "A_retriever returned zero models");
}

/// REQ-P1-003, REQ-P1-004
#[test]
fn models_are_read_from_an_object_a_bare_array_a_fence_or_the_structured_part() {
    let (list, expected) = (models(&["a", "b"]), [model("a"), model("b")]);
    let object = json!({ "models": list });
    for text in [
        object.to_string(),
        list.to_string(),
        format!("```json\n{object:#}\n```"),
        format!("I found these:\n```\n{list}\n```\nGood luck!"),
    ] {
        let read = parse_retriever_output(&Reply::text(text.as_str())).unwrap();
        assert_eq!(read, expected, "{text}");
    }
    let structured = Reply { structured: Some(object), ..Reply::text("See the structured part.") };
    assert_eq!(parse_retriever_output(&structured).unwrap(), expected);
}

/// REQ-P1-004
#[test]
fn an_unreadable_reply_is_quoted_by_its_first_500_characters() {
    for garbage in ["é".repeat(600), json!({"models": [{"model_name": "a"}]}).to_string()] {
        let error = parse_retriever_output(&Reply::text(garbage.as_str())).unwrap_err();
        let quoted: String = garbage.chars().take(500).collect();
        assert_eq!(
            error.to_string(),
            format!("the reply of A_retriever could not be read: {quoted}")
        );
        assert!(matches!(error, Error::Retriever { excerpt } if excerpt == quoted));
    }
}

/// REQ-P1-004, REQ-P1-018
#[tokio::test]
async fn an_unreadable_retriever_ends_phase_1_before_anything_else_is_asked() {
    let world = retrieving("M=2", "I would use gradient boosting.");
    let error = world.run().await.unwrap_err();
    assert!(matches!(error, PipelineError::Phase1 { .. }), "{error:?}");
    assert_eq!(
        error.cause().to_string(),
        "the reply of A_retriever could not be read: I would use gradient boosting."
    );
    assert_eq!(world.calls().len(), 1);
}

/// REQ-P1-018
#[tokio::test]
async fn a_retriever_without_an_answer_is_told_with_its_reason() {
    let reason = "the prompt is too long".to_owned();
    let world = World::new("M=2").on_call(move |call| {
        let reason = reason.clone();
        (call.role == "retriever").then_some(Err(AgentError::NoAnswer { reason, cost_usd: None }))
    });
    let error = world.run().await.unwrap_err();
    assert_eq!(error.cause().to_string(), "A_retriever gave no answer: the prompt is too long");
}

// ---- candidates

/// REQ-P1-008, REQ-P1-009, REQ-P1-010, REQ-P1-011, REQ-P1-012
#[tokio::test]
async fn a_candidate_is_the_longest_fenced_code_and_knows_its_model() {
    let world = World::new("").on("init", |_| {
        format!("First:\n```\nimport x\n```\nThen:\n{}\nEnjoy.", fenced(&script(0.5)))
    });
    let run = world.open();
    let written = generate_candidate(&run.ctx(), &model("gbm")).await.unwrap();
    assert_eq!(
        undated(&written),
        SolutionScript { is_executable: true, ..candidate(&script(0.5), None, "gbm") }
    );
    let call = &world.calls()[0];
    assert_eq!(
        call.input,
        json!({
            "task_description": "Predict y from x.", "model_name": "gbm", "example_code": "fit()"
        })
    );
    assert_eq!((call.tools.as_slice(), &call.schema), (["Read".to_owned()].as_slice(), &None));
    for shown in ["Predict y from x.", "gbm", "fit()"] {
        assert!(call.prompt.contains(shown), "{shown}: {}", call.prompt);
    }
}

/// REQ-P1-011
#[tokio::test]
async fn a_reply_that_is_a_program_needs_no_fence() {
    let world = World::new("").on("init", |_| script(0.5));
    let run = world.open();
    let written = generate_candidate(&run.ctx(), &model("gbm")).await.unwrap();
    assert_eq!(written.content, script(0.5).trim_end());
}

/// REQ-P1-018, REQ-P1-020, REQ-P1-030, REQ-P1-031, REQ-P1-042
#[tokio::test]
async fn each_candidate_is_written_checked_and_run_in_this_order() {
    let world = scoring(&[Some(0.5)], &[]);
    phase1(&world).await.unwrap();
    assert_eq!(
        world.steps(),
        [
            "retriever",
            "candidate-0/init",
            "candidate-0/leakage",
            "candidate-0/attempt-0/run",
            "checks/data",
            "checks/leakage",
        ]
    );
}

/// REQ-P1-020
#[tokio::test]
async fn a_failing_candidate_is_mended_checked_again_and_run_again() {
    let world = World::new("M=1").on("init", |_| fenced(&broken()));
    let result = phase1(&world).await.unwrap();
    assert_eq!(result.candidate_scores, [Some(score(0.4))]);
    assert_eq!(
        world.steps()[1..7],
        [
            "candidate-0/init",
            "candidate-0/leakage",
            "candidate-0/attempt-0/run",
            "candidate-0/attempt-0/debugger",
            "candidate-0/attempt-0/leakage",
            "candidate-0/attempt-1/run",
        ]
    );
    assert_eq!(undated(&result.initial_solution), candidate(&script(0.4), Some(0.4), "model-0"));
}

/// REQ-P1-020, REQ-P1-042
#[tokio::test]
async fn what_is_run_is_the_candidate_without_its_leak() {
    let world = World::new("M=1");
    let world = at_step(world, "candidate-0/leakage", leak(&block(0.5)));
    let world = at_step(world, "candidate-0/leak-0/leakage_correction", fenced(&block(0.45)));
    let result = phase1(&world).await.unwrap();
    let run: Vec<_> = world.jobs().into_iter().map(|job| job.script).collect();
    assert_eq!(run, [script(0.45)]);
    assert_eq!(
        undated(&result.candidate_solutions[0]),
        candidate(&script(0.45), Some(0.45), "model-0")
    );
}

/// REQ-P1-021, REQ-P1-023, REQ-P1-032, REQ-P1-033
#[tokio::test]
async fn failed_candidates_keep_their_place_without_a_score() {
    let world = scoring(&[None, Some(0.7), None, Some(0.8)], &[Some(0.9)]);
    let result = phase1(&world).await.unwrap();
    let shown = Phase1Result {
        candidate_solutions: result.candidate_solutions.iter().map(undated).collect(),
        initial_solution: undated(&result.initial_solution),
        ..result
    };
    assert_eq!(
        shown,
        Phase1Result {
            retrieved_models: (0..4).map(|index| model(&format!("model-{index}"))).collect(),
            candidate_solutions: vec![
                candidate(&failing(), None, "model-0"),
                candidate(&script(0.7), Some(0.7), "model-1"),
                candidate(&failing(), None, "model-2"),
                candidate(&script(0.8), Some(0.8), "model-3"),
            ],
            candidate_scores: vec![None, Some(score(0.7)), None, Some(score(0.8))],
            initial_solution: solution(0.9),
            initial_score: score(0.9),
        }
    );
    assert_eq!(merged_pairs(&world), [pair("0.8", "0.7")]);
    let mut warnings = world.warnings();
    warnings.sort();
    assert_eq!(
        warnings,
        [
            "candidate `model-0` failed: ValueError: no such column",
            "candidate `model-2` failed: ValueError: no such column"
        ]
    );
}

/// REQ-P1-020, REQ-P1-021
#[tokio::test]
async fn a_candidate_gets_as_many_repairs_as_the_settings_allow() {
    let world = World::new("M=1 max_debug_attempts=2")
        .on("init", |_| fenced(&broken()))
        .on("debugger", |call| fenced(&format!("# {}\n{}", call.step, broken())));
    let error = phase1(&world).await.unwrap_err();
    assert!(matches!(error, Error::NoCandidate { tried: 1 }), "{error:?}");
    assert_eq!((world.calls_of("debugger").len(), world.jobs().len()), (2, 3));
}

/// REQ-P1-021, REQ-P1-032
#[tokio::test]
async fn a_candidate_that_prints_no_score_is_mended_and_then_counts_as_failed() {
    let world = scoring(&[Some(0.5), Some(0.6)], &[])
        .on("debugger", |_| "I cannot see what is wrong.".to_owned());
    let world = at_step(world, "candidate-1/init", fenced(SILENT));
    let result = phase1(&world).await.unwrap();
    assert_eq!(result.candidate_scores, [Some(score(0.5)), None]);
    assert_eq!(world.calls_of("debugger").len(), 3);
    let bug = world.calls_of("debugger")[0].input["bug"].clone();
    assert_eq!(
        bug,
        "Traceback (most recent call last):\nRuntimeError: the script finished without printing \
         Final Validation Performance"
    );
    let failed = "candidate `model-1` failed: RuntimeError: the script finished without printing \
                  Final Validation Performance";
    assert!(world.warnings().contains(&failed.to_owned()), "{:#?}", world.warnings());
}

/// REQ-P1-010, REQ-P1-012, REQ-P1-032
#[tokio::test]
async fn a_candidate_without_code_leaves_an_empty_place_and_is_neither_checked_nor_run() {
    let world = scoring(&[Some(0.5), Some(0.6)], &[]);
    let world = at_step(world, "candidate-0/init", "I'd rather not write this one.");
    let result = phase1(&world).await.unwrap();
    assert_eq!(
        result.candidate_solutions.iter().map(undated).collect::<Vec<_>>(),
        [candidate("", None, "model-0"), candidate(&script(0.6), Some(0.6), "model-1")]
    );
    assert_eq!(result.candidate_scores, [None, Some(score(0.6))]);
    let at_candidate_0: Vec<_> =
        world.steps().into_iter().filter(|step| step.starts_with("candidate-0/")).collect();
    assert_eq!(at_candidate_0, ["candidate-0/init"]);
    assert_eq!(world.warnings(), ["A_init wrote no code: I'd rather not write this one."]);
}

/// REQ-P1-012, REQ-P1-021
#[tokio::test]
async fn a_refused_candidate_leaves_an_empty_place_too() {
    let world = scoring(&[Some(0.5), Some(0.6)], &[]).on_call(|call| {
        (call.step == "candidate-1/init")
            .then(|| Err(AgentError::NoAnswer { reason: "refused".to_owned(), cost_usd: None }))
    });
    let result = phase1(&world).await.unwrap();
    assert_eq!(undated(&result.candidate_solutions[1]), candidate("", None, "model-1"));
    assert_eq!(result.initial_score, score(0.5));
}

/// REQ-P1-022
#[tokio::test]
async fn when_all_candidates_fail_the_error_counts_those_that_were_tried() {
    let world = scoring(&[None, None, None, None], &[]);
    let error = world.run().await.unwrap_err();
    assert!(matches!(error, PipelineError::Phase1 { .. }), "{error:?}");
    assert_eq!(
        error.cause().to_string(),
        "Phase 1 failed: all 4 candidates produced execution errors"
    );
    assert_eq!(world.calls_of("merger").len() + world.calls_of("data").len(), 0);

    let world = retrieving("M=4", models(&["a", "b", "c"]).to_string())
        .on("init", |_| fenced(&broken()))
        .on("debugger", |_| fenced(&broken()));
    assert_eq!(
        phase1(&world).await.unwrap_err().to_string(),
        "Phase 1 failed: all 3 candidates produced execution errors"
    );
}

/// An agent that answers for the first candidate only once the second was asked for.
#[derive(Debug)]
struct Waiting {
    agent: Box<dyn Agent>,
    second_asked: AtomicBool,
}

impl Agent for Waiting {
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        async move {
            if call.step == "candidate-1/init" {
                self.second_asked.store(true, Ordering::Relaxed);
            }
            if call.step == "candidate-0/init" {
                // Bounded, so that candidates one after the other fail here instead of hanging.
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
                assert!(self.second_asked.load(Ordering::Relaxed), "candidates do not overlap");
            }
            self.agent.ask(call).await
        }
        .boxed()
    }
}

/// REQ-P1-034, REQ-P1-035, REQ-P1-032
#[tokio::test]
async fn candidates_overlap_in_time_and_stay_in_retrieval_order() {
    let world = scoring(&[Some(0.6), Some(0.5)], &[Some(0.1)]);
    let ports = world.ports();
    let agent = Waiting { agent: ports.agent, second_asked: AtomicBool::new(false) };
    let ports = Ports { agent: Box::new(agent), ..ports };
    fs_err::create_dir_all(world.dir().root()).unwrap();
    let run = Run::create(world.dir(), world.header(), ports).unwrap();
    let result = run_phase1(&run.ctx()).await.unwrap();

    let steps = world.steps();
    let at = |key: &str| steps.iter().position(|step| step == key).unwrap();
    assert!(at("candidate-1/attempt-0/run") < at("candidate-0/init"), "{steps:#?}");
    assert_eq!(
        result.candidate_solutions.iter().map(undated).collect::<Vec<_>>(),
        [
            candidate(&script(0.6), Some(0.6), "model-0"),
            candidate(&script(0.5), Some(0.5), "model-1")
        ]
    );
    assert_eq!(result.candidate_scores, [Some(score(0.6)), Some(score(0.5))]);
}

/// REQ-P1-034
#[tokio::test]
async fn candidates_that_run_at_the_same_time_do_not_share_a_workspace() {
    let world = scoring(&[Some(0.6), Some(0.5)], &[Some(0.1)]);
    phase1(&world).await.unwrap();
    let mut places: Vec<_> = world.jobs().into_iter().map(|job| job.workspace).collect();
    places.sort();
    let dir = world.dir();
    assert_eq!(places, ["candidate-0", "candidate-1", "merge"].map(|lane| dir.workspace(lane)));
}

// ---- ranking and merging

/// REQ-P1-013, REQ-P1-014, REQ-P1-015, REQ-P1-016, REQ-P1-017
#[tokio::test]
async fn a_merge_is_a_script_of_its_own_made_of_base_and_reference() {
    let world = World::new("").on("merger", |_| format!("Done.\n{}", fenced(&script(0.55))));
    let run = world.open();
    let merged = merge_solutions(&run.ctx(), &solution(0.5), &solution(0.4)).await.unwrap();
    assert_eq!(undated(&merged), SolutionScript { score: None, ..solution(0.55) });
    let call = &world.calls()[0];
    assert_eq!(call.input, json!({"base_code": script(0.5), "reference_code": script(0.4)}));
    assert_eq!((call.tools.as_slice(), &call.schema), (["Read".to_owned()].as_slice(), &None));
    assert!(call.prompt.contains(&script(0.5)) && call.prompt.contains(&script(0.4)));
}

/// REQ-P1-023, REQ-P1-024, REQ-P1-025, REQ-P1-033, REQ-P1-041
#[tokio::test]
async fn candidates_are_merged_best_first_while_that_helps() {
    let world = scoring(&[Some(0.8), Some(0.9), Some(0.85)], &[Some(0.91), Some(0.89)]);
    let result = phase1(&world).await.unwrap();
    assert_eq!(merged_pairs(&world), [pair("0.9", "0.85"), pair("0.91", "0.8")]);
    assert_eq!(undated(&result.initial_solution), solution(0.91));
    assert_eq!(result.initial_score, score(0.91));
    let judged: Vec<_> = world
        .events()
        .into_iter()
        .filter(|(_, event)| matches!(event, Event::Merged { .. }))
        .collect();
    let merged = |rank, base, value, accepted| Event::Merged {
        rank,
        base: score(base),
        score: Some(score(value)),
        accepted,
    };
    assert_eq!(
        judged,
        [
            ("merge-1".to_owned(), merged(1, 0.9, 0.91, true)),
            ("merge-2".to_owned(), merged(2, 0.91, 0.89, false)),
        ]
    );
}

/// REQ-P1-025, REQ-P1-036, REQ-P1-042
#[tokio::test]
async fn one_merge_is_written_checked_and_run_before_the_next_is_begun() {
    let world = scoring(&[Some(0.9), Some(0.8), Some(0.7)], &[Some(0.91), Some(0.92)]);
    phase1(&world).await.unwrap();
    let steps = world.steps();
    let begin = steps.iter().position(|step| step.starts_with("merge-")).unwrap();
    assert_eq!(
        steps[begin..],
        [
            "merge-1/merger",
            "merge-1/leakage",
            "merge-1/attempt-0/run",
            "merge-2/merger",
            "merge-2/leakage",
            "merge-2/attempt-0/run",
            "checks/data",
            "checks/leakage",
        ]
    );
}

/// REQ-P1-026
#[tokio::test]
async fn a_merge_that_ties_is_accepted_and_merging_goes_on() {
    let world = scoring(&[Some(0.85), Some(0.8), Some(0.7)], &[Some(0.85), Some(0.84)]);
    let result = phase1(&world).await.unwrap();
    assert_eq!(merged_pairs(&world), [pair("0.85", "0.8"), pair("0.85", "0.7")]);
    assert_eq!(undated(&result.initial_solution), solution(0.85));
}

/// REQ-P1-027
#[tokio::test]
async fn the_first_merge_that_does_not_help_is_the_last() {
    let world = scoring(
        &[Some(0.9), Some(0.8), Some(0.7), Some(0.6)],
        &[Some(0.91), Some(0.89), Some(0.99)],
    );
    let result = phase1(&world).await.unwrap();
    assert_eq!(world.calls_of("merger").len(), 2);
    assert_eq!(result.initial_score, score(0.91));
}

/// REQ-P1-028
#[tokio::test]
async fn a_merge_that_cannot_be_made_to_run_ends_merging_and_the_base_is_kept() {
    let world = scoring(&[Some(0.9), Some(0.8), Some(0.7)], &[None, Some(0.99)]);
    let result = phase1(&world).await.unwrap();
    assert_eq!(merged_pairs(&world), [pair("0.9", "0.8")]);
    assert_eq!(world.calls_of("debugger").len(), 3);
    assert_eq!(undated(&result.initial_solution), candidate(&script(0.9), Some(0.9), "model-0"));
    assert_eq!(result.initial_score, score(0.9));
}

/// REQ-P1-028
#[tokio::test]
async fn a_merge_that_prints_no_score_is_a_failed_merge() {
    let world = scoring(&[Some(0.9), Some(0.8), Some(0.7)], &[])
        .on("merger", |_| fenced(SILENT))
        .on("debugger", |_| "It works for me.".to_owned());
    let result = phase1(&world).await.unwrap();
    assert_eq!(world.calls_of("merger").len(), 1);
    assert_eq!(undated(&result.initial_solution), candidate(&script(0.9), Some(0.9), "model-0"));
    let judged = Event::Merged { rank: 1, base: score(0.9), score: None, accepted: false };
    assert!(world.events().contains(&("merge-1".to_owned(), judged)), "{:#?}", world.events());
}

/// REQ-P1-028
#[tokio::test]
async fn a_merger_without_code_ends_merging_without_a_run() {
    let world = scoring(&[Some(0.9), Some(0.8), Some(0.7)], &[])
        .on("merger", |_| "These two do not go together.".to_owned());
    let result = phase1(&world).await.unwrap();
    let merging: Vec<_> =
        world.steps().into_iter().filter(|step| step.starts_with("merge-")).collect();
    assert_eq!(merging, ["merge-1/merger"]);
    assert_eq!(result.initial_score, score(0.9));
    assert_eq!(world.warnings(), ["A_merger wrote no code: These two do not go together."]);
}

/// REQ-P1-029
#[tokio::test]
async fn a_single_scored_candidate_is_not_merged() {
    for world in [scoring(&[Some(0.5)], &[]), scoring(&[None, Some(0.5), None], &[])] {
        let result = phase1(&world).await.unwrap();
        assert_eq!(world.calls_of("merger").len(), 0);
        assert_eq!(result.initial_score, score(0.5));
        assert_eq!(result.initial_solution.content, script(0.5));
    }
}

/// REQ-P1-023, REQ-P1-024
#[tokio::test]
async fn candidates_with_equal_scores_are_merged_in_retrieval_order() {
    let world = World::new("M=3")
        .on("init", |call| fenced(&format!("# {}\n{}", call.step, script(0.5))))
        .on("merger", |_| fenced(&script(0.5)));
    phase1(&world).await.unwrap();
    let merges = world.calls_of("merger");
    let first_line = |call: &Call, key: &str| {
        call.input[key].as_str().unwrap().lines().next().unwrap().to_owned()
    };
    assert_eq!(first_line(&merges[0], "base_code"), "# candidate-0/init");
    let references: Vec<_> = merges.iter().map(|call| first_line(call, "reference_code")).collect();
    assert_eq!(references, ["# candidate-1/init", "# candidate-2/init"]);
}

/// REQ-P1-023, REQ-P1-025, REQ-P1-026
#[tokio::test]
async fn for_a_minimized_metric_the_smallest_score_leads_and_a_smaller_merge_wins() {
    let world = scoring(
        &[Some(0.3), Some(0.1), Some(0.2), Some(0.4)],
        &[Some(0.1), Some(0.05), Some(0.06)],
    )
    .minimizing();
    let result = phase1(&world).await.unwrap();
    assert_eq!(merged_pairs(&world), [pair("0.1", "0.2"), pair("0.1", "0.3"), pair("0.05", "0.4")]);
    assert_eq!(undated(&result.initial_solution), solution(0.05));
    assert_eq!(result.initial_score, score(0.05));
}

// ---- the checks after merging

/// REQ-P1-030, REQ-P1-041
#[tokio::test]
async fn data_usage_is_checked_once_in_a_run_after_merging_and_before_phase_2() {
    let world = World::new("M=3 T=1 K=1 L=2 R=1");
    world.run().await.unwrap();
    let steps = world.steps();
    let checks: Vec<_> =
        (0..steps.len()).filter(|index| steps[*index].ends_with("/data")).collect();
    assert_eq!(checks.len(), 1, "{steps:#?}");
    let (before, after) = steps.split_at(checks[0]);
    assert!(before.iter().all(|step| step.starts_with("phase1/")), "{before:#?}");
    assert!(before.last().unwrap().starts_with("phase1/merge-2/"), "{before:#?}");
    assert_eq!(after[..2], ["phase1/checks/data", "phase1/checks/leakage"]);
    assert!(after[2..].iter().all(|step| !step.starts_with("phase1/")), "{after:#?}");
    assert_eq!(
        world.calls_of("data")[0].input,
        json!({"initial_solution": script(0.55), "task_description": "Predict y from x."})
    );
}

/// REQ-P1-030, REQ-P1-031, REQ-P1-033
#[tokio::test]
async fn an_unchanged_script_is_not_run_again_after_the_checks() {
    let world = scoring(&[Some(0.5)], &[]);
    let result = phase1(&world).await.unwrap();
    assert_eq!(world.jobs().len(), 1);
    assert_eq!(result.initial_solution, result.candidate_solutions[0]);
    assert_eq!(Some(result.initial_score), result.initial_solution.score);
}

/// REQ-P1-030, REQ-P1-031, REQ-P1-033, REQ-P1-042
#[tokio::test]
async fn what_the_data_check_changes_is_checked_for_leakage_and_then_run_once() {
    let world = scoring(&[Some(0.5)], &[]).on("data", |_| fenced(&script(0.7)));
    let world = at_step(world, "checks/leakage", leak(&block(0.7)));
    let world = at_step(world, "checks/leak-0/leakage_correction", fenced(&block(0.65)));
    let result = phase1(&world).await.unwrap();
    assert_eq!(
        world.steps()[4..],
        [
            "checks/data",
            "checks/leakage",
            "checks/leak-0/leakage_correction",
            "checks/attempt-0/run",
        ]
    );
    let run: Vec<_> = world.jobs().into_iter().map(|job| job.script).collect();
    assert_eq!(run, [script(0.5), script(0.65)]);
    assert_eq!(undated(&result.initial_solution), candidate(&script(0.65), Some(0.65), "model-0"));
    assert_eq!(result.initial_score, score(0.65));
    assert_eq!(result.candidate_scores, [Some(score(0.5))]);
}

/// REQ-P1-031, REQ-P1-033
#[tokio::test]
async fn a_leak_found_after_merging_is_mended_and_the_new_score_counts() {
    let world = scoring(&[Some(0.9)], &[]);
    let world = at_step(world, "checks/leakage", leak(&block(0.9)));
    let world = at_step(world, "checks/leak-0/leakage_correction", fenced(&block(0.6)));
    let result = phase1(&world).await.unwrap();
    assert_eq!(undated(&result.initial_solution), candidate(&script(0.6), Some(0.6), "model-0"));
    assert_eq!(result.initial_score, score(0.6));
}

/// REQ-P1-030, REQ-P1-033
#[tokio::test]
async fn a_worse_score_after_the_data_check_is_kept() {
    let world = scoring(&[Some(0.5), Some(0.4)], &[Some(0.6)]).on("data", |_| fenced(&script(0.3)));
    let result = phase1(&world).await.unwrap();
    assert_eq!(undated(&result.initial_solution), solution(0.3));
    assert_eq!(result.initial_score, score(0.3));
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-P1-030, REQ-P1-033
#[tokio::test]
async fn a_script_that_fails_after_the_data_check_is_mended_like_any_other() {
    let world = World::new("M=1").on("data", |_| fenced(&broken()));
    let result = phase1(&world).await.unwrap();
    assert_eq!(undated(&result.initial_solution), candidate(&script(0.4), Some(0.4), "model-0"));
    assert_eq!(result.initial_score, score(0.4));
}

/// REQ-P1-030, REQ-P1-031, REQ-P1-033
#[tokio::test]
async fn when_the_checked_script_cannot_be_made_to_run_the_merged_one_is_kept() {
    let world = scoring(&[Some(0.5), Some(0.4)], &[Some(0.6)]).on("data", |_| fenced(&failing()));
    let result = phase1(&world).await.unwrap();
    assert_eq!(undated(&result.initial_solution), solution(0.6));
    assert_eq!(result.initial_score, score(0.6));
    assert_eq!(
        world.warnings(),
        ["the checked script failed and the merged one is kept: ValueError: no such column"]
    );
}

/// REQ-P1-031, REQ-P1-033
#[tokio::test]
async fn a_checked_script_without_a_score_falls_back_too() {
    let world = scoring(&[Some(0.5)], &[])
        .on("data", |_| fenced(SILENT))
        .on("debugger", |_| "It works for me.".to_owned());
    let result = phase1(&world).await.unwrap();
    assert_eq!(result.initial_solution, result.candidate_solutions[0]);
    assert_eq!(
        world.warnings().last().unwrap(),
        "the checked script failed and the merged one is kept: RuntimeError: the script finished \
         without printing Final Validation Performance"
    );
}

/// REQ-P1-030
#[tokio::test]
async fn an_unreadable_data_check_changes_nothing() {
    let world = scoring(&[Some(0.5)], &[]).on("data", |_| "Looks good to me!".to_owned());
    let run = world.open();
    assert_eq!(check_data_usage(&run.ctx(), &solution(0.5)).await.unwrap(), solution(0.5));
    assert_eq!(world.warnings(), ["the reply of A_data could not be read: Looks good to me!"]);
}

/// REQ-P1-042
#[tokio::test]
async fn leakage_is_checked_in_each_candidate_each_merge_and_the_final_script() {
    let world =
        scoring(&[Some(0.6), Some(0.5)], &[Some(0.7)]).on("leakage", |_| NO_LEAK.to_owned());
    phase1(&world).await.unwrap();
    let checked: Vec<_> = world
        .calls_of("leakage")
        .into_iter()
        .map(|call| (call.step, call.input["code"].as_str().unwrap().to_owned()))
        .collect();
    let mut expected = [
        ("candidate-0/leakage", 0.6),
        ("candidate-1/leakage", 0.5),
        ("merge-1/leakage", 0.7),
        ("checks/leakage", 0.7),
    ]
    .map(|(step, value)| (step.to_owned(), script(value)));
    // The two candidates may come in either order.
    if checked[0].0 != expected[0].0 {
        expected.swap(0, 1);
    }
    assert_eq!(checked, expected);
}

// ---- the phase as a whole

/// REQ-P1-038
#[tokio::test]
async fn the_events_tell_the_phase_from_its_start_to_its_score() {
    let world = scoring(&[Some(0.5)], &[]).on("data", |_| fenced(&script(0.7)));
    let run = world.open();
    mle_star_search::run(&run.ctx()).await.ok();
    let clean = || Event::LeakageChecked { found: false, changed: false };
    let evaluated = |value| Event::Evaluated {
        purpose: Purpose::Validation,
        score: Some(score(value)),
        repairs: 0,
        error: None,
    };
    let events = world.events();
    let told: Vec<_> = events.iter().take_while(|(key, _)| key.starts_with("phase1")).collect();
    let expected = [
        ("phase1", Event::PhaseStarted { phase: Phase::Phase1 }),
        ("phase1", Event::Retrieved { models: vec!["model-0".to_owned()] }),
        ("phase1/candidate-0", clean()),
        ("phase1/candidate-0", evaluated(0.5)),
        ("phase1", Event::Ranked { candidates: vec![0] }),
        ("phase1/checks", Event::DataUsageChecked { changed: true }),
        ("phase1/checks", clean()),
        ("phase1/checks", evaluated(0.7)),
        ("phase1", Event::PhaseEnded { phase: Phase::Phase1, best: Some(score(0.7)) }),
    ]
    .map(|(key, event)| (key.to_owned(), event));
    assert_eq!(told, expected.iter().collect::<Vec<_>>());
}

/// REQ-P1-037
#[tokio::test]
async fn the_phase_itself_takes_no_time_worth_mentioning() {
    let world = World::new("M=8");
    let began = Instant::now();
    phase1(&world).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
