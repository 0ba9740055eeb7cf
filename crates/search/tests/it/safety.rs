//! Debugger, leakage and data-usage agents.

use std::time::{Duration, Instant};

use mle_star_agent::{AgentError, Call, Reply};
use mle_star_exec::Ended;
use mle_star_search::evaluate::{
    BugReport, EvalOptions, Evaluated, Evaluator, Purpose, ScoreFunction, evaluate, evaluate_batch,
    evaluate_solution, evaluate_with_retry, is_better_solution,
};
use mle_star_search::event::Event;
use mle_star_search::models::{
    AgentConfig, AgentType, LeakageAnswer, LeakageDetectionOutput, LeakageStatus, MetricDirection,
    OutputSchema, SolutionPhase, SolutionScript, TaskDescription,
};
use mle_star_search::prompt::PromptRegistry;
use mle_star_search::roles::{check_and_fix_leakage, check_data_usage, invoke_debugger};
use mle_star_search::{Error, Run};
use serde_json::{Value, json};

use crate::world::{
    World, block, broken, fenced, index, outcome, score, script, solution, submitting,
};

/// How every bug report begins.
const HEADER: &str = "Traceback (most recent call last):";

const SCORE_LINE: &str = r#"print(f"Final Validation Performance: {final_validation_score}")"#;

/// A script that leaks in its second line.
const LEAKY: &str = "import math\nscaler.fit(everything)\nscore = 0.5\n\
                     print(f\"Final Validation Performance: {score}\")\n";
const LEAK: &str = "scaler.fit(everything)";
const MENDED_LEAK: &str = "scaler.fit(train)";

fn with_content(content: &str) -> SolutionScript {
    SolutionScript { content: content.to_owned(), ..solution(0.5) }
}

/// What `script` becomes once something rewrote it: not evaluated yet.
fn rewritten(script: &SolutionScript, content: &str) -> SolutionScript {
    SolutionScript { score: None, ..with_content(content) }.at_the_time_of(script)
}

trait AtTheTimeOf {
    fn at_the_time_of(self, other: &Self) -> Self;
}

impl AtTheTimeOf for SolutionScript {
    /// The same script, so that two can be compared in all but their age.
    fn at_the_time_of(self, other: &Self) -> Self {
        Self { created_at: other.created_at, ..self }
    }
}

/// Evaluates a script in `world`, repairs included but without a leakage check in front.
async fn run_and_repair(world: &World, script: &SolutionScript) -> Evaluated {
    let run = world.open();
    let options = EvalOptions::validation(&world.config);
    evaluate_with_retry(&run.ctx().scope("here"), script, options).await.unwrap()
}

/// A world in which the first script ends so, and what the debugger then writes works.
fn ending(ended: Ended, stdout: &'static str, stderr: &'static str) -> World {
    World::new("K=1")
        .on_job(move |job| (job.script == script(0.5)).then(|| Ok(outcome(ended, stdout, stderr))))
}

/// The rule that `role` gives no answer.
fn refusing(role: &'static str) -> impl Fn(&Call) -> Option<Result<Reply, AgentError>> {
    failing(role, AgentError::NoAnswer { reason: "refused".to_owned(), cost_usd: None })
}

/// The rule that asking `role` gives `error`.
fn failing(
    role: &'static str,
    error: AgentError,
) -> impl Fn(&Call) -> Option<Result<Reply, AgentError>> {
    move |call| (call.role == role).then(|| Err(error.clone()))
}

/// A world where the detector says `detected` and each correction is `corrected`.
fn leaking(
    detected: impl Into<String>,
    corrected: impl Fn(&Call) -> String + Send + Sync + 'static,
) -> World {
    let detected = detected.into();
    World::new("K=1").on("leakage", move |call| match call.variant.as_deref() {
        Some("detection") => detected.clone(),
        _ => corrected(call),
    })
}

/// What the detector replies about blocks that leak.
fn leaks(blocks: &[&str]) -> String {
    let answers: Vec<Value> = blocks
        .iter()
        .map(|code| json!({"leakage_status": "Yes Data Leakage", "code_block": code}))
        .collect();
    json!({ "answers": answers }).to_string()
}

async fn checked(world: &World, content: &str) -> String {
    let run = world.open();
    let script = with_content(content);
    let checked = check_and_fix_leakage(&run.ctx(), &script).await.unwrap();
    assert_eq!(script, with_content(content));
    let expected = if checked.content == content {
        script.clone()
    } else {
        rewritten(&checked, &checked.content)
    };
    assert_eq!(checked, expected);
    checked.content
}

/// The leakage calls, by variant.
fn variants(world: &World) -> Vec<String> {
    world.calls_of("leakage").into_iter().filter_map(|call| call.variant).collect()
}

fn contains_all(prompt: &str, texts: &[&str]) {
    for text in texts {
        assert!(prompt.contains(text), "{text:?} is not in\n{prompt}");
    }
}

// Set-up.

/// REQ-SF-001, REQ-SF-011, REQ-SF-024, REQ-SF-032
#[test]
fn safety_agents_have_the_tools_and_schemas_of_the_specification() {
    for (agent, description, tools, output_schema) in [
        (
            AgentType::Debugger,
            "Agent that fixes Python execution errors in solution scripts",
            &["Read", "Bash"][..],
            None,
        ),
        (
            AgentType::Leakage,
            "Agent that detects data leakage in solution preprocessing code",
            &["Read"][..],
            Some(OutputSchema::LeakageDetectionOutput),
        ),
        (
            AgentType::Data,
            "Agent that verifies all provided data sources are used in the solution",
            &["Read"][..],
            None,
        ),
    ] {
        let config = AgentConfig::for_agent(agent);
        assert_eq!(
            config,
            AgentConfig {
                agent_type: agent,
                description: description.to_owned(),
                system_prompt: None,
                tools: Some(tools.iter().map(ToString::to_string).collect()),
                model: None,
                output_schema,
                max_turns: None,
            }
        );
        assert_eq!(
            config.to_agent_definition("the template"),
            json!({
                "description": description,
                "prompt": "the template",
                "tools": tools,
                "model": null,
            })
        );
    }
}

/// REQ-SF-033
#[test]
fn the_prompts_of_the_safety_agents_are_registered() {
    let prompts = PromptRegistry::builtin();
    let figure = |agent, variant| prompts.variant(agent, variant).unwrap().figure_ref;
    assert_eq!(figure(AgentType::Debugger, None), "Figure 19");
    assert_eq!(figure(AgentType::Leakage, None), "Figure 20");
    assert_eq!(figure(AgentType::Leakage, Some("detection")), "Figure 20");
    assert_eq!(figure(AgentType::Leakage, Some("correction")), "Figure 21");
    assert_eq!(figure(AgentType::Data, None), "Figure 22");
}

/// REQ-SF-016, REQ-SF-032, REQ-SF-042
#[tokio::test]
async fn safety_agents_are_reached_through_the_agent_port_alone() {
    let world = leaking(leaks(&[LEAK]), |_| fenced(MENDED_LEAK));
    let run = world.open();
    let ctx = run.ctx();
    let script = with_content(LEAKY);
    check_and_fix_leakage(&ctx, &script).await.unwrap();
    check_data_usage(&ctx, &script).await.unwrap();
    let bug = BugReport::new("KeyError: 1", "");
    invoke_debugger(&ctx, &script, &bug, Purpose::Validation).await.unwrap();

    let schema = OutputSchema::LeakageDetectionOutput.json_schema();
    let calls: Vec<_> = world
        .calls()
        .into_iter()
        .map(|call| (call.role, call.variant, call.tools.join(" "), call.schema))
        .collect();
    let [leakage, data, debugger] = ["leakage", "data", "debugger"].map(str::to_owned);
    let [detection, correction] = ["detection", "correction"].map(|it| Some(it.to_owned()));
    let [read, read_bash] = ["Read", "Read Bash"].map(str::to_owned);
    assert_eq!(
        calls,
        [
            (leakage.clone(), detection, read.clone(), Some(schema)),
            (leakage, correction, read.clone(), None),
            (data, None, read, None),
            (debugger, None, read_bash, None),
        ]
    );
}

/// REQ-SF-034, REQ-SF-035, REQ-SF-043
#[tokio::test]
async fn safety_functions_take_scripts_and_give_scripts() {
    let world = leaking(leaks(&[LEAK]), |_| fenced(MENDED_LEAK))
        .on("data", |_| fenced(&script(0.6)))
        .on("debugger", |_| fenced(&script(0.7)));
    let run = world.open();
    let ctx = run.ctx();
    let given = with_content(LEAKY);
    let bug = BugReport::new("KeyError: 1", "");
    let leakage: SolutionScript = check_and_fix_leakage(&ctx, &given).await.unwrap();
    let data: SolutionScript = check_data_usage(&ctx, &given).await.unwrap();
    let debugger: SolutionScript =
        invoke_debugger(&ctx, &given, &bug, Purpose::Validation).await.unwrap();
    assert_eq!(leakage, rewritten(&leakage, &LEAKY.replace(LEAK, MENDED_LEAK)));
    assert_eq!(data, rewritten(&data, &script(0.6)));
    assert_eq!(debugger, rewritten(&debugger, &script(0.7)));
    assert_eq!(given, with_content(LEAKY));
}

// The debugger.

/// REQ-SF-002, REQ-SF-003, REQ-SF-009, REQ-SF-044
#[tokio::test]
async fn the_debugger_is_shown_the_script_the_error_and_the_rules() {
    let world = World::new("K=1");
    run_and_repair(&world, &with_content(&broken())).await;
    let call = world.calls_of("debugger").remove(0);
    let bug = "Traceback (most recent call last):\n  File \"solution.py\", line 1, in <module>\n    \
               raise ValueError('no such column')\nValueError: no such column";
    assert_eq!(
        call.input,
        json!({"code": broken(), "bug": bug, "purpose": "validation", "may_subsample": true})
    );
    contains_all(
        &call.prompt,
        &[
            &format!("\n{}\n", broken()),
            bug,
            "Please revise the code to fix the error",
            "You only repair",
            "Do not remove subsampling if exists.",
            "self-contained Python script",
            "no headings",
            "`./input/`",
            "`Final Validation Performance: {final_validation_score}`",
            "One markdown code block",
            "Do not use exit()",
            "subsample to 30000",
        ],
    );
}

/// REQ-SF-002
#[tokio::test]
async fn the_debugger_of_a_submission_is_told_that_no_score_is_needed() {
    let world = World::new("K=1");
    let run = world.open();
    let script = SolutionScript { phase: SolutionPhase::Final, ..solution(0.5) };
    let bug = BugReport::new("FileNotFoundError: ./final/submission.csv", "");
    invoke_debugger(&run.ctx(), &script, &bug, Purpose::Submission).await.unwrap();
    let call = world.calls_of("debugger").remove(0);
    contains_all(&call.prompt, &["It need not print a score", "`./final/submission.csv`"]);
    // C-64: what makes the submission trains on everything.
    assert!(!call.prompt.contains("you must subsample"), "{}", call.prompt);
    assert_eq!(
        call.input,
        json!({
            "code": script.content,
            "bug": format!("{HEADER}\nFileNotFoundError: ./final/submission.csv"),
            "purpose": "submission",
            "may_subsample": false,
        })
    );
}

/// REQ-SF-003
#[tokio::test]
async fn the_debugger_is_not_asked_about_nothing() {
    let world = World::new("K=1");
    let run = world.open();
    for cause in ["", " \n"] {
        let bug = BugReport::new(cause, "");
        let answer = invoke_debugger(&run.ctx(), &solution(0.5), &bug, Purpose::Validation).await;
        let error = answer.map_or_else(|error| error.to_string(), |script| script.content);
        assert_eq!(error, "No traceback provided for debugging");
    }
    assert_eq!(world.calls(), []);
}

/// REQ-SF-003
#[tokio::test]
async fn every_failure_reaches_the_debugger_as_a_report_that_begins_like_a_traceback() {
    let ok = Ended::Exited { code: 0 };
    let failed = Ended::Exited { code: 1 };
    let syntax =
        "  File \"solution.py\", line 2\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n";
    let logged = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n";
    for (ended, stdout, stderr, cause) in [
        (Ended::TimedOut { after_seconds: 60.0 }, "", "", "TimeoutError: exceeded 60 s"),
        (
            Ended::TimedOut { after_seconds: 60.0 },
            "",
            "epoch 1\nepoch 2\n",
            "TimeoutError: exceeded 60 s\n\nThe script wrote:\nepoch 1\nepoch 2",
        ),
        (Ended::Signaled { signal: 9 }, "", "", "Killed: signal 9 (often: out of memory)"),
        (
            Ended::Signaled { signal: 11 },
            "",
            "Fatal Python error\n",
            "Killed: signal 11 (segmentation fault)\n\nThe script wrote:\nFatal Python error",
        ),
        (Ended::Signaled { signal: 15 }, "", "", "Killed: signal 15"),
        (
            failed,
            "",
            syntax,
            "SyntaxError: invalid syntax\n\nThe script wrote:\nFile \"solution.py\", line 2\n    \
             x = = 1\n        ^\nSyntaxError: invalid syntax",
        ),
        (Ended::Exited { code: 3 }, "", "", "the script ended with exit code 3"),
        // A traceback that was only logged is an error all the same.
        (
            ok,
            "Final Validation Performance: 0.9\n",
            logged,
            "  File \"a.py\", line 1\nKeyError: 'x'",
        ),
        (
            ok,
            "done\n",
            "",
            "RuntimeError: the script finished without printing Final Validation Performance",
        ),
        (
            ok,
            "Final Validation Performance: 1,234.5\n",
            "",
            "RuntimeError: the script printed `Final Validation Performance: 1,234.5`, which is \
             not a finite plain number",
        ),
        (
            ok,
            "Final Validation Performance: 1e999\n",
            "",
            "RuntimeError: the script printed `Final Validation Performance: 1e999`, which is not \
             a finite plain number",
        ),
    ] {
        let world = ending(ended, stdout, stderr);
        let evaluated = run_and_repair(&world, &solution(0.5)).await;
        let call = world.calls_of("debugger").remove(0);
        assert_eq!(call.input["bug"], format!("{HEADER}\n{cause}"));
        contains_all(&call.prompt, &[HEADER, cause]);
        // The useful debugger mends it with its first reply.
        assert_eq!(evaluated.solution.score, Some(score(0.4)));
        assert_eq!((world.calls_of("debugger").len(), world.jobs().len()), (1, 2));
    }
}

/// REQ-SF-003
#[tokio::test]
async fn a_score_that_is_no_number_reaches_the_debugger() {
    for stdout in [
        "Final Validation Performance: nan\n",
        "Final Validation Performance: inf\n",
        "Final Validation Performance: -inf\n",
    ] {
        let world = ending(Ended::Exited { code: 0 }, stdout, "");
        let evaluated = run_and_repair(&world, &solution(0.5)).await;
        let bug = world.calls_of("debugger").remove(0).input["bug"].as_str().unwrap().to_owned();
        assert!(bug.starts_with(HEADER) && bug.contains("Final Validation Performance"), "{bug}");
        assert_eq!(evaluated.solution.score, Some(score(0.4)), "{stdout}");
    }
}

/// REQ-SF-003
#[tokio::test]
async fn a_report_shows_what_led_to_the_last_exception() {
    let first = "Traceback (most recent call last):\n  File \"solution.py\", line 1\nKeyError: 'x'";
    let last =
        "Traceback (most recent call last):\n  File \"solution.py\", line 3\nOSError: gone\n";
    let stderr = format!("warming up\n{first}\n\nDuring handling of it:\n\n{last}");
    let world = World::new("K=1").on_job({
        let stderr = stderr.clone();
        move |job| {
            let ended = outcome(Ended::Exited { code: 1 }, "", &stderr);
            (job.script == script(0.5)).then_some(Ok(ended))
        }
    });
    run_and_repair(&world, &solution(0.5)).await;
    assert_eq!(
        world.calls_of("debugger")[0].input["bug"],
        stderr.trim_start_matches("warming up\n").trim_end()
    );
}

/// REQ-SF-003
#[tokio::test]
async fn a_very_long_traceback_is_shown_from_its_end() {
    let frames = "  File \"deep.py\", line 1, in recurse\n".repeat(5000);
    let stderr = format!("{HEADER}\n{frames}RecursionError: too deep\n");
    let world = World::new("K=1").on_job(move |job| {
        let ended = outcome(Ended::Exited { code: 1 }, "", &stderr);
        (job.script == script(0.5)).then_some(Ok(ended))
    });
    run_and_repair(&world, &solution(0.5)).await;
    let bug = world.calls_of("debugger").remove(0).input["bug"].as_str().unwrap().to_owned();
    assert!(bug.starts_with(&format!("{HEADER}\n")), "{bug}");
    assert!(bug.ends_with("in recurse\nRecursionError: too deep"), "{bug}");
    assert!(bug.len() < 10_000, "{}", bug.len());
}

/// REQ-SF-004, REQ-SF-005
#[tokio::test]
async fn the_mended_script_is_what_stands_between_the_fences() {
    let given = SolutionScript {
        phase: SolutionPhase::Ensemble,
        source_model: Some("gbm".to_owned()),
        is_executable: false,
        ..solution(0.5)
    };
    let code = script(0.8).trim_end().to_owned();
    for reply in [
        fenced(&code),
        format!("```\n{code}\n```"),
        format!("The column was missing.\n\n```python\n{code}\n```\nNow it runs."),
        format!("```python\nx = 1\n```\nThe whole script:\n```python\n{code}\n```"),
        code.clone(),
    ] {
        let world = World::new("K=1").on("debugger", move |_| reply.clone());
        let run = world.open();
        let bug = BugReport::new("KeyError: 1", "");
        let mended = invoke_debugger(&run.ctx(), &given, &bug, Purpose::Validation).await.unwrap();
        assert_eq!(
            mended.clone().at_the_time_of(&given),
            SolutionScript {
                content: code.clone(),
                score: None,
                is_executable: true,
                ..given.clone()
            }
        );
    }
}

/// REQ-SF-006, REQ-SF-007, REQ-EX-021
#[tokio::test]
async fn one_repair_takes_one_call_of_the_debugger_and_a_second_run() {
    let world = World::new("K=1").on("debugger", |_| fenced(&script(0.8)));
    let evaluated = run_and_repair(&world, &with_content(&broken())).await;
    assert_eq!((world.calls_of("debugger").len(), world.jobs().len()), (1, 2));
    let mended = SolutionScript { score: Some(score(0.8)), ..with_content(&script(0.8)) };
    assert_eq!(evaluated.solution.clone().at_the_time_of(&mended), mended);
    assert_eq!(evaluated.result.score, Some(score(0.8)));
    assert_eq!(evaluated.bug, None);
}

/// REQ-SF-006, REQ-SF-007
#[tokio::test]
async fn the_debugger_is_asked_once_per_failure_with_the_latest_script_and_error() {
    let world = World::new("K=1 max_debug_attempts=3").on("debugger", |call| {
        fenced(&format!("raise ValueError('after {}')\n{SCORE_LINE}", index(call, "attempt")))
    });
    let evaluated = run_and_repair(&world, &with_content(&broken())).await;

    let given: Vec<_> = world
        .calls_of("debugger")
        .into_iter()
        .map(|call| {
            let bug = call.input["bug"].as_str().unwrap().lines().last().unwrap().to_owned();
            let code = call.input["code"].as_str().unwrap().lines().next().unwrap().to_owned();
            (code, bug)
        })
        .collect();
    let expected = [
        ("raise ValueError('no such column')", "ValueError: no such column"),
        ("raise ValueError('after 0')", "ValueError: after 0"),
        ("raise ValueError('after 1')", "ValueError: after 1"),
    ];
    assert_eq!(given, expected.map(|(code, bug)| (code.to_owned(), bug.to_owned())));
    assert_eq!(world.jobs().len(), 4);
    assert_eq!(evaluated.bug.unwrap().headline(), "ValueError: after 2");
}

/// REQ-SF-008
#[tokio::test]
async fn a_script_that_was_never_mended_is_marked_as_failed() {
    let world = World::new("K=1 max_debug_attempts=1").on("debugger", |_| fenced(&broken()));
    let evaluated = run_and_repair(&world, &with_content("raise KeyError('x')\n")).await;
    let content = format!("{}\n{SCORE_LINE}\n", broken().trim_end());
    let failed = SolutionScript { is_executable: false, score: None, ..with_content(&content) };
    assert_eq!(evaluated.solution.at_the_time_of(&failed), failed);
}

/// REQ-SF-008
#[tokio::test]
async fn after_a_hopeless_script_the_last_working_one_stands() {
    // The check of Phase 1 revises a working script to one that fails for good.
    let world = World::new("M=1 T=1 K=1 L=1 max_debug_attempts=1")
        .on("data", |_| fenced(&broken()))
        .on("debugger", |_| "No idea.".to_owned());
    let completed = world.run().await.unwrap();
    let initial = completed.result.phase1.initial_solution;
    assert_eq!((initial.content, initial.is_executable), (script(0.5), true));
}

/// REQ-SF-010
#[tokio::test]
async fn a_debugger_that_drops_the_score_line_gets_it_put_back() {
    let dropped = "final_validation_score = 0.5";
    for (purpose, content) in [
        (Purpose::Validation, format!("{dropped}\n{SCORE_LINE}\n")),
        // C-52: the other scripts have no such variable.
        (Purpose::Ablation, dropped.to_owned()),
        (Purpose::Submission, dropped.to_owned()),
    ] {
        let world = World::new("K=1").on("debugger", move |_| fenced(dropped));
        let run = world.open();
        let bug = BugReport::new("KeyError: 1", "");
        let mended = invoke_debugger(&run.ctx(), &solution(0.5), &bug, purpose).await.unwrap();
        assert_eq!(mended.content, content, "{purpose:?}");
        assert_eq!(world.warnings().len(), usize::from(purpose == Purpose::Validation));
    }
}

/// REQ-SF-010
#[tokio::test]
async fn the_score_line_is_put_before_the_main_block() {
    let code = "def main():\n    pass\n\nif __name__ == '__main__':\n    main()";
    let world = World::new("K=1").on("debugger", move |_| fenced(code));
    let run = world.open();
    let bug = BugReport::new("KeyError: 1", "");
    let mended =
        invoke_debugger(&run.ctx(), &solution(0.5), &bug, Purpose::Validation).await.unwrap();
    assert_eq!(
        mended.content,
        format!("def main():\n    pass\n\n{SCORE_LINE}\nif __name__ == '__main__':\n    main()")
    );
}

/// REQ-SF-040
#[tokio::test]
async fn a_debugger_without_code_costs_an_attempt_but_no_run() {
    for reply in ["Try pandas instead.", "", "```python\n```"] {
        // The second attempt mends it.
        let world =
            World::new("K=1 max_debug_attempts=2").on("debugger", move |call| {
                match index(call, "attempt") {
                    0 => reply.to_owned(),
                    _ => fenced(&script(0.8)),
                }
            });
        let evaluated = run_and_repair(&world, &with_content(&broken())).await;
        assert_eq!(evaluated.solution.score, Some(score(0.8)), "{reply:?}");
        assert_eq!(world.warnings(), [format!("A_debugger wrote no code: {reply}")]);
        assert_eq!(
            world.steps(),
            [
                "here/attempt-0/run",
                "here/attempt-0/debugger",
                "here/attempt-1/debugger",
                "here/attempt-1/leakage",
                "here/attempt-2/run",
            ]
        );
        let codes: Vec<_> =
            world.calls_of("debugger").iter().map(|call| call.input["code"].clone()).collect();
        assert_eq!(codes, [broken(), broken()]);
    }
}

/// REQ-SF-040
#[tokio::test]
async fn a_debugger_that_changes_nothing_costs_an_attempt_but_no_run() {
    // Models do not repeat the line break at the end of a script.
    for ending in ["", "\n"] {
        let given = format!("raise KeyError('x')\n{SCORE_LINE}{ending}");
        let world = World::new("K=1 max_debug_attempts=2")
            .on("debugger", |call| fenced(call.input["code"].as_str().unwrap().trim_end()));
        let evaluated = run_and_repair(&world, &with_content(&given)).await;
        assert_eq!(evaluated.solution.score, None);
        assert_eq!(world.calls_of("debugger").len(), 2, "{ending:?}");
        assert_eq!((world.jobs().len(), world.calls_of("leakage").len()), (1, 0), "{ending:?}");
    }
}

/// REQ-SF-022, REQ-SF-007
#[tokio::test]
async fn what_the_debugger_changed_is_checked_for_leakage_and_run_as_corrected() {
    let world = leaking(leaks(&[LEAK]), |_| fenced(MENDED_LEAK)).on("debugger", |_| fenced(LEAKY));
    let evaluated = run_and_repair(&world, &with_content(&broken())).await;
    let corrected = LEAKY.replace(LEAK, MENDED_LEAK);
    assert_eq!(evaluated.solution.content, corrected);
    assert_eq!(
        world.steps(),
        [
            "here/attempt-0/run",
            "here/attempt-0/debugger",
            "here/attempt-0/leakage",
            "here/attempt-0/leak-0/leakage_correction",
            "here/attempt-1/run",
        ]
    );
    let ran: Vec<String> = world.jobs().into_iter().map(|job| job.script).collect();
    assert_eq!(ran, [broken(), corrected]);
}

/// REQ-SF-007
#[tokio::test]
async fn a_script_that_calls_exit_is_not_run_but_mended() {
    for (line, call) in [("exit()", "exit()"), ("sys.exit(0)", "sys.exit()"), ("quit()", "quit()")]
    {
        let world = World::new("K=1");
        let given = format!("import sys\n{line}\n{}", script(0.5));
        let evaluated = run_and_repair(&world, &with_content(&given)).await;
        assert_eq!(evaluated.solution.score, Some(score(0.4)));
        let ran: Vec<String> = world.jobs().into_iter().map(|job| job.script).collect();
        assert_eq!(ran, [script(0.4)]);
        assert_eq!(
            world.calls_of("debugger")[0].input["bug"],
            format!(
                "{HEADER}\nScriptRejected: line 2: `{call}` ends the program early and is not \
                 allowed"
            )
        );
    }
}

/// REQ-SF-007
#[tokio::test]
async fn an_exit_that_stays_is_a_failure_like_any_other() {
    let world = World::new("K=1").on("debugger", |_| "It is fine.".to_owned());
    let given = format!("exit()\n{}", script(0.5));
    let evaluated = run_and_repair(&world, &with_content(&given)).await;
    assert_eq!(evaluated.result.exit_code, -1);
    assert_eq!((evaluated.result.is_error, evaluated.result.error_traceback), (true, None));
    assert_eq!(evaluated.solution.score, None);
    assert_eq!((world.jobs().len(), world.calls_of("debugger").len()), (0, 3));
}

/// REQ-SF-036
#[tokio::test]
async fn a_call_of_the_debugger_takes_little_time_of_its_own() {
    let long = format!("{}{}", "x = [1, 2, {'a': 3}]\n".repeat(5000), script(0.5));
    let reply = fenced(&long.replace("0.5", "0.6"));
    let world = World::new("K=1").on("debugger", move |_| reply.clone());
    let run = world.open();
    let bug = BugReport::new("KeyError: 1", &"noise\n".repeat(5000));
    let began = Instant::now();
    invoke_debugger(&run.ctx(), &with_content(&long), &bug, Purpose::Validation).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
}

// The leakage agent.

/// REQ-SF-012, REQ-SF-014, REQ-SF-015
#[tokio::test]
async fn the_detector_is_shown_the_script_and_answers_to_a_schema() {
    let world = World::new("K=1");
    checked(&world, LEAKY).await;
    let call = world.calls().remove(0);
    assert_eq!(call.input, json!({"code": LEAKY}));
    contains_all(
        &call.prompt,
        &[
            &format!("\n{LEAKY}\n"),
            "Extract the block of code that preprocesses the data",
            "is trained on training samples only",
            "validation samples stay out of training until the final validation score is printed",
            "Find out whether data leaks",
            "Answer = {'leakage_status': str, 'code_block': str}",
            "exactly `Yes Data Leakage` or `No Data Leakage`",
            "copied exactly from the script",
        ],
    );
    let schema = call.schema.unwrap();
    assert_eq!(schema, OutputSchema::LeakageDetectionOutput.json_schema());
    assert_eq!(
        AgentConfig::for_agent(AgentType::Leakage).to_output_format(),
        Some(json!({"type": "json_schema", "schema": schema}))
    );
    let reply: LeakageDetectionOutput = serde_json::from_str(&leaks(&[LEAK])).unwrap();
    let answer = LeakageAnswer { leakage_status: LeakageStatus::Yes, code_block: LEAK.to_owned() };
    assert_eq!(reply, LeakageDetectionOutput { answers: vec![answer] });
}

/// REQ-SF-013
#[tokio::test]
async fn an_empty_script_is_not_checked_for_leakage() {
    let world = World::new("K=1");
    let run = world.open();
    for content in ["", " \n"] {
        let error = check_and_fix_leakage(&run.ctx(), &with_content(content)).await.unwrap_err();
        assert!(matches!(error, Error::Precondition(_)), "{error}");
    }
    assert_eq!(world.calls(), []);
}

/// REQ-SF-018, REQ-SF-020, REQ-SF-037
#[tokio::test]
async fn a_clean_script_takes_one_call_and_stays_as_it_is() {
    let world = World::new("K=1");
    assert_eq!(checked(&world, LEAKY).await, LEAKY);
    assert_eq!(variants(&world), ["detection"]);
    assert_eq!(
        world.events(),
        [(String::new(), Event::LeakageChecked { found: false, changed: false })]
    );
}

/// REQ-SF-020, REQ-SF-019, REQ-SF-037
#[tokio::test]
async fn a_leaking_block_is_replaced_by_its_correction() {
    let world = leaking(leaks(&[LEAK]), |_| fenced(MENDED_LEAK));
    assert_eq!(checked(&world, LEAKY).await, LEAKY.replace(LEAK, MENDED_LEAK));
    assert_eq!(variants(&world), ["detection", "correction"]);
    assert_eq!(
        world.events(),
        [(String::new(), Event::LeakageChecked { found: true, changed: true })]
    );
}

/// REQ-SF-016, REQ-SF-017, REQ-SF-045
#[tokio::test]
async fn the_corrector_is_shown_the_script_and_the_block_that_leaks() {
    let world = leaking(leaks(&[LEAK]), |_| fenced(MENDED_LEAK));
    checked(&world, LEAKY).await;
    let call = world.calls().remove(1);
    assert_eq!(call.input, json!({"code": LEAKY, "code_block": LEAK}));
    assert_eq!(call.schema, None);
    contains_all(
        &call.prompt,
        &[
            &format!("\n{LEAKY}\n"),
            &format!("\n{LEAK}\n"),
            "is trained on training samples only",
            "Validation samples are not used in training before the final validation score",
            "Refine this block to prevent the leakage",
            "Note that all the variables are defined earlier. Just modify it with the above code.",
            "One markdown code block",
        ],
    );
}

/// REQ-SF-020
#[tokio::test]
async fn each_leak_is_corrected_in_the_script_as_corrected_so_far() {
    let world = leaking(leaks(&[LEAK, "score = 0.5", LEAK]), |call| {
        fenced(match call.input["code_block"].as_str().unwrap() {
            LEAK => MENDED_LEAK,
            _ => "score = 0.4",
        })
    });
    let first = LEAKY.replace(LEAK, MENDED_LEAK);
    assert_eq!(checked(&world, LEAKY).await, first.replace("0.5", "0.4"));
    // A block that is reported twice is corrected once.
    let corrections: Vec<Value> =
        world.calls_of("leakage").into_iter().skip(1).map(|call| call.input).collect();
    assert_eq!(
        corrections,
        [
            json!({"code": LEAKY, "code_block": LEAK}),
            json!({"code": first, "code_block": "score = 0.5"}),
        ]
    );
}

/// REQ-SF-018
#[tokio::test]
async fn only_blocks_that_leak_are_corrected() {
    let answers = json!({"answers": [
        {"leakage_status": "No Data Leakage", "code_block": "import math"},
        {"leakage_status": "Yes Data Leakage", "code_block": LEAK},
    ]});
    let world = leaking(answers.to_string(), |_| fenced(MENDED_LEAK));
    assert_eq!(checked(&world, LEAKY).await, LEAKY.replace(LEAK, MENDED_LEAK));
    assert_eq!(world.calls()[1].input["code_block"], LEAK);
    assert_eq!(world.calls().len(), 2);
}

/// REQ-SF-021
#[tokio::test]
async fn a_block_that_is_not_in_the_script_is_not_paid_for() {
    let world = leaking(leaks(&["scaler.fit(all)", " ", LEAK]), |_| fenced(MENDED_LEAK));
    assert_eq!(checked(&world, LEAKY).await, LEAKY.replace(LEAK, MENDED_LEAK));
    assert_eq!(variants(&world), ["detection", "correction"]);
    assert_eq!(
        world.warnings(),
        [
            "the leaking block is not in the script: scaler.fit(all)",
            "the leaking block is not in the script:  ",
        ]
    );
}

/// REQ-SF-021
#[tokio::test]
async fn blanks_at_the_ends_of_lines_do_not_hide_a_leak() {
    let script = LEAKY.replace(LEAK, "scaler.fit(everything)  \nscaler.use()\t");
    let world = leaking(leaks(&["scaler.fit(everything)\nscaler.use()"]), |_| fenced(MENDED_LEAK));
    let mended = checked(&world, &script).await;
    assert_eq!(mended.replace('\t', ""), LEAKY.replace(LEAK, MENDED_LEAK));
}

/// REQ-SF-019
#[tokio::test]
async fn a_correction_that_corrects_nothing_is_skipped() {
    for reply in [
        String::new(),
        "There is no leak.".to_owned(),
        fenced(""),
        fenced(LEAK),
        format!("```python\n{LEAK}  \n\n```"),
        // The whole script, as it was.
        fenced(LEAKY.trim_end()),
        fenced(LEAKY),
    ] {
        let world = leaking(leaks(&[LEAK]), {
            let reply = reply.clone();
            move |_| reply.clone()
        });
        assert_eq!(checked(&world, LEAKY).await, LEAKY, "{reply:?}");
        assert_eq!(world.warnings(), [format!("A_leakage corrected nothing: {reply}")]);
        let (_, event) = world.events().pop().unwrap();
        assert_eq!(event, Event::LeakageChecked { found: true, changed: false }, "{reply:?}");
    }
}

/// REQ-SF-019
#[tokio::test]
async fn a_correction_that_is_the_whole_script_takes_its_place() {
    let corrected = LEAKY.replace(LEAK, MENDED_LEAK);
    let world = leaking(leaks(&[LEAK]), {
        let reply = fenced(&corrected);
        move |_| reply.clone()
    });
    assert_eq!(checked(&world, LEAKY).await, corrected);
}

/// REQ-SF-019
#[tokio::test]
async fn a_correction_that_would_break_the_script_is_dropped() {
    let world = leaking(leaks(&[LEAK]), |_| fenced("scaler.fit(train"));
    assert_eq!(checked(&world, LEAKY).await, LEAKY);
    assert_eq!(world.warnings().len(), 1);
    assert!(world.warnings()[0].contains("does not parse"), "{:?}", world.warnings());
}

/// REQ-SF-038
#[tokio::test]
async fn a_detection_that_cannot_be_read_leaves_the_script_as_it_is() {
    for reply in [
        "",
        "Yes Data Leakage",
        "{\"answers\": [",
        "{\"answers\": []}",
        "{\"answers\": [{\"leakage_status\": \"Maybe\", \"code_block\": \"import math\"}]}",
        "{\"answers\": [{\"leakage_status\": \"Yes Data Leakage\"}]}",
    ] {
        let world = leaking(reply, |_| fenced(MENDED_LEAK));
        assert_eq!(checked(&world, LEAKY).await, LEAKY, "{reply:?}");
        assert_eq!(variants(&world), ["detection"], "{reply:?}");
        let warned = format!("the reply of A_leakage could not be read: {reply}");
        assert_eq!(world.warnings(), [warned]);
    }
}

/// REQ-SF-014, REQ-SF-038
#[tokio::test]
async fn a_detection_is_read_in_every_disguise() {
    let answer = json!({"leakage_status": " yes data LEAKAGE ", "code_block": LEAK});
    let object = json!({"answers": [answer]});
    let list = json!([answer]).to_string();
    for reply in [
        Reply::text(object.to_string()),
        Reply::text(list.as_str()),
        Reply::text(format!("I looked.\n```json\n{object}\n```")),
        Reply { structured: Some(object.clone()), ..Reply::text("Here you are.") },
    ] {
        let world = World::new("K=1").on_call(move |call| {
            let correction = Reply::text(fenced(MENDED_LEAK));
            let is_detection = call.variant.as_deref() == Some("detection");
            Some(Ok(if is_detection { reply.clone() } else { correction }))
        });
        assert_eq!(checked(&world, LEAKY).await, LEAKY.replace(LEAK, MENDED_LEAK));
    }
}

/// REQ-SF-022
#[tokio::test]
async fn every_script_that_a_run_scores_or_submits_was_checked_for_leakage() {
    let world = World::new("M=2 T=2 K=2 L=2 R=2")
        // A revision, so that the re-evaluation of Phase 1 is seen too.
        .on("data", |_| fenced(&script(0.58)))
        .on("coder", |call| match index(call, "inner") {
            0 => fenced("raise ValueError('x')"),
            _ => fenced(&block(0.7)),
        });
    world.run().await.unwrap();
    let checked: Vec<String> = world
        .calls_of("leakage")
        .iter()
        .map(|call| call.input["code"].as_str().unwrap().to_owned())
        .collect();
    let ablation = "print('without the score: -0.1')";
    let ran: Vec<String> = world.jobs().into_iter().map(|job| job.script).collect();
    assert!(ran.len() > 10, "{ran:#?}");
    for script in ran.iter().filter(|script| *script != ablation) {
        assert!(checked.contains(script), "not checked:\n{script}");
    }
    // And in the right order: within its scope, every run has a check of its own before it.
    let steps = world.steps();
    for (position, step) in steps.iter().enumerate() {
        let Some((scope, attempt)) = step.rsplit_once("/attempt-") else { continue };
        if scope.ends_with("/study") || !attempt.ends_with("/run") {
            continue;
        }
        let so_far = |end: &str| {
            let here = |it: &&String| it.starts_with(&format!("{scope}/")) && it.ends_with(end);
            steps[..=position].iter().filter(here).count()
        };
        assert_eq!(so_far("/leakage"), so_far("/run"), "{step}: {steps:#?}");
    }
}

/// REQ-SF-022
#[tokio::test]
async fn a_correction_that_removes_the_submission_is_dropped() {
    let world = leaking(leaks(&[submitting().trim_end()]), |_| fenced("model.fit(train)"));
    let run = world.open();
    let script = SolutionScript { phase: SolutionPhase::Final, ..with_content(&submitting()) };
    let options = EvalOptions::submission(&world.config);
    let evaluated = evaluate(&run.ctx(), &script, options).await.unwrap();
    assert_eq!(evaluated.solution.content, submitting());
    assert!(evaluated.submission_info.exists);
    assert_eq!(world.warnings(), ["a leakage correction removed the submission and was dropped"]);
}

// The data agent.

/// REQ-SF-025, REQ-SF-029, REQ-SF-046
#[tokio::test]
async fn the_data_agent_is_shown_the_solution_the_task_and_the_rules() {
    let world = World::new("K=1");
    let run = world.open();
    check_data_usage(&run.ctx(), &solution(0.5)).await.unwrap();
    let call = world.calls().remove(0);
    assert_eq!(
        call.input,
        json!({"initial_solution": script(0.5), "task_description": "Predict y from x."})
    );
    contains_all(
        &call.prompt,
        &[
            &format!("\n{}\n", script(0.5)),
            "Predict y from x.",
            "If some of it is not used yet, revise the solution",
            "Search the task description for what it means and how to read it",
            "Do not get around it by try and except",
            "DO NOT USE TRY AND EXCEPT; just occur error so we can debug it!",
            "`Final Validation Performance: {final_validation_score}`",
            "one markdown code block",
            "All the provided information is used.",
        ],
    );
}

/// REQ-SF-026
#[tokio::test]
async fn the_data_agent_needs_a_solution_and_a_task() {
    let world = World::new("K=1");
    let run = world.open();
    let error = check_data_usage(&run.ctx(), &with_content(" ")).await.unwrap_err();
    assert!(matches!(error, Error::Precondition(_)), "{error}");
    assert_eq!(world.calls(), []);

    let mut world = World::new("K=1");
    world.task.description = " \n".to_owned();
    let run = world.open();
    let error = check_data_usage(&run.ctx(), &solution(0.5)).await.map(|it| it.content);
    assert!(matches!(error, Err(Error::Precondition(_))), "{error:?}");
    assert_eq!(world.calls(), []);
}

/// REQ-SF-027, REQ-SF-028, REQ-SF-035
#[tokio::test]
async fn the_data_agent_keeps_the_solution_or_revises_it() {
    let given = SolutionScript { source_model: Some("gbm".to_owned()), ..solution(0.5) };
    for (reply, content) in [
        ("All the provided information is used.".to_owned(), script(0.5)),
        ("  ALL THE PROVIDED INFORMATION IS USED.  ".to_owned(), script(0.5)),
        (format!("All the provided information is used.\n{}", fenced(&script(0.9))), script(0.5)),
        (fenced(&script(0.9)), script(0.9)),
        (format!("The notes were not used.\n{}", fenced(&script(0.9))), script(0.9)),
    ] {
        let changed = content != given.content;
        let world = World::new("K=1").on("data", move |_| reply.clone());
        let run = world.open();
        let revised = check_data_usage(&run.ctx(), &given).await.unwrap();
        let expected = if changed {
            SolutionScript { content, score: None, ..given.clone() }
        } else {
            given.clone()
        };
        assert_eq!(revised.at_the_time_of(&given), expected);
        assert_eq!(world.events(), [(String::new(), Event::DataUsageChecked { changed })]);
    }
}

/// REQ-SF-039
#[tokio::test]
async fn a_data_agent_that_says_neither_leaves_the_solution_as_it_is() {
    for reply in ["", "All information provided is being used.", "```python\n```", "%§ garbage"] {
        let world = World::new("K=1").on("data", move |_| reply.to_owned());
        let run = world.open();
        let revised = check_data_usage(&run.ctx(), &solution(0.5)).await.unwrap();
        assert_eq!(revised, solution(0.5), "{reply:?}");
        let warned = format!("the reply of A_data could not be read: {reply}");
        assert_eq!(world.warnings(), [warned]);
    }
}

/// REQ-SF-030
#[tokio::test]
async fn the_use_of_data_is_checked_once_between_merging_and_phase_2() {
    let world = World::new("M=2 T=1 K=1 L=2 R=1").on("data", |_| fenced(&script(0.57)));
    let completed = world.run().await.unwrap();
    assert_eq!(completed.result.phase1.initial_solution.content, script(0.57));
    let steps = world.steps();
    let data: Vec<_> = steps.iter().filter(|step| step.ends_with("/data")).collect();
    assert_eq!(data, ["phase1/checks/data"]);
    let at = |wanted: &dyn Fn(&String) -> bool| steps.iter().position(wanted).unwrap();
    let merged = at(&|step| step.starts_with("phase1/merge-1/") && step.ends_with("/run"));
    let data = at(&|step| step == "phase1/checks/data");
    let leakage = at(&|step| step == "phase1/checks/leakage");
    let evaluated = at(&|step| step == "phase1/checks/attempt-0/run");
    let refined = at(&|step| step.starts_with("phase2/"));
    let order = [merged, data, leakage, evaluated, refined];
    assert!(order.is_sorted(), "{order:?} {steps:#?}");
    // What the data agent wrote is evaluated once.
    let runs = world.jobs().into_iter().filter(|job| job.script == script(0.57)).count();
    assert_eq!(runs, 1);
}

// Agents that do not answer.

/// REQ-SF-038, REQ-SF-039, REQ-SF-040
#[tokio::test]
async fn a_safety_agent_that_refuses_leaves_the_script_as_it_is() {
    let world = World::new("K=1")
        .on_call(refusing("leakage"))
        .on_call(refusing("data"))
        .on_call(refusing("debugger"));
    let run = world.open();
    let ctx = run.ctx();
    let bug = BugReport::new("KeyError: 1", "");
    let given = solution(0.5);
    assert_eq!(check_and_fix_leakage(&ctx, &given).await.unwrap(), given);
    assert_eq!(check_data_usage(&ctx, &given).await.unwrap(), given);
    let mended = invoke_debugger(&ctx, &given, &bug, Purpose::Validation).await.unwrap();
    assert_eq!(mended, given);
    for role in ["leakage", "data", "debugger"] {
        let warned = format!("A_{role} gave no answer: refused");
        assert!(world.warnings().contains(&warned), "{:?}", world.warnings());
    }
}

/// REQ-SF-040
#[tokio::test]
async fn a_debugger_that_refuses_costs_all_attempts_but_one_run() {
    let world = World::new("K=1 max_debug_attempts=2").on_call(refusing("debugger"));
    let evaluated = run_and_repair(&world, &with_content(&broken())).await;
    assert_eq!((evaluated.solution.score, evaluated.solution.is_executable), (None, false));
    assert_eq!((world.calls_of("debugger").len(), world.jobs().len()), (2, 1));
}

/// REQ-SF-042
#[tokio::test]
async fn a_safety_agent_that_cannot_be_reached_stops_the_step_and_records_nothing() {
    for role in ["leakage", "data", "debugger"] {
        let gone = AgentError::Unauthorized { reason: "overloaded".to_owned() };
        let world = World::new("K=1").on_call(failing(role, gone));
        let run = world.open();
        let error = ask(role, &run).await.unwrap_err();
        assert_eq!(error.to_string(), format!("could not ask the agent at step `{role}`"));
        assert!(error.stops_the_run());
        assert_eq!((world.steps(), world.events()), (Vec::new(), Vec::new()), "{role}");
    }
}

async fn ask(role: &str, run: &Run) -> Result<SolutionScript, Error> {
    let (ctx, given) = (run.ctx(), solution(0.5));
    match role {
        "leakage" => check_and_fix_leakage(&ctx, &given).await,
        "data" => check_data_usage(&ctx, &given).await,
        _ => {
            let bug = BugReport::new("KeyError: 1", "");
            invoke_debugger(&ctx, &given, &bug, Purpose::Validation).await
        }
    }
}

// Scores without repairs.

/// REQ-EX-015, REQ-EX-016, REQ-EX-026, REQ-EX-028, REQ-EX-029, REQ-EX-031
#[tokio::test]
async fn a_batch_is_run_one_after_the_other_and_judged_in_its_order() {
    let world = World::new("K=1");
    let run = world.open();
    let scripts = [solution(0.3), with_content("raise ValueError('no')"), solution(0.7)];
    let before = scripts.clone();
    let options = EvalOptions::validation(&world.config);
    let results = evaluate_batch(&run.ctx().scope("here"), &scripts, options).await.unwrap();

    let scores: Vec<_> = results.iter().map(|it| it.result.usable_score()).collect();
    assert_eq!(scores, [Some(score(0.3)), None, Some(score(0.7))]);
    assert_eq!(scripts, before, "what is judged is not changed");
}

/// REQ-EX-030, REQ-EX-032
#[tokio::test]
async fn an_evaluator_scores_scripts_for_its_own_task() {
    let world = World::new("K=1");
    let run = world.open();
    let ctx = run.ctx().scope("here");
    let evaluator: &dyn ScoreFunction =
        &Evaluator { options: EvalOptions::validation(&world.config), ctx };
    let result = evaluator.score(&solution(0.3), &world.task).await.unwrap();
    assert_eq!(result.score, Some(score(0.3)));

    let other = TaskDescription { competition_id: "other".to_owned(), ..world.task.clone() };
    let error = evaluator.score(&solution(0.3), &other).await.unwrap_err();
    assert!(matches!(error, Error::Precondition(_)), "{error}");
}

/// REQ-EX-023
#[tokio::test]
async fn only_a_usable_score_that_is_strictly_better_is_better() {
    let better = async |content: &str, old: f64| {
        let world = World::new("K=1");
        let run = world.open();
        let options = EvalOptions::validation(&world.config);
        let script = with_content(content);
        let ran = evaluate_solution(&run.ctx().scope("here"), &script, options).await;
        let result = ran.unwrap().result;
        is_better_solution(&result, score(old), MetricDirection::Maximize)
    };
    assert!(better(&script(0.9), 0.8).await);
    assert!(!better(&script(0.9), 0.9).await);
    assert!(!better("print('no score')", 0.1).await);
}
