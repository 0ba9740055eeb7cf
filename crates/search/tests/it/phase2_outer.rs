//! Phase 2, outer loop: Algorithm 2, lines 4-8 and 26-28.

use std::time::Duration;

use mle_star_agent::{AgentError, Call, Reply};
use mle_star_exec::{Ended, Job};
use mle_star_search::Error;
use mle_star_search::block::validate_code_block;
use mle_star_search::event::Event;
use mle_star_search::models::{
    AgentConfig, AgentType, CodeBlock, ExtractorOutput, MetricDirection, OuterStepRecord,
    OutputSchema, Phase2Result, RefinementAttempt, SolutionPhase, SolutionScript,
    is_improvement_or_equal,
};
use mle_star_search::phase2::{run_phase2_inner_loop, run_phase2_outer_loop};
use mle_star_search::roles::{ExtractorReply, invoke_ablation, invoke_extractor, invoke_summarize};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{
    World, block, broken, code_block, fenced, index, outcome, score, script, solution,
};

/// What the usual ablation agent writes, and what that prints.
const STUDY: &str = "print('without the score: -0.1')";
const STUDY_OUTPUT: &str = "without the score: -0.1\n";

/// What the usual summarizer and the usual extractor write.
const SUMMARY: &str = "The score line matters most.";
const PLAN: &str = "raise the score";

const STUDY_FAILED: &str = "Ablation study failed for this step";
const NOT_FOUND: &str = "The previously extracted code block was not found in the solution. \
                         Please extract the code block exactly as it appears in the script.";

/// One path of Phase 2 that starts from `initial`. When scripts were written is left out.
async fn refine(world: &World, initial: &SolutionScript) -> Phase2Result {
    let run = world.open();
    let ctx = run.ctx().scope("phase2").scope("path-0").in_lane("path-0");
    let mut result = run_phase2_outer_loop(&ctx, initial, initial.score.unwrap()).await.unwrap();
    result.best_solution.created_at = initial.created_at;
    result
}

/// A script of the inner loop that scored `value`.
fn refined(value: f64) -> SolutionScript {
    SolutionScript { phase: SolutionPhase::Refined, ..solution(value) }
}

/// A reply of the extractor: blocks, each with its plan.
fn plans(plans: &[(&str, &str)]) -> String {
    let plans: Vec<_> =
        plans.iter().map(|(block, plan)| json!({"code_block": block, "plan": plan})).collect();
    json!({ "plans": plans }).to_string()
}

/// The block of the script in a call that decides its score.
fn score_line(call: &Call) -> String {
    let script = call.input["solution_script"].as_str().unwrap();
    script.lines().find(|line| line.starts_with("score = ")).unwrap().to_owned()
}

/// The calls of `role` at one outer step.
fn calls_at(world: &World, role: &str, outer_step: usize) -> Vec<Call> {
    let calls = world.calls_of(role).into_iter();
    calls.filter(|call| index(call, "outer") == outer_step).collect()
}

fn inputs(calls: &[Call]) -> Vec<Value> {
    calls.iter().map(|call| call.input.clone()).collect()
}

/// The studies that were run. Only solutions print their score.
fn studies(world: &World) -> Vec<Job> {
    world.jobs().into_iter().filter(|job| !job.script.contains("score = ")).collect()
}

/// A world in which the coder of outer step `t` reaches the `t`-th score.
fn reaching(settings: &str, scores: &'static [f64]) -> World {
    World::new(settings).on("coder", move |call| fenced(&block(scores[index(call, "outer")])))
}

fn assert_shows(prompt: &str, phrases: &[&str]) {
    for phrase in phrases {
        assert!(prompt.contains(phrase), "`{phrase}` is not in:\n{prompt}");
    }
}

/// Asserts that each phrase stands in `prompt` after the one before it.
fn assert_shows_in_order(prompt: &str, phrases: &[&str]) {
    let mut rest = prompt;
    for phrase in phrases {
        let Some((_, after)) = rest.split_once(phrase) else {
            panic!("`{phrase}` is missing or misplaced in:\n{prompt}");
        };
        rest = after;
    }
}

// The agents.

/// REQ-P2O-001, REQ-P2O-008, REQ-P2O-012, REQ-P2O-014
#[test]
fn the_three_agents_are_set_up_as_specified() {
    let set_up = |agent_type, description: &str, tools: Option<&str>, output_schema| AgentConfig {
        agent_type,
        description: description.to_owned(),
        system_prompt: None,
        tools: tools.map(|tool| vec![tool.to_owned()]),
        model: None,
        output_schema,
        max_turns: None,
    };
    let expected = [
        set_up(
            AgentType::Ablation,
            "Agent that generates ablation study code to identify impactful solution components",
            Some("Read"),
            None,
        ),
        set_up(
            AgentType::Summarize,
            "Agent that summarizes raw ablation study output into a concise textual summary",
            None,
            None,
        ),
        set_up(
            AgentType::Extractor,
            "Agent that identifies the most impactful code block and proposes a refinement plan",
            Some("Read"),
            Some(OutputSchema::ExtractorOutput),
        ),
    ];
    for expected in expected {
        let config = AgentConfig::for_agent(expected.agent_type);
        assert_eq!(config, expected);
        assert_eq!(
            config.to_agent_definition("the template"),
            json!({
                "description": expected.description,
                "prompt": "the template",
                "tools": expected.tools,
                "model": null,
            })
        );
        let schema = expected.output_schema.map(OutputSchema::json_schema);
        assert_eq!(
            config.to_output_format(),
            schema.map(|schema| json!({"type": "json_schema", "schema": schema}))
        );
    }
}

/// REQ-P2O-038, REQ-P2O-001, REQ-P2O-008, REQ-P2O-012, REQ-P2O-014
#[tokio::test]
async fn the_three_agents_are_reached_only_through_the_agent_port() {
    let world = World::new("T=1 K=1 model=opus");
    refine(&world, &solution(0.5)).await;

    let schema = OutputSchema::ExtractorOutput.json_schema();
    let calls: Vec<_> = world
        .calls()
        .into_iter()
        .take(3)
        .map(|call| (call.role, call.variant, call.tools, call.schema, call.model))
        .collect();
    let (read, opus) = (vec!["Read".to_owned()], || "opus".to_owned());
    assert_eq!(
        calls,
        [
            ("ablation".to_owned(), None, read.clone(), None, opus()),
            ("summarize".to_owned(), None, Vec::new(), None, opus()),
            ("extractor".to_owned(), None, read, Some(schema), opus()),
        ]
    );
    // Every step was a call or a run: nothing else had an effect.
    let asked: Vec<String> = world.calls().into_iter().map(|call| call.step).collect();
    let (runs, others): (Vec<_>, Vec<_>) =
        world.steps().into_iter().partition(|step| step.ends_with("/run"));
    assert_eq!(others, asked);
    assert_eq!(runs.len(), world.jobs().len());
}

/// REQ-P2O-039
#[test]
fn the_outer_loop_lives_in_one_module() {
    let name = std::any::type_name_of_val(&run_phase2_outer_loop);
    assert_eq!(name, "mle_star_search::phase2::outer::run_phase2_outer_loop");
    for name in [
        std::any::type_name_of_val(&invoke_ablation),
        std::any::type_name_of_val(&invoke_summarize),
        std::any::type_name_of_val(&invoke_extractor),
    ] {
        assert!(name.starts_with("mle_star_search::roles::"), "{name}");
    }
}

// A_abl.

/// REQ-P2O-002, REQ-P2O-005, REQ-P2O-006, REQ-P2O-007, REQ-P2O-042
#[tokio::test]
async fn the_ablation_prompt_carries_every_instruction_of_figure_12() {
    let world = World::new("T=3 K=1")
        .on("summarize", |call| format!("Finding of step {}.", index(call, "outer")));
    refine(&world, &solution(0.5)).await;

    let calls = world.calls_of("ablation");
    for call in &calls {
        assert_shows(
            &call.prompt,
            &[
                "You are a Kaggle grandmaster",
                call.input["solution_script"].as_str().unwrap(),
                "performs an ablation study on this solution",
                "Choose 2-3 parts of the solution",
                "modified or disabled",
                "Concentrate on parts that no",
                "ablation study has examined",
                "Evaluate on the validation set only",
                "Do not load test data",
                "Print one line for each run",
                "name the part with the largest impact on the score",
                "The script is self-contained",
                "It must not import the solution, nor expect it as a file",
                "including its print statements",
                "Add no headings and no text around it",
            ],
        );
    }
    let first = &calls[0].prompt;
    assert!(!first.contains("Previous ablation studies") && !first.contains("## Study"), "{first}");
    assert_shows_in_order(
        &calls[2].prompt,
        &[
            "# Previous ablation studies",
            "## Study 1",
            "Finding of step 0.",
            "## Study 2",
            "Finding of step 1.",
        ],
    );
}

/// REQ-P2O-003
#[tokio::test]
async fn a_study_needs_a_solution_that_runs() {
    let world = World::new("T=1 K=1");
    let run = world.open();
    let failed = SolutionScript { is_executable: false, ..solution(0.5) };
    let empty = SolutionScript { content: " \n".to_owned(), ..solution(0.5) };
    for unusable in [failed, empty] {
        let asked = invoke_ablation(&run.ctx(), &unusable, &[]).await;
        assert!(matches!(asked, Err(Error::Precondition(_))), "{asked:?}");
    }
    assert_eq!(world.calls(), []);
}

/// REQ-P2O-003, REQ-P2O-004
#[tokio::test]
async fn the_study_is_the_code_between_the_fences() {
    let world = World::new("T=1 K=1").on("ablation", |_| {
        format!("Here is the study:\n{}\nGood luck!", fenced("import math\nprint('a: 1')"))
    });
    let run = world.open();
    let earlier = ["The scaler is useless.".to_owned()];
    let study = invoke_ablation(&run.ctx(), &solution(0.5), &earlier).await.unwrap().unwrap();
    assert_eq!(
        study,
        SolutionScript {
            content: "import math\nprint('a: 1')".to_owned(),
            phase: SolutionPhase::Refined,
            score: None,
            is_executable: true,
            source_model: None,
            created_at: study.created_at,
        }
    );
    assert_eq!(
        inputs(&world.calls()),
        [json!({"solution_script": script(0.5), "previous_ablations": earlier})]
    );
}

/// REQ-P2O-002, REQ-P2O-009, REQ-P2O-013
#[tokio::test]
async fn braces_in_what_is_inserted_mean_nothing() {
    let odd = "names = '{previous_ablations} {ablation_summary} {retry_note} {0}'";
    let initial = SolutionScript { content: format!("{odd}\n{}", script(0.5)), ..solution(0.5) };
    let world = World::new("T=1 K=1")
        .on("ablation", move |_| fenced(&format!("{odd}\nprint('{{raw_result}}')")));
    refine(&world, &initial).await;
    for role in ["ablation", "summarize", "extractor"] {
        assert_shows(&world.calls_of(role)[0].prompt, &[odd]);
    }
    assert_shows(&world.calls_of("summarize")[0].prompt, &["\n{raw_result}\n"]);
}

/// REQ-P2O-004, REQ-P2O-016, REQ-P2O-021
#[tokio::test]
async fn without_a_study_the_extractor_is_told_so_and_the_step_goes_on() {
    let world = World::new("T=1 K=1").on("ablation", |_| "I would rather not.".to_owned());
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!(world.calls_of("summarize"), []);
    assert_eq!(studies(&world).len(), 0);
    assert_eq!(
        inputs(&world.calls_of("extractor")),
        [json!({
            "solution_script": script(0.5),
            "ablation_summary": STUDY_FAILED,
            "previous_code_blocks": [],
            "block_was_not_found": false,
        })]
    );
    assert_eq!(result.ablation_summaries, [""]);
    assert_eq!(result.best_solution, refined(0.6));
    assert_eq!(world.warnings(), ["A_abl wrote no code: I would rather not."]);
}

// The study runs.

/// REQ-P2O-020, REQ-P2O-035
#[tokio::test]
async fn the_study_runs_as_it_was_written_on_the_data_of_the_task() {
    let world = World::new("T=1 K=1 time_limit_seconds=3600");
    refine(&world, &solution(0.5)).await;
    let Job { script, data_dir, time_limit, .. } = world.jobs().remove(0);
    assert_eq!(
        (script, data_dir, time_limit),
        (STUDY.to_owned(), world.task.data_dir.clone(), Duration::from_secs(600))
    );
}

/// REQ-P2O-020
#[tokio::test]
async fn a_study_is_never_taken_for_a_solution() {
    let study = "print('Final Validation Performance: 0.99')";
    let world = reaching("T=1 K=1", &[0.4]).on("ablation", move |_| fenced(study));
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!((result.best_score, result.best_solution), (score(0.5), solution(0.5)));
    assert!(world.calls_of("leakage").iter().all(|call| !call.prompt.contains(study)));
}

/// REQ-P2O-020
/// A study that copies the solution prints its score line too; a viewer must not see a score there.
#[tokio::test]
async fn no_score_is_recorded_for_a_study() {
    let world = World::new("T=1 K=1")
        .on("ablation", |_| fenced("print('Final Validation Performance: 0.99')"));
    refine(&world, &solution(0.5)).await;
    let of_study = world.events().into_iter().filter(|(key, _)| key.ends_with("/study"));
    let of_study = of_study.map(|(_, event)| {
        let Event::Evaluated { score, .. } = event else { panic!("unexpected: {event:?}") };
        score
    });
    assert_eq!(of_study.collect::<Vec<_>>(), [None]);
}

/// REQ-P2O-020, REQ-P2O-021
#[tokio::test]
async fn a_study_that_prints_no_score_has_not_failed() {
    let world = World::new("T=1 K=1");
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!(world.calls_of("debugger"), []);
    assert_eq!(result.ablation_summaries, [SUMMARY]);
}

/// REQ-P2O-033, REQ-P2O-035
#[tokio::test]
async fn a_study_gets_its_share_of_the_time_and_never_more_than_ten_minutes() {
    for (settings, seconds) in [
        ("T=4 K=1", 600),
        ("T=4 K=1 time_limit_seconds=86400", 600),
        ("T=4 K=1 time_limit_seconds=3600", 450),
        ("T=3 K=1 time_limit_seconds=100", 16),
        ("T=4 K=1 time_limit_seconds=5", 1),
        ("T=1 K=1 time_limit_seconds=9999999 script_timeout_seconds=5000", 600),
    ] {
        let mut world = World::new(settings);
        world.simulated = true;
        refine(&world, &solution(0.5)).await;
        let limits: Vec<_> = studies(&world).into_iter().map(|job| job.time_limit).collect();
        let expected = Duration::from_secs(seconds);
        assert_eq!(limits, vec![expected; world.config.outer_loop_steps], "{settings}");
        assert!(expected < Duration::from_secs(15 * 60), "an outer step would take too long");
    }
}

/// REQ-P2O-021, REQ-P2O-010
#[tokio::test]
async fn a_study_that_fails_once_is_mended_and_summed_up() {
    let mended = "print('mended: 0.3')";
    let world = World::new("T=1 K=1")
        .on("ablation", |_| fenced(broken().trim()))
        .on("debugger", move |_| fenced(mended));
    let result = refine(&world, &solution(0.5)).await;

    let calls = world.calls_of("debugger");
    assert_eq!(calls.len(), 1);
    // No leakage check: the study is no solution.
    let asked = world.calls().into_iter().filter(|call| call.step.contains("/study/"));
    assert_eq!(asked.collect::<Vec<_>>(), calls);
    assert_eq!(calls[0].input["code"], json!(broken().trim()));
    assert_eq!(calls[0].input["purpose"], json!("ablation"));
    assert_shows(
        calls[0].input["bug"].as_str().unwrap(),
        &["Traceback (most recent call last):", "ValueError: no such column"],
    );
    assert_shows(&calls[0].prompt, &["this script is an ablation study"]);
    let ran: Vec<_> =
        studies(&world).into_iter().map(|job| (job.script, job.time_limit.as_secs())).collect();
    assert_eq!(ran, [(broken().trim().to_owned(), 600), (mended.to_owned(), 600)]);
    assert_eq!(
        inputs(&world.calls_of("summarize")),
        [json!({"ablation_code": mended, "raw_result": "mended: 0.3\n"})]
    );
    assert_eq!(result.ablation_summaries, [SUMMARY]);
}

/// REQ-P2O-021, REQ-P2O-016, REQ-P2O-022
#[tokio::test]
async fn a_study_that_cannot_be_mended_leaves_the_extractor_with_the_earlier_summaries() {
    let world = World::new("T=4 K=1 max_debug_attempts=2")
        .on("ablation", |call| match index(call, "outer") {
            0 | 1 => fenced(STUDY),
            _ => fenced(broken().trim()),
        })
        .on("debugger", |call| {
            fenced(&format!("# {}\n{}", index(call, "attempt"), broken().trim()))
        })
        .on("summarize", |call| format!("Finding of step {}.", index(call, "outer")));
    let result = refine(&world, &solution(0.5)).await;

    // Steps 2 and 3: the study and two repairs each, then no more.
    assert_eq!(studies(&world).len(), 2 + 2 * 3);
    assert_eq!(world.calls_of("debugger").len(), 2 * 2);
    assert_eq!(world.calls_of("summarize").len(), 2);

    let both = format!(
        "{STUDY_FAILED}. Results of earlier studies:\n\nFinding of step 0.\n\nFinding of step 1."
    );
    let calls = world.calls_of("extractor");
    let told: Vec<_> = calls.iter().map(|call| call.input["ablation_summary"].clone()).collect();
    assert_eq!(told, ["Finding of step 0.", "Finding of step 1.", both.as_str(), both.as_str()]);
    assert_shows(&calls[3].prompt, &[&both, "If the study failed, judge by the script"]);

    let earlier = ["Finding of step 0.", "Finding of step 1."];
    assert_eq!(calls_at(&world, "ablation", 3)[0].input["previous_ablations"], json!(earlier));
    assert_eq!(result.ablation_summaries, ["Finding of step 0.", "Finding of step 1.", "", ""]);
    let skipped: Vec<_> = result.step_history.iter().map(|step| step.was_skipped).collect();
    assert_eq!(skipped, [false; 4]);
    assert_eq!(world.warnings(), ["the ablation study failed: ValueError: no such column"; 2]);
}

/// REQ-P2O-021
#[tokio::test]
async fn a_repair_that_changes_nothing_costs_an_attempt_but_no_run() {
    let world = World::new("T=1 K=1 max_debug_attempts=3")
        .on("ablation", |_| fenced(broken().trim()))
        .on("debugger", |_| "I see no error.".to_owned());
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!((studies(&world).len(), world.calls_of("debugger").len()), (1, 3));
    assert_eq!(result.ablation_summaries, [""]);
}

/// REQ-P2O-021
#[tokio::test]
async fn a_traceback_a_timeout_and_a_kill_are_all_failures_of_a_study() {
    let traceback = "Traceback (most recent call last):\n  File \"x\"\nKeyError: 'y'";
    for (ended, stderr, told) in [
        (Ended::Exited { code: 0 }, traceback, "KeyError: 'y'"),
        (Ended::Exited { code: 2 }, "", "the script ended with exit code 2"),
        (Ended::TimedOut { after_seconds: 600.0 }, "", "TimeoutError: exceeded 600 s"),
        (Ended::Signaled { signal: 9 }, "", "out of memory"),
    ] {
        let world = World::new("T=1 K=1")
            .on_job(move |job| (job.script == STUDY).then(|| Ok(outcome(ended, "half", stderr))))
            .on("debugger", |_| fenced("print('mended: 0.3')"));
        let result = refine(&world, &solution(0.5)).await;
        let calls = world.calls_of("debugger");
        assert_eq!(calls.len(), 1, "{ended:?}");
        assert_shows(calls[0].input["bug"].as_str().unwrap(), &[told]);
        assert_eq!(world.calls_of("summarize")[0].input["raw_result"], json!("mended: 0.3\n"));
        assert_eq!(result.ablation_summaries, [SUMMARY]);
    }
}

// A_summarize.

/// REQ-P2O-009, REQ-P2O-010
#[tokio::test]
async fn the_summary_prompt_shows_the_code_and_what_it_printed() {
    let world = World::new("T=1 K=1");
    refine(&world, &solution(0.5)).await;
    let calls = world.calls_of("summarize");
    assert_eq!(inputs(&calls), [json!({"ablation_code": STUDY, "raw_result": STUDY_OUTPUT})]);
    assert_shows_in_order(
        &calls[0].prompt,
        &[
            STUDY,
            STUDY_OUTPUT,
            "Summarise the result of this ablation study from the code and from what it printed",
        ],
    );
}

/// REQ-P2O-010
#[tokio::test]
async fn a_summary_needs_the_code_of_the_study_but_no_output() {
    let world = World::new("T=1 K=1");
    let run = world.open();
    let refused = invoke_summarize(&run.ctx(), " \n", "Baseline: 1").await;
    assert!(matches!(refused, Err(Error::Precondition(_))), "{refused:?}");
    assert_eq!(world.calls(), []);
    assert_eq!(invoke_summarize(&run.ctx(), "pass", "").await.unwrap(), SUMMARY);
}

/// REQ-P2O-011
#[tokio::test]
async fn the_whole_reply_is_the_summary_to_the_letter() {
    let output = "Baseline: 0.8196, No StandardScaler: 0.8102, No OneHotEncoder: 0.7886, \
                  No Imputation: 0.8196";
    let summary = "\n# Summary\n\nOneHotEncoder matters most:\n```python\nOneHotEncoder()\n```\n \
                   Imputation matters least. {\"plans\": []}\n";
    let world = World::new("T=2 K=1")
        .on("ablation", move |_| fenced(&format!("print('{output}')")))
        .on("summarize", move |_| summary.to_owned());
    let result = refine(&world, &solution(0.5)).await;

    let asked = &world.calls_of("summarize")[0];
    assert_eq!(asked.input["raw_result"], json!(format!("{output}\n")));
    assert_shows(
        &asked.prompt,
        &["Name the part with the most impact on performance and the part with the least"],
    );
    assert_eq!(result.ablation_summaries, [summary; 2]);
    assert_eq!(result.step_history[0].ablation_summary, summary);
    let extractor = &world.calls_of("extractor")[0];
    assert_eq!(extractor.input["ablation_summary"], json!(summary));
    assert_shows(&extractor.prompt, &[summary]);
    assert_eq!(world.calls_of("ablation")[1].input["previous_ablations"], json!([summary]));
}

/// REQ-P2O-036
#[tokio::test]
async fn the_end_of_the_output_stands_in_for_a_missing_summary() {
    let long = format!("head{}", "é0".repeat(1000));
    let last: String = "é0".repeat(1000);
    for (printed, shown) in [(long, last), ("short\n".to_owned(), "short\n".to_owned())] {
        let expected = format!("[Auto-summary from raw output] {shown}");
        for reply in [Ok(""), Ok(" \n\t"), Err("refused")] {
            let printed = printed.clone();
            let world = World::new("T=1 K=1")
                .on_job(move |job| {
                    let ran = || Ok(outcome(Ended::Exited { code: 0 }, &printed, ""));
                    (job.script == STUDY).then(ran)
                })
                .on_call(move |call| {
                    (call.role == "summarize").then(|| match reply {
                        Ok(text) => Ok(Reply::text(text)),
                        Err(why) => {
                            Err(AgentError::NoAnswer { reason: why.to_owned(), cost_usd: None })
                        }
                    })
                });
            let result = refine(&world, &solution(0.5)).await;
            assert_eq!(result.ablation_summaries, std::slice::from_ref(&expected));
            assert_eq!(world.calls_of("extractor")[0].input["ablation_summary"], json!(expected));
            let warnings = world.warnings();
            assert!(
                warnings.iter().any(|it| it.starts_with("A_summarize gave no summary")),
                "{warnings:?}"
            );
        }
    }
}

/// REQ-P2O-009, REQ-P2O-036
#[tokio::test]
async fn a_study_that_prints_without_end_does_not_flood_the_prompts() {
    for reply in [SUMMARY, ""] {
        let world = World::new("T=2 K=1")
            .on_job(|job| {
                let flood = format!("{}\nBaseline: 0.81\n", "ж".repeat(100_000));
                (job.script == STUDY).then(|| Ok(outcome(Ended::Exited { code: 0 }, &flood, "")))
            })
            .on("summarize", move |_| reply.to_owned());
        refine(&world, &solution(0.5)).await;
        let asked = &world.calls_of("summarize")[0];
        assert_shows(&asked.prompt, &["ж\nBaseline: 0.81\n"]);
        for call in world.calls() {
            assert!(call.prompt.len() < 64 * 1024, "{}: {} bytes", call.step, call.prompt.len());
        }
    }
}

// A_extractor.

/// REQ-P2O-013, REQ-P2O-016
#[tokio::test]
async fn the_extractor_prompt_carries_every_instruction_of_figure_14() {
    let world = World::new("T=3 K=1");
    refine(&world, &solution(0.5)).await;
    let calls = world.calls_of("extractor");
    for call in &calls {
        assert_shows(
            &call.prompt,
            &[
                "You are a Kaggle grandmaster",
                "Your goal is to extract one block of code from the solution below",
                "to plan how to improve it",
                call.input["solution_script"].as_str().unwrap(),
                SUMMARY,
                "Suggest an effective plan for improving this block, in 3-5 sentences",
                "Avoid plans that run for long",
                "hyperparameter search over a very large space",
                "Choose a part that has not been improved before",
                "Copy the code block exactly from the script",
                "the single key `plans`",
                "`list[Refine_Plan]`",
                "Refine_Plan = {'code_block': str, 'plan': str}",
            ],
        );
    }
    let first = &calls[0].prompt;
    assert!(!first.contains("Code blocks improved before"), "{first}");
    assert_shows_in_order(
        &calls[2].prompt,
        &[
            "# Code blocks improved before",
            "## Code block 1",
            "score = 0.5\n",
            "## Code block 2",
            "score = 0.6\n",
        ],
    );
}

/// REQ-P2O-016
#[tokio::test]
async fn the_extractor_needs_a_summary_and_a_solution() {
    let world = World::new("T=1 K=1");
    let run = world.open();
    let empty = SolutionScript { content: String::new(), ..solution(0.5) };
    for (summary, solution) in [(" ", &solution(0.5)), (SUMMARY, &empty)] {
        let asked =
            invoke_extractor(&run.ctx(), summary, solution, &[], ExtractorReply::Fresh).await;
        assert!(matches!(asked, Err(Error::Precondition(_))), "{asked:?}");
    }
    assert_eq!(world.calls(), []);
}

/// REQ-P2O-014, REQ-P2O-015
#[tokio::test]
async fn plans_are_read_from_every_form_of_json_that_agents_send() {
    let object = plans(&[("score = 0.5", "scale"), ("import math", "other")]);
    let list = serde_json::from_str::<Value>(&object).unwrap()["plans"].to_string();
    let structured = serde_json::from_str(&object).unwrap();
    let replies = [
        Reply::text(object.clone()),
        Reply::text(list),
        Reply::text(format!("Here it is:\n```json\n{object}\n```\n")),
        Reply { structured: Some(structured), ..Reply::text("see the structured part") },
    ];
    for reply in replies {
        let shown = format!("{reply:?}");
        let world = World::new("T=1 K=1")
            .on_call(move |call| (call.role == "extractor").then(|| Ok(reply.clone())));
        let result = refine(&world, &solution(0.5)).await;
        let OuterStepRecord { code_block, plan, .. } = &result.step_history[0];
        assert_eq!((code_block.as_str(), plan.as_str()), ("score = 0.5", "scale"), "{shown}");
        assert_eq!(world.calls_of("extractor").len(), 1, "{shown}");
    }
    let read: ExtractorOutput = serde_json::from_str(&object).unwrap();
    assert_eq!(read.plans.len(), 2);
}

/// REQ-P2O-015, REQ-P2O-026
#[tokio::test]
async fn the_first_plan_is_the_target_even_if_others_fit_too() {
    let world = World::new("T=1 K=1")
        .on("extractor", |_| plans(&[("import math", "first"), ("score = 0.5", "second")]))
        .on("coder", |_| fenced("import cmath"));
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!(
        inputs(&world.calls_of("coder")),
        [json!({"code_block": "import math", "plan": "first"})]
    );
    assert_eq!(
        result.refined_blocks,
        [CodeBlock { content: "import math".to_owned(), category: None, outer_step: Some(0) }]
    );
}

/// REQ-P2O-017
#[test]
fn a_block_is_valid_only_if_it_stands_in_the_script_to_the_letter() {
    let quoted = "scaler = StandardScaler()\nX_train = scaler.fit_transform(X_train)";
    let solution =
        SolutionScript { content: format!("import x\n{quoted}\nfit()\n"), ..solution(0.5) };
    assert!(validate_code_block(quoted, &solution));
    for different in [
        quoted.replace("StandardScaler", "standardScaler"),
        quoted.replace('\n', "\r\n"),
        quoted.replace('\n', " \n"),
        format!(" {quoted}"),
        format!("{quoted} "),
    ] {
        assert!(!validate_code_block(&different, &solution), "{different:?}");
    }
}

/// REQ-P2O-018, REQ-P2O-017
#[tokio::test]
async fn whitespace_at_the_ends_of_lines_does_not_hide_a_block() {
    let content = script(0.5).replace("import math\n", "import math  \nx = 1\t\n");
    let initial = SolutionScript { content, ..solution(0.5) };
    let own = "import math  \nx = 1";
    for quoted in ["import math\nx = 1", "import math \nx = 1   ", own] {
        let world = World::new("T=1 K=1")
            .on("extractor", move |_| plans(&[(quoted, PLAN)]))
            .on("coder", |_| fenced("x = 2"));
        let result = refine(&world, &initial).await;
        assert_eq!(world.calls_of("extractor").len(), 1, "{quoted:?}");
        assert_eq!(
            inputs(&world.calls_of("coder")),
            [json!({"code_block": own, "plan": PLAN})],
            "{quoted:?}"
        );
        assert_eq!(result.refined_blocks, [code_block(own)]);
        assert_eq!(result.best_solution.content, initial.content.replace(own, "x = 2"));
    }
}

/// REQ-P2O-018
#[tokio::test]
async fn a_block_that_is_not_in_the_script_is_asked_for_again_with_advice() {
    let world = World::new("T=1 K=1").on("extractor", |call| match index(call, "extract") {
        0 => plans(&[(" score = 0.5", PLAN)]),
        _ => plans(&[("score = 0.5", PLAN)]),
    });
    let result = refine(&world, &solution(0.5)).await;
    let given = |not_found: bool| {
        json!({
            "solution_script": script(0.5),
            "ablation_summary": SUMMARY,
            "previous_code_blocks": [],
            "block_was_not_found": not_found,
        })
    };
    let calls = world.calls_of("extractor");
    assert_eq!(inputs(&calls), [given(false), given(true)]);
    let advised: Vec<_> = calls.iter().map(|call| call.prompt.contains(NOT_FOUND)).collect();
    assert_eq!(advised, [false, true]);
    assert_eq!(result.step_history[0].code_block, "score = 0.5");
    assert_eq!(world.warnings(), ["the extracted block is not in the script:  score = 0.5"]);
}

/// REQ-P2O-018
#[tokio::test]
async fn a_later_plan_is_used_once_no_first_plan_was_found() {
    // Each reply offers another block second, so that it shows which reply was used.
    let seconds = [("import math", "a"), ("import", "b"), ("score = 0.5", "c")];
    let world = World::new("T=1 K=1").on("extractor", move |call| {
        plans(&[("nowhere", "x"), ("nor here", "y"), seconds[index(call, "extract")]])
    });
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!(world.calls_of("extractor").len(), 3);
    let OuterStepRecord { code_block, plan, was_skipped, .. } = &result.step_history[0];
    assert_eq!((code_block.as_str(), plan.as_str(), *was_skipped), ("score = 0.5", "c", false));
}

/// REQ-P2O-018, REQ-P2O-034
#[tokio::test]
async fn a_later_plan_is_used_even_if_the_replies_after_it_cannot_be_read() {
    let world = World::new("T=1 K=1").on("extractor", |call| match index(call, "extract") {
        0 => plans(&[("nowhere", "x"), ("score = 0.5", "y")]),
        _ => "{\"plans\": [".to_owned(),
    });
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!(world.calls_of("extractor").len(), 3);
    assert_eq!(result.step_history[0].plan, "y");
    assert_eq!(result.best_score, score(0.6));
}

/// REQ-P2O-018, REQ-P2O-025
#[tokio::test]
async fn a_step_without_a_block_of_the_script_is_skipped() {
    let long = "x".repeat(300);
    let world = World::new("T=2 K=1").on("extractor", move |call| match index(call, "outer") {
        0 => plans(&[(&long, PLAN), ("", PLAN)]),
        _ => plans(&[(&score_line(call), PLAN)]),
    });
    let result = refine(&world, &solution(0.5)).await;
    assert_eq!(calls_at(&world, "extractor", 0).len(), 3);
    let skipped: Vec<_> = result.step_history.iter().map(|step| step.was_skipped).collect();
    assert_eq!(skipped, [true, false]);
    let quoted = format!("the extracted block is not in the script: {}", "x".repeat(100));
    assert_eq!(world.warnings(), vec![quoted; 3]);
    assert!(world.events().contains(&(
        "phase2/path-0/outer-0".to_owned(),
        Event::OuterStepSkipped { reason: "the extractor gave no block of the script".to_owned() }
    )));
}

/// REQ-P2O-034
#[tokio::test]
async fn a_reply_that_cannot_be_read_is_asked_for_once_more() {
    let world = World::new("T=1 K=1").on("extractor", |call| match index(call, "extract") {
        0 => "Let me think about the {score} line.".to_owned(),
        _ => plans(&[("score = 0.5", "on second thought")]),
    });
    let result = refine(&world, &solution(0.5)).await;
    let calls = world.calls_of("extractor");
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (&calls[0].input, &calls[0].prompt),
        (&calls[1].input, &calls[1].prompt),
        "the inputs are the same"
    );
    let OuterStepRecord { code_block, plan, .. } = &result.step_history[0];
    assert_eq!((code_block.as_str(), plan.as_str()), ("score = 0.5", "on second thought"));
    assert_eq!(
        world.warnings(),
        ["the reply of A_extractor could not be read: Let me think about the {score} line."]
    );
}

/// REQ-P2O-034, REQ-P2O-025, REQ-P2O-028, REQ-P2O-030, REQ-P2O-044
/// The summary of a skipped step is not lost on the ablation agent.
#[tokio::test]
async fn a_skipped_step_leaves_placeholders_and_the_loop_goes_on() {
    let world = reaching("T=3 K=1", &[0.6, 0.9, 0.7])
        .on("summarize", |call| format!("Finding of step {}.", index(call, "outer")))
        .on("extractor", |call| match index(call, "outer") {
            1 => json!({"plans": []}).to_string(),
            _ => plans(&[(&score_line(call), PLAN)]),
        });
    let result = refine(&world, &solution(0.5)).await;

    let tried = |outer_step, from: f64, to: f64| OuterStepRecord {
        outer_step,
        ablation_summary: format!("Finding of step {outer_step}."),
        code_block: block(from),
        plan: PLAN.to_owned(),
        inner_loop_attempts: vec![RefinementAttempt {
            plan: PLAN.to_owned(),
            score: Some(score(to)),
            code_block: block(to),
            was_improvement: true,
        }],
        best_score_after_step: score(to),
        was_skipped: false,
        failed: false,
    };
    let skipped = OuterStepRecord {
        outer_step: 1,
        ablation_summary: "Finding of step 1.".to_owned(),
        code_block: String::new(),
        plan: String::new(),
        inner_loop_attempts: Vec::new(),
        best_score_after_step: score(0.6),
        was_skipped: true,
        failed: false,
    };
    let found = |outer_step, content: String| CodeBlock {
        content,
        category: None,
        outer_step: Some(outer_step),
    };
    assert_eq!(
        result,
        Phase2Result {
            ablation_summaries: vec![
                "Finding of step 0.".to_owned(),
                String::new(),
                "Finding of step 2.".to_owned()
            ],
            refined_blocks: vec![
                found(0, block(0.5)),
                found(1, String::new()),
                found(2, block(0.6))
            ],
            best_solution: refined(0.7),
            best_score: score(0.7),
            step_history: vec![tried(0, 0.5, 0.6), skipped, tried(2, 0.6, 0.7)],
        }
    );
    assert_eq!(calls_at(&world, "extractor", 1).len(), 2);
    assert_eq!(calls_at(&world, "coder", 1), []);
    let [last_study] = &calls_at(&world, "ablation", 2)[..] else { panic!("one study per step") };
    assert_eq!(
        last_study.input["previous_ablations"],
        json!(["Finding of step 0.", "Finding of step 1."])
    );
    let [last_target] = &calls_at(&world, "extractor", 2)[..] else { panic!("found at once") };
    assert_eq!(last_target.input["previous_code_blocks"], json!([block(0.5)]));
}

/// How the extractor replies in a test of its retries.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Said {
    Good,
    NotFound,
    Malformed,
}

/// REQ-P2O-018, REQ-P2O-034
/// Unreadable replies and unfindable blocks are counted apart: four calls at most.
#[tokio::test]
async fn the_extractor_is_asked_at_most_four_times_whatever_it_says() {
    // One outer step for each sequence of four replies.
    let said = |step: usize, attempt: u32| {
        [Said::Good, Said::NotFound, Said::Malformed][step / 3_usize.pow(attempt) % 3]
    };
    let expected = |step| {
        let (mut unread, mut unfound) = (0, 0);
        for attempt in 0.. {
            match said(step, attempt) {
                Said::Good => return (attempt as usize + 1, false),
                Said::NotFound => unfound += 1,
                Said::Malformed => unread += 1,
            }
            if unread > 1 || unfound > 2 {
                return (attempt as usize + 1, true);
            }
        }
        unreachable!("one of the two counters runs out");
    };
    let world = World::new("T=81 K=1")
        .on("extractor", move |call| {
            let attempt = u32::try_from(index(call, "extract")).unwrap();
            match said(index(call, "outer"), attempt) {
                Said::Good => plans(&[(&score_line(call), PLAN)]),
                Said::NotFound => plans(&[("nowhere", PLAN)]),
                Said::Malformed => "plans".to_owned(),
            }
        })
        .on("coder", |_| "no code".to_owned());
    let result = refine(&world, &solution(0.5)).await;

    let asked: Vec<_> = (result.step_history.iter())
        .map(|step| (calls_at(&world, "extractor", step.outer_step).len(), step.was_skipped))
        .collect();
    assert_eq!(asked, (0..81).map(expected).collect::<Vec<_>>());
    assert_eq!(asked.iter().map(|(calls, _)| *calls).max(), Some(4));
    // Whoever once named a block that is not there is told so until the step ends.
    for call in world.calls_of("extractor") {
        let (step, attempt) = (index(&call, "outer"), index(&call, "extract"));
        let unfound =
            (0..attempt).any(|it| said(step, u32::try_from(it).unwrap()) == Said::NotFound);
        assert_eq!(call.prompt.contains(NOT_FOUND), unfound, "{}", call.step);
    }
}

// The loop.

/// REQ-P2O-019, REQ-P2O-025, REQ-P2O-030
#[tokio::test]
async fn the_loop_makes_exactly_t_steps() {
    for (settings, steps) in [("T=1 K=1", 1), ("T=2 K=1", 2), ("K=1", 4)] {
        let world = World::new(settings);
        let result = refine(&world, &solution(0.5)).await;
        assert_eq!(
            (
                world.calls_of("ablation").len(),
                result.ablation_summaries.len(),
                result.refined_blocks.len(),
            ),
            (steps, steps, steps)
        );
        let indices: Vec<_> = result.step_history.iter().map(|step| step.outer_step).collect();
        assert_eq!(indices, (0..steps).collect::<Vec<_>>());
    }
}

/// REQ-P2O-040, REQ-P2O-019, REQ-P2O-020
#[tokio::test]
async fn the_steps_follow_each_other_as_in_algorithm_2() {
    let world = World::new("T=2 K=1");
    refine(&world, &solution(0.5)).await;
    let of_step = |outer_step: usize| {
        [
            "ablation",
            "study/attempt-0/run",
            "summarize",
            "extract-0/extractor",
            "inner-0/coder",
            "inner-0/leakage",
            "inner-0/attempt-0/run",
        ]
        .map(|part| format!("phase2/path-0/outer-{outer_step}/{part}"))
    };
    assert_eq!(world.steps(), [of_step(0), of_step(1)].concat());
}

/// REQ-P2O-003, REQ-P2O-016, REQ-P2O-022, REQ-P2O-023, REQ-P2O-044
#[tokio::test]
async fn summaries_and_blocks_accumulate_from_step_to_step() {
    let lines = ["alpha = 1", "beta = 2", "gamma = 3"];
    let content = format!("{}\n{}", lines.join("\n"), script(0.5));
    let initial = SolutionScript { content, ..solution(0.5) };
    let world = World::new("T=3 K=1")
        .on("summarize", |call| format!("Finding of step {}.", index(call, "outer")))
        .on("extractor", move |call| plans(&[(lines[index(call, "outer")], PLAN)]))
        .on("coder", |call| fenced(&format!("delta_{} = 0", index(call, "outer"))));
    let result = refine(&world, &initial).await;

    let findings = ["Finding of step 0.", "Finding of step 1.", "Finding of step 2."];
    let mut current = initial.content.clone();
    for (step, line) in lines.iter().enumerate() {
        assert_eq!(
            inputs(&calls_at(&world, "ablation", step)),
            [json!({"solution_script": current, "previous_ablations": findings[..step]})]
        );
        assert_eq!(
            inputs(&calls_at(&world, "extractor", step)),
            [json!({
                "solution_script": current,
                "ablation_summary": findings[step],
                "previous_code_blocks": lines[..step],
                "block_was_not_found": false,
            })]
        );
        current = current.replace(line, &format!("delta_{step} = 0"));
    }
    assert_eq!(result.ablation_summaries, findings);
    let blocks =
        [0, 1, 2].map(|step| CodeBlock { outer_step: Some(step), ..code_block(lines[step]) });
    assert_eq!(result.refined_blocks, blocks);
    assert_eq!(result.best_solution.content, current);
}

/// REQ-P2O-026
#[tokio::test]
async fn the_inner_loop_is_handed_the_block_the_plan_and_the_best_so_far() {
    let scores = [[0.45, 0.6], [0.55, 0.58]];
    let play = |world: World| {
        world.on("coder", move |call| {
            fenced(&block(scores[index(call, "outer")][index(call, "inner")]))
        })
    };
    let world = play(World::new("T=2 K=2"));
    let result = refine(&world, &solution(0.5)).await;

    // The same by hand: s_t, c_t, p_0 and h_best of the second step.
    let by_hand = play(World::new("T=2 K=2"));
    let run = by_hand.open();
    let ctx = run.ctx().scope("phase2").scope("path-0").scope("outer-1");
    let target = CodeBlock { outer_step: Some(1), ..code_block(&block(0.6)) };
    let inner =
        run_phase2_inner_loop(&ctx, &refined(0.6), &target, PLAN, score(0.6)).await.unwrap();
    assert_eq!(result.step_history[1].inner_loop_attempts, inner.attempts);
    assert_eq!((result.best_solution, result.best_score), (inner.best_solution, inner.best_score));
    for role in ["coder", "planner"] {
        assert_eq!(inputs(&calls_at(&world, role, 1)), inputs(&by_hand.calls_of(role)));
    }
}

/// REQ-P2O-024, REQ-P2O-027
#[tokio::test]
async fn a_better_solution_is_where_the_next_step_starts() {
    let world = reaching("T=3 K=1", &[0.85, 0.84, 0.9]);
    let result = refine(&world, &solution(0.82)).await;
    for (role, from) in [("ablation", [0.82, 0.85, 0.85]), ("extractor", [0.82, 0.85, 0.85])] {
        let given: Vec<_> =
            world.calls_of(role).iter().map(|call| call.input["solution_script"].clone()).collect();
        assert_eq!(given, from.map(|from| json!(script(from))), "{role}");
    }
    let bests: Vec<_> = result.step_history.iter().map(|step| step.best_score_after_step).collect();
    assert_eq!(bests, [0.85, 0.85, 0.9].map(score));
    assert_eq!((result.best_score, result.best_solution), (score(0.9), refined(0.9)));
}

/// REQ-P2O-024, REQ-P2O-027
#[tokio::test]
async fn less_is_better_where_the_metric_is_minimized() {
    let world = reaching("T=2 K=1", &[0.7, 0.8]).minimizing();
    let result = refine(&world, &solution(0.75)).await;
    let bests: Vec<_> = result.step_history.iter().map(|step| step.best_score_after_step).collect();
    assert_eq!(bests, [0.7, 0.7].map(score));
    assert_eq!((result.best_score, result.best_solution), (score(0.7), refined(0.7)));
}

/// REQ-P2O-024, REQ-P2O-027
#[tokio::test]
async fn a_tie_replaces_the_solution() {
    for world in [World::new("T=1 K=1"), World::new("T=1 K=1").minimizing()] {
        let world = world.on("coder", |_| fenced("score = 0.5  # another way"));
        let result = refine(&world, &solution(0.5)).await;
        let content = script(0.5).replace("score = 0.5", "score = 0.5  # another way");
        assert_eq!(result.best_solution, SolutionScript { content, ..refined(0.5) });
        assert_eq!(result.best_score, score(0.5));
    }
}

/// REQ-P2O-027, REQ-P2O-029, REQ-P2O-041
#[tokio::test]
async fn a_path_without_improvement_ends_where_it_began() {
    let worse = reaching("T=4 K=1", &[0.80, 0.1, -3.0, 0.849]);
    let failing = World::new("T=4 K=1 max_debug_attempts=1")
        .on("coder", |_| fenced(broken().trim()))
        .on("debugger", |_| "I give up.".to_owned());
    let silent = World::new("T=4 K=1").on("coder", |_| String::new());
    for world in [worse, failing, silent] {
        let result = refine(&world, &solution(0.85)).await;
        assert_eq!((result.best_score, result.best_solution), (score(0.85), solution(0.85)));
        for step in result.step_history {
            assert_eq!(step.best_score_after_step, score(0.85));
            assert_eq!(step.inner_loop_attempts.len(), 1);
            assert!(!step.inner_loop_attempts[0].was_improvement);
        }
    }
}

/// REQ-P2O-025, REQ-P2O-021, REQ-P2O-034, REQ-P2O-029
#[tokio::test]
async fn a_path_on_which_nobody_answers_gives_back_what_it_was_given() {
    let world = World::new("T=2 K=1").on_call(|_| {
        Some(Err(AgentError::NoAnswer { reason: "out of turns".to_owned(), cost_usd: None }))
    });
    let initial = solution(0.5);
    let result = refine(&world, &initial).await;
    let skipped = |outer_step| OuterStepRecord {
        outer_step,
        ablation_summary: String::new(),
        code_block: String::new(),
        plan: String::new(),
        inner_loop_attempts: Vec::new(),
        best_score_after_step: score(0.5),
        was_skipped: true,
        failed: false,
    };
    let nothing = |outer_step| CodeBlock { outer_step: Some(outer_step), ..CodeBlock::default() };
    assert_eq!(
        result,
        Phase2Result {
            ablation_summaries: vec![String::new(), String::new()],
            refined_blocks: vec![nothing(0), nothing(1)],
            best_solution: initial,
            best_score: score(0.5),
            step_history: vec![skipped(0), skipped(1)],
        }
    );
    assert_eq!(world.jobs().len(), 0);
}

/// REQ-P2O-028, REQ-P2O-030, REQ-P2O-027, REQ-P2O-023
#[tokio::test]
async fn the_result_holds_everything_the_path_did() {
    let world = World::new("T=1 K=3 max_debug_attempts=1")
        .on("planner", |call| format!("plan {}", index(call, "inner")))
        .on("coder", |call| match index(call, "inner") {
            0 => fenced(&block(0.4)),
            1 => "no code".to_owned(),
            _ => fenced(&block(0.6)),
        });
    let result = refine(&world, &solution(0.5)).await;
    let attempt = |plan: &str, value: Option<f64>, was_improvement| RefinementAttempt {
        plan: plan.to_owned(),
        score: value.map(score),
        code_block: value.map(block).unwrap_or_default(),
        was_improvement,
    };
    assert_eq!(
        result,
        Phase2Result {
            ablation_summaries: vec![SUMMARY.to_owned()],
            refined_blocks: vec![code_block(&block(0.5))],
            best_solution: refined(0.6),
            best_score: score(0.6),
            step_history: vec![OuterStepRecord {
                outer_step: 0,
                ablation_summary: SUMMARY.to_owned(),
                code_block: block(0.5),
                plan: PLAN.to_owned(),
                inner_loop_attempts: vec![
                    attempt(PLAN, Some(0.4), false),
                    attempt("plan 1", None, false),
                    attempt("plan 2", Some(0.6), true),
                ],
                best_score_after_step: score(0.6),
                was_skipped: false,
                failed: false,
            }],
        }
    );
}

/// REQ-P2O-043
#[tokio::test]
async fn the_solution_handed_in_stays_as_it_was() {
    let world = World::new("T=2 K=2");
    let initial = SolutionScript { source_model: Some("gbm".to_owned()), ..solution(0.5) };
    let before = initial.clone();
    let result = refine(&world, &initial).await;
    assert_eq!(initial, before);
    assert_ne!(result.best_solution, initial);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// REQ-P2O-041, REQ-P2O-024, REQ-P2O-027, REQ-P2O-028, REQ-P2O-029
    #[test]
    fn the_best_score_never_gets_worse(
        // A score of every inner step, or none if the coder fails.
        tried in proptest::collection::vec(
            proptest::collection::vec(proptest::option::of(-5_i8..=5), 2), 1..5),
        minimize: bool,
    ) {
        let value = |it: i8| f64::from(it) / 10.0;
        let mut world = World::new(&format!("T={} K=2", tried.len()));
        if minimize {
            world = world.minimizing();
        }
        let direction = world.task.metric_direction;
        prop_assert_eq!(minimize, direction == MetricDirection::Minimize);
        let scores = tried.clone();
        let world = world.on("coder", move |call| {
            scores[index(call, "outer")][index(call, "inner")]
                .map_or_else(|| "no code".to_owned(), |it| fenced(&block(value(it))))
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let result = runtime.block_on(refine(&world, &solution(0.0)));

        let mut best = 0.0;
        let mut expected = Vec::new();
        for step in &tried {
            let before = best;
            for new in step.iter().flatten().map(|it| value(*it)) {
                best = if minimize { new.min(best) } else { new.max(best) };
            }
            prop_assert!(is_improvement_or_equal(score(best), score(before), direction));
            expected.push(score(best));
        }
        let bests: Vec<_> =
            result.step_history.iter().map(|step| step.best_score_after_step).collect();
        prop_assert_eq!(bests, expected);
        prop_assert_eq!(result.best_score, score(best));
        prop_assert_eq!(result.best_solution.score, Some(score(best)));
        prop_assert_eq!(result.best_solution.content, script(best));
    }
}
