//! From the best solution to the submission.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use mle_star_agent::{AgentError, Reply};
use mle_star_exec::{Ended, ExecError, SubmissionInfo};
use mle_star_search::evaluate::Purpose;
use mle_star_search::event::{Event, Phase};
use mle_star_search::finalize::{Finalized, run_finalization};
use mle_star_search::models::{
    ContaminationVerdict, DataContaminationResult, FinalResult, OutputSchema, PhaseOutcome,
    PhaseStatus, SolutionPhase, SolutionScript,
};
use mle_star_search::roles::{check_contamination, generate_test_submission, remove_subsampling};
use mle_star_search::{Completed, Error};
use serde_json::json;

use crate::world::{World, fenced, outcome, score, script, solution, submitting};

const EXTRACT: Option<&str> = Some("subsampling_extract");
const REMOVE: Option<&str> = Some("subsampling_remove");
const CONTAMINATION: Option<&str> = Some("contamination");

/// A script that runs to the end and leaves nothing behind.
const FORGETFUL: &str = "x = 1\n";

const MISSING: &str =
    "Traceback (most recent call last):\nFileNotFoundError: ./final/submission.csv";

async fn finalized(world: &World, solution: &SolutionScript) -> Finalized {
    let run = world.open();
    run_finalization(&run.ctx(), solution, &world.references).await.unwrap()
}

/// A_test answers `reply` to one of its prompts, and as before to the others.
fn on_test(world: World, variant: Option<&'static str>, reply: impl Into<String>) -> World {
    let reply = reply.into();
    world.on_call(move |call| {
        let asked = call.role == "test" && call.variant.as_deref() == variant;
        asked.then(|| Ok(Reply::text(reply.as_str())))
    })
}

/// A world in which A_test finds `block` and rewrites it as `rewritten`.
fn subsampling(block: &str, rewritten: &str) -> World {
    on_test(on_test(World::new(""), EXTRACT, fenced(block)), REMOVE, fenced(rewritten))
}

/// A world that compares with discussions, to which A_test answers the replies in turn.
fn discussing(replies: &'static [&'static str]) -> World {
    let mut world = World::new("").on_call(|call| {
        let number = call.step.strip_prefix("reference-")?.split('/').next()?;
        Some(Ok(Reply::text(replies[number.parse::<usize>().unwrap()])))
    });
    world.references =
        (0..replies.len()).map(|index| format!("We averaged {index} trees.")).collect();
    world
}

fn written(content: &str) -> SolutionScript {
    SolutionScript { content: content.to_owned(), ..solution(0.5) }
}

/// The solution, rewritten and not evaluated since.
fn rewritten(content: &str) -> SolutionScript {
    SolutionScript { score: None, ..written(content) }
}

fn undated(script: &SolutionScript) -> SolutionScript {
    SolutionScript { created_at: Timestamp::UNIX_EPOCH, ..script.clone() }
}

/// The script that made the submission, with the validation score of the solution it stands for.
fn submitted(content: &str) -> SolutionScript {
    SolutionScript {
        score: Some(score(0.5)),
        ..SolutionScript::new(content, SolutionPhase::Final, Timestamp::UNIX_EPOCH)
    }
}

fn verdict(verdict: ContaminationVerdict) -> Option<DataContaminationResult> {
    Some(DataContaminationResult { verdict })
}

fn run_scripts(world: &World) -> Vec<String> {
    world.jobs().into_iter().map(|job| job.script).collect()
}

async fn without_subsampling(world: &World, solution: &SolutionScript) -> SolutionScript {
    let run = world.open();
    undated(&remove_subsampling(&run.ctx(), solution).await.unwrap())
}

// ---- subsampling

/// REQ-FN-001, REQ-FN-003, REQ-FN-004, REQ-FN-006, REQ-FN-007, REQ-FN-009, REQ-FN-038, REQ-FN-048
#[tokio::test]
async fn the_block_that_subsamples_is_replaced_with_two_calls() {
    let world = subsampling("df = df.sample(30000)\nB", "B");
    let full = without_subsampling(&world, &written("A\ndf = df.sample(30000)\nB")).await;
    assert_eq!(full, rewritten("A\nB"));
    assert_eq!(world.warnings(), [""; 0]);

    let calls = world.calls();
    let asked: Vec<_> =
        calls.iter().map(|call| (call.variant.as_deref(), call.input.clone())).collect();
    assert_eq!(
        asked,
        [
            (EXTRACT, json!({"final_solution": "A\ndf = df.sample(30000)\nB"})),
            (REMOVE, json!({"code_block_with_subsampling": "df = df.sample(30000)\nB"})),
        ]
    );
    for call in &calls {
        assert_eq!((call.tools.as_slice(), &call.schema), (["Read".to_owned()].as_slice(), &None));
    }
    assert!(calls[0].prompt.contains("A\ndf = df.sample(30000)\nB"), "{}", calls[0].prompt);
    assert!(calls[1].prompt.contains("df = df.sample(30000)\nB"), "{}", calls[1].prompt);
}

/// REQ-FN-007
#[tokio::test]
async fn a_block_within_a_function_keeps_its_indentation() {
    let world = subsampling("    df = df.head(9)\n    return df", "    return df");
    let content = "def load():\n    df = read()\n    df = df.head(9)\n    return df\n";
    assert_eq!(
        without_subsampling(&world, &written(content)).await,
        rewritten("def load():\n    df = read()\n    return df\n")
    );
}

/// REQ-FN-003, REQ-FN-007
#[tokio::test]
async fn whitespace_at_the_ends_of_lines_does_not_hide_the_block() {
    let world = subsampling("df = df.sample(3)  \nfit(df)", "fit(df)");
    let full =
        without_subsampling(&world, &written("a = 1\ndf = df.sample(3)\nfit(df) \nb = 2")).await;
    assert_eq!(full, rewritten("a = 1\nfit(df) \nb = 2"));
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-FN-003, REQ-FN-007, REQ-FN-008, REQ-FN-039
#[tokio::test]
async fn a_block_that_is_not_in_the_script_changes_nothing_and_is_quoted_in_a_warning() {
    let quoted = format!("df = df.sample({})", "3".repeat(300));
    let world = subsampling(&quoted, "");
    assert_eq!(without_subsampling(&world, &solution(0.5)).await, solution(0.5));
    assert_eq!(world.calls().len(), 1);
    let excerpt: String = quoted.chars().take(200).collect();
    assert_eq!(
        world.warnings(),
        [format!("the subsampling block is not in the script: {excerpt}")]
    );
}

/// REQ-FN-039
#[tokio::test]
async fn an_extraction_that_is_prose_changes_nothing_and_is_warned_of() {
    let world = on_test(World::new(""), EXTRACT, "As far as I can tell it uses every row.");
    assert_eq!(without_subsampling(&world, &solution(0.5)).await, solution(0.5));
    assert_eq!(
        world.warnings(),
        ["the subsampling block is not in the script: As far as I can tell it uses every row."]
    );
}

/// REQ-FN-008, REQ-FN-005, REQ-FN-038
#[tokio::test]
async fn where_nothing_is_subsampled_one_call_says_so_and_nobody_is_warned() {
    for reply in
        ["```python\n```", "```python\n\n```", "", "  \n", "None", "`none`.", "```\nNone\n```"]
    {
        let world = on_test(World::new(""), EXTRACT, reply);
        assert_eq!(without_subsampling(&world, &solution(0.5)).await, solution(0.5), "{reply:?}");
        assert_eq!(world.calls().len(), 1, "{reply:?}");
        assert_eq!(world.warnings(), [""; 0], "{reply:?}");
    }
}

/// REQ-FN-006, REQ-FN-007
#[tokio::test]
async fn an_empty_fence_deletes_a_block_that_did_nothing_but_subsample() {
    let world = subsampling("df = df.sample(3)\n", "");
    let full = without_subsampling(&world, &written("a = 1\ndf = df.sample(3)\nfit(df)\n")).await;
    let lines: Vec<_> = full.content.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["a = 1", "fit(df)"]);
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-FN-006
#[tokio::test]
async fn a_result_that_does_not_parse_is_dropped() {
    let world = subsampling("    df = df.sample(3)", "");
    let script = written("if len(df) > 3:\n    df = df.sample(3)\nfit(df)\n");
    assert_eq!(without_subsampling(&world, &script).await, script);
    let warnings = world.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("does not parse"), "{warnings:?}");
}

/// REQ-FN-006, REQ-FN-039
#[tokio::test]
async fn a_removal_without_code_changes_nothing() {
    let world = on_test(subsampling("B", ""), REMOVE, "I would leave it as it is.");
    assert_eq!(without_subsampling(&world, &written("A\nB\n")).await, written("A\nB\n"));
    assert_eq!(world.calls().len(), 2);
    assert_eq!(world.warnings(), ["A_test rewrote no code: I would leave it as it is."]);
}

/// REQ-FN-006
#[tokio::test]
async fn subsampling_that_is_left_over_is_warned_of() {
    let left = "the script may still work on a part of the training data";
    for block in [
        "df = df.sample(30000)",
        "df = df.head(30000)",
        "df = df.iloc[:30000]",
        "X, y = X[:n], y[:n]",
    ] {
        let world = subsampling(&format!("{block}\nfit(df)"), block);
        without_subsampling(&world, &written(&format!("{block}\nfit(df)\n"))).await;
        assert_eq!(world.warnings(), [left], "{block}");
    }
    let world = subsampling("X = df.iloc[:, 1:]\nX = X.sample(3)", "X = df.iloc[:, 1:]");
    without_subsampling(&world, &written("X = df.iloc[:, 1:]\nX = X.sample(3)\n")).await;
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-FN-002, REQ-FN-012
#[tokio::test]
async fn a_blank_script_is_refused_before_anyone_is_asked() {
    let world = World::new("");
    let run = world.open();
    let blank = written(" \n");
    let refused = [
        remove_subsampling(&run.ctx(), &blank).await.unwrap_err(),
        generate_test_submission(&run.ctx(), &blank).await.unwrap_err(),
        check_contamination(&run.ctx(), &blank, &["x".to_owned()]).await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, Error::Precondition(_)), "{error:?}");
    }
    assert_eq!(world.calls(), []);
}

// ---- the submission script

/// REQ-FN-010, REQ-FN-011, REQ-FN-013, REQ-FN-019, REQ-FN-048
#[tokio::test]
async fn the_submission_script_is_the_inner_code_of_the_reply() {
    let world = on_test(World::new(""), None, format!("Here it is.\n{}\nBye.", fenced("a = 1")));
    let run = world.open();
    let script = generate_test_submission(&run.ctx(), &solution(0.5)).await.unwrap().unwrap();
    assert_eq!(
        undated(&script),
        SolutionScript::new("a = 1", SolutionPhase::Final, Timestamp::UNIX_EPOCH)
    );
    let call = &world.calls()[0];
    assert_eq!((call.role.as_str(), call.variant.as_deref()), ("test", None));
    assert_eq!((call.tools.as_slice(), &call.schema), (["Read".to_owned()].as_slice(), &None));
    let solution = crate::world::script(0.5);
    assert_eq!(
        call.input,
        json!({"task_description": "Predict y from x.", "final_solution": solution})
    );
    assert!(call.prompt.contains("Predict y from x.") && call.prompt.contains(&solution));
}

/// REQ-FN-014, REQ-FN-015, REQ-FN-016, REQ-FN-017, REQ-FN-018, REQ-FN-045, REQ-FN-046
#[tokio::test]
async fn the_prompt_orders_what_a_submission_needs() {
    let world = World::new("");
    finalized(&world, &solution(0.5)).await;
    let calls = world.calls_of("test");
    let call = calls.iter().find(|call| call.variant.is_none()).unwrap();
    for sentence in [
        "Do not modify the given Python solution code too much. Try to integrate test submission \
         with minimal changes.",
        "you can even use the full training set.",
        "Test data is available in the `./input/` directory.",
        "Save the test predictions in a `submission.csv` file. Put the `submission.csv` into \
         `./final` directory.",
        "You should not drop any test samples. Predict the target value for all test samples.",
        "Do not use exit() function",
    ] {
        assert!(call.prompt.contains(sentence), "{sentence}");
    }
}

/// REQ-FN-035, REQ-FN-009, REQ-FN-011, REQ-FN-038
#[tokio::test]
async fn the_steps_come_in_the_order_of_the_specification() {
    let mut world = subsampling("df = df.sample(3)", "df = df");
    world.references = vec!["We averaged trees.".to_owned()];
    finalized(&world, &written("df = df.sample(3)\n")).await;
    assert_eq!(
        world.steps(),
        [
            "subsampling_extract",
            "subsampling_remove",
            "test",
            "leakage",
            "attempt-0/run",
            "reference-0/contamination",
        ]
    );
    let calls = world.calls();
    assert_eq!(calls[2].input["final_solution"], "df = df\n");
    assert_eq!(calls[3].input["code"], submitting());
}

/// REQ-FN-020, REQ-FN-021, REQ-FN-022, REQ-FN-036, REQ-FN-042
#[tokio::test]
async fn a_good_script_is_run_once_and_its_submission_kept() {
    let world = World::new("time_limit_seconds=5000");
    let given = solution(0.5);
    let Finalized { solution, submission, contamination } = finalized(&world, &given).await;
    assert_eq!(undated(&solution), submitted(&submitting()));
    assert_eq!(contamination, None);
    let kept = world.dir().solution(&submission.unwrap());
    assert_eq!(fs_err::read_to_string(kept).unwrap(), "id,y\n1,2\n");

    let jobs = world.jobs();
    assert_eq!(run_scripts(&world), [submitting()]);
    let left = Duration::from_secs(5000) - jobs[0].time_limit;
    assert!(left < Duration::from_secs(5), "all the time that is left, not {left:?} less");
    let told: Vec<_> = world.events().into_iter().map(|(_, event)| event).collect();
    assert_eq!(
        told,
        [
            Event::SubsamplingChecked { before: None, after: None },
            Event::LeakageChecked { found: false, changed: false },
            Event::Evaluated { purpose: Purpose::Submission, score: None, repairs: 0, error: None },
            Event::Submitted { rows: Some(1) },
            Event::ContaminationChecked { verdicts: Vec::new(), overall: None },
        ]
    );
}

/// REQ-FN-021, REQ-FN-023, REQ-FN-045
#[tokio::test]
async fn a_missing_submission_is_mended_like_an_error() {
    let world =
        on_test(World::new(""), None, fenced(FORGETFUL)).on("debugger", |_| fenced(&submitting()));
    let finalized = finalized(&world, &solution(0.5)).await;
    assert!(finalized.submission.is_some());
    assert_eq!(undated(&finalized.solution), submitted(&submitting()));
    assert_eq!(run_scripts(&world), [FORGETFUL.to_owned(), submitting()]);
    let inputs: Vec<_> = world.calls_of("debugger").into_iter().map(|call| call.input).collect();
    assert_eq!(
        inputs,
        [json!({
            "code": FORGETFUL, "bug": MISSING, "purpose": "submission", "may_subsample": false
        })]
    );
}

/// REQ-FN-021, REQ-FN-023
#[tokio::test]
async fn an_empty_submission_counts_as_missing() {
    let world = on_test(World::new("max_debug_attempts=1"), None, fenced(FORGETFUL))
        .on("debugger", |_| fenced(FORGETFUL))
        .on_job(|_| {
            let submission = SubmissionInfo {
                exists: true,
                path: "/nowhere/submission.csv".to_owned(),
                size_bytes: 0,
                row_count: Some(0),
                parse_error: Some("the file has no header".to_owned()),
            };
            let ended = outcome(Ended::Exited { code: 0 }, "", "");
            Some(Ok(mle_star_exec::Outcome { submission, ..ended }))
        });
    let finalized = finalized(&world, &solution(0.5)).await;
    assert_eq!(finalized.submission, None);
    assert_eq!(world.calls_of("debugger")[0].input["bug"], MISSING);
}

/// REQ-FN-022
#[tokio::test]
async fn a_submission_that_is_no_table_is_kept_with_a_warning_and_not_mended() {
    for (row_count, parse_error) in [(Some(0), None), (None, Some("not text".to_owned()))] {
        let world = World::new("").on_job(move |job| {
            let path = job.workspace.join("submission.csv");
            fs_err::create_dir_all(&job.workspace).unwrap();
            fs_err::write(&path, "id,y").unwrap();
            let submission = SubmissionInfo {
                exists: true,
                path: path.into_string(),
                size_bytes: 4,
                row_count,
                parse_error: parse_error.clone(),
            };
            let ended = outcome(Ended::Exited { code: 0 }, "", "");
            Some(Ok(mle_star_exec::Outcome { submission, ..ended }))
        });
        let finalized = finalized(&world, &solution(0.5)).await;
        assert!(finalized.submission.is_some());
        assert_eq!(world.calls_of("debugger"), []);
        assert_eq!(world.warnings(), ["the submission cannot be read as a table with rows"]);
    }
}

/// REQ-FN-023
#[tokio::test]
async fn a_script_that_fails_is_mended_within_the_same_limits_even_if_it_wrote_the_file() {
    let world = World::new("")
        .on("debugger", |_| fenced(&format!("y = 2\n{}", submitting())))
        .on_job(|job| {
            let first = job.script == submitting();
            first.then(|| {
                let mut ended = crate::world::interpret(job);
                ended.ended = Ended::TimedOut { after_seconds: 9.0 };
                Ok(ended)
            })
        });
    let finalized = finalized(&world, &solution(0.5)).await;
    assert_eq!(undated(&finalized.solution), submitted(&format!("y = 2\n{}", submitting())));
    assert_eq!(
        world.calls_of("debugger")[0].input["bug"],
        "Traceback (most recent call last):\nTimeoutError: exceeded 9 s"
    );
}

/// REQ-FN-023, REQ-FN-024, REQ-FN-025
#[tokio::test]
async fn when_repairs_are_exhausted_the_solution_handed_in_is_kept_without_a_submission() {
    let world = on_test(subsampling("import math", "import cmath"), None, fenced(FORGETFUL))
        .on("debugger", |call| fenced(&format!("# {}\n{FORGETFUL}", call.step)));
    let given = SolutionScript { source_model: Some("gbm".to_owned()), ..solution(0.5) };
    assert_eq!(
        finalized(&world, &given).await,
        Finalized { solution: given, submission: None, contamination: None }
    );
    assert_eq!((world.calls_of("debugger").len(), world.jobs().len()), (3, 4));
    assert_eq!(
        world.warnings(),
        ["no submission could be made; the best solution is kept: FileNotFoundError: \
             ./final/submission.csv"]
    );
}

/// REQ-FN-040
#[tokio::test]
async fn when_a_test_writes_no_code_the_debugger_gets_the_full_solution_and_is_told_so() {
    let prose = "I am not able to do that. ".repeat(20);
    let world = on_test(subsampling("import math", "import cmath"), None, prose.as_str())
        .on("debugger", |_| fenced(&submitting()));
    let finalized = finalized(&world, &solution(0.5)).await;
    assert_eq!(undated(&finalized.solution).content, submitting());
    assert_eq!(finalized.solution.phase, SolutionPhase::Final);
    assert!(finalized.submission.is_some());

    let asked = world.calls_of("debugger");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].input["code"], script(0.5).replace("import math", "import cmath"));
    let bug = asked[0].input["bug"].as_str().unwrap();
    assert!(bug.starts_with("Traceback (most recent call last):\n"), "{bug}");
    assert!(bug.contains("no submission script was produced"), "{bug}");
    assert_eq!(asked[0].input["purpose"], "submission");
    assert_eq!(run_scripts(&world), [submitting()]);
    let excerpt: String = prose.chars().take(200).collect();
    assert_eq!(world.warnings(), [format!("A_test wrote no code: {excerpt}")]);
}

/// REQ-FN-040, REQ-FN-035
#[tokio::test]
async fn what_the_debugger_writes_in_the_place_of_a_test_is_checked_for_leakage() {
    let world = on_test(World::new(""), None, "No.").on("debugger", |_| fenced(&submitting()));
    finalized(&world, &solution(0.5)).await;
    let checked: Vec<_> = world.calls_of("leakage").into_iter().map(|call| call.input).collect();
    assert_eq!(checked, [json!({"code": submitting()})]);
}

/// REQ-FN-023, REQ-FN-024, REQ-FN-025, REQ-FN-040
#[tokio::test]
async fn a_missing_submission_script_gets_no_more_repairs_than_any_other() {
    let world = on_test(World::new(""), None, "No.").on("debugger", |_| "No.".to_owned());
    let given = solution(0.5);
    assert_eq!(
        finalized(&world, &given).await,
        Finalized { solution: given, submission: None, contamination: None }
    );
    assert_eq!(world.calls_of("debugger").len(), 3);
    // The solution itself writes no submission: running it on all data would be in vain.
    assert_eq!(run_scripts(&world), [""; 0]);
}

/// REQ-FN-046
#[tokio::test]
async fn a_script_that_would_exit_is_never_run_but_mended() {
    let exiting = format!("import sys\n{}sys.exit(0)", submitting());
    let world =
        on_test(World::new(""), None, fenced(&exiting)).on("debugger", |_| fenced(&submitting()));
    let finalized = finalized(&world, &solution(0.5)).await;
    assert!(finalized.submission.is_some());
    assert_eq!(run_scripts(&world), [submitting()]);
    let asked = world.calls_of("debugger");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].input["code"], exiting);
    let bug = asked[0].input["bug"].as_str().unwrap();
    assert!(bug.contains("ScriptRejected: line 3: `sys.exit"), "{bug}");
}

/// REQ-FN-046, REQ-FN-025
#[tokio::test]
async fn every_way_to_end_the_interpreter_is_refused() {
    for call in ["exit()", "quit()", "sys.exit(1)", "os._exit(0)"] {
        let exiting = format!("import os, sys\n{}{call}\n", submitting());
        let reply = exiting.clone();
        let world =
            on_test(World::new(""), None, fenced(&exiting)).on("debugger", move |_| fenced(&reply));
        let finalized = finalized(&world, &solution(0.5)).await;
        assert_eq!(
            finalized,
            Finalized { solution: solution(0.5), submission: None, contamination: None }
        );
        assert_eq!(run_scripts(&world), [""; 0], "{call}");
    }
}

/// REQ-FN-047, REQ-EX-045
#[tokio::test]
async fn a_script_that_hides_its_faults_is_run_with_a_warning() {
    let hiding = format!("try:\n    x = 1\nexcept Exception:\n    pass\n{}", submitting());
    let world = on_test(World::new(""), None, fenced(&hiding));
    assert!(finalized(&world, &solution(0.5)).await.submission.is_some());
    assert_eq!(run_scripts(&world), [hiding]);
    assert_eq!(world.warnings().len(), 1, "{:?}", world.warnings());
}

// ---- leakage

/// A world in which A_leakage finds `block` in the submission script and rewrites it.
fn leaking(script: &str, block: &str, corrected: &str) -> World {
    let found = json!({"answers": [{"leakage_status": "Yes Data Leakage", "code_block": block}]});
    let corrected = fenced(corrected);
    on_test(World::new(""), None, fenced(script)).on_call(move |call| {
        let reply = match call.variant.as_deref() {
            Some("detection") => found.to_string(),
            Some("correction") => corrected.clone(),
            _ => return None,
        };
        Some(Ok(Reply::text(reply)))
    })
}

/// REQ-FN-035
#[tokio::test]
async fn a_leak_in_the_submission_script_is_mended_before_it_runs() {
    let world =
        leaking(&format!("a = fit(test)\n{}", submitting()), "a = fit(test)", "a = fit(train)");
    let finalized = finalized(&world, &solution(0.5)).await;
    let mended = format!("a = fit(train)\n{}", submitting());
    assert_eq!(run_scripts(&world), [mended.as_str()]);
    assert_eq!(undated(&finalized.solution), submitted(&mended));
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-FN-035
#[tokio::test]
async fn a_leakage_correction_that_drops_the_submission_is_discarded() {
    let world = leaking(&submitting(), submitting().trim_end(), "a = 1");
    let finalized = finalized(&world, &solution(0.5)).await;
    assert_eq!(run_scripts(&world), [submitting()]);
    assert_eq!(undated(&finalized.solution), submitted(&submitting()));
    assert_eq!(world.warnings(), ["a leakage correction removed the submission and was dropped"]);
}

/// A script that writes its submission without naming the file.
const INDIRECT: &str = "import kit\na = kit.fit(test)\nkit.submit(a)\n";

/// A world in which scripts write their submission even if they do not name it.
fn submitting_anyway(world: World) -> World {
    world.on_job(|job| {
        let named = format!("{}# submission.csv\n", job.script);
        Some(Ok(crate::world::interpret(&mle_star_exec::Job { script: named, ..job.clone() })))
    })
}

/// REQ-FN-035
#[tokio::test]
async fn a_clean_script_that_does_not_name_the_file_is_not_said_to_have_lost_it() {
    let world = submitting_anyway(on_test(World::new(""), None, fenced(INDIRECT)));
    assert!(finalized(&world, &solution(0.5)).await.submission.is_some());
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-FN-035
#[tokio::test]
async fn a_correction_of_a_script_that_never_named_the_file_is_kept() {
    let world = leaking(INDIRECT, "a = kit.fit(test)", "a = kit.fit(train)");
    let world = submitting_anyway(world);
    finalized(&world, &solution(0.5)).await;
    assert_eq!(run_scripts(&world), [INDIRECT.replace("test", "train")]);
}

// ---- contamination

/// REQ-FN-030, REQ-FN-033
#[tokio::test]
async fn without_discussions_nothing_is_compared() {
    let world = World::new("");
    let run = world.open();
    assert_eq!(check_contamination(&run.ctx(), &solution(0.5), &[]).await.unwrap(), None);
    assert_eq!(world.calls(), []);
}

/// REQ-FN-026, REQ-FN-027, REQ-FN-029, REQ-FN-031, REQ-FN-033
#[tokio::test]
async fn a_solution_is_compared_with_each_discussion_on_its_own() {
    let world = discussing(&[r#"{"verdict": "Novel"}"#, r#"{"verdict": "Novel"}"#]);
    let finalized = finalized(&world, &solution(0.5)).await;
    assert_eq!(finalized.contamination, verdict(ContaminationVerdict::Novel));
    let calls: Vec<_> = world
        .calls_of("test")
        .into_iter()
        .filter(|call| call.variant.as_deref() == CONTAMINATION)
        .collect();
    let inputs: Vec<_> = calls.iter().map(|call| call.input.clone()).collect();
    assert_eq!(
        inputs,
        [0, 1].map(|index| json!({
            "reference_discussion": format!("We averaged {index} trees."),
            "final_solution": submitting(),
        }))
    );
    for call in calls {
        assert_eq!(call.tools, [""; 0]);
        assert_eq!(call.schema, Some(OutputSchema::DataContaminationResult.json_schema()));
        assert!(call.prompt.contains("We averaged") && call.prompt.contains(&submitting()));
    }
}

/// REQ-FN-029, REQ-FN-031, REQ-FN-033, REQ-FN-041
#[tokio::test]
async fn any_copy_is_a_copy_and_an_unreadable_verdict_leaves_the_question_open() {
    let novel = verdict(ContaminationVerdict::Novel);
    let same = verdict(ContaminationVerdict::Same);
    let cases: [(&'static [&'static str], Option<DataContaminationResult>); 9] = [
        (&[r#"{"verdict": "Novel"}"#], novel),
        (&[r#"{"verdict": "Same"}"#], same),
        (&["Novel", "```json\n{\"verdict\": \"Same\"}\n```", "Novel"], same),
        (&["Novel"], novel),
        (&[" Same\n"], same),
        (&["Hard to say."], None),
        (&["Novel", "Hard to say."], None),
        (&["Hard to say.", "Same"], same),
        (&["same as the others, so Novel"], None),
    ];
    for (replies, expected) in cases {
        let world = discussing(replies);
        let run = world.open();
        let found = check_contamination(&run.ctx(), &solution(0.5), &world.references).await;
        assert_eq!(found.unwrap(), expected, "{replies:?}");
        assert_eq!(world.calls().len(), replies.len());
    }
}

/// REQ-FN-041
#[tokio::test]
async fn an_unreadable_verdict_is_quoted_and_the_submission_stands() {
    const RAMBLING: &str = "It depends on what is meant by a copy, and on whom one asks, and when, \
        and on the weather, and on the phase of the moon, and on much else that a discussion leaves \
        unsaid, so that in the end there is no saying which of these two words it should be.";
    let world = discussing(&[RAMBLING]);
    let finalized = finalized(&world, &solution(0.5)).await;
    assert!(finalized.submission.is_some());
    assert_eq!(finalized.contamination, None);
    let excerpt: String = RAMBLING.chars().take(200).collect();
    assert_eq!(world.warnings(), [format!("the verdict could not be read: {excerpt}")]);
}

/// REQ-FN-041
#[tokio::test]
async fn a_refused_comparison_is_inconclusive() {
    let world = discussing(&["Novel"]).on_call(|call| {
        (call.variant.as_deref() == CONTAMINATION)
            .then(|| Err(AgentError::NoAnswer { reason: "refused".to_owned(), cost_usd: None }))
    });
    let finalized = finalized(&world, &solution(0.5)).await;
    assert!(finalized.submission.is_some());
    assert_eq!(finalized.contamination, None);
}

/// REQ-FN-028
#[tokio::test]
async fn a_blank_discussion_is_refused_before_anyone_is_asked() {
    let world = World::new("");
    let run = world.open();
    let found = check_contamination(&run.ctx(), &solution(0.5), &[" \n".to_owned()]).await;
    assert!(matches!(found, Err(Error::Precondition(_))), "{found:?}");
    assert_eq!(world.calls(), []);
}

/// REQ-FN-028, REQ-FN-041
#[tokio::test]
async fn a_blank_discussion_leaves_the_question_open_and_the_submission_in_place() {
    let mut world = World::new("");
    world.references = vec![" \n".to_owned()];
    let finalized = finalized(&world, &solution(0.5)).await;
    assert!(finalized.submission.is_some());
    assert_eq!(finalized.contamination, None);
}

/// REQ-FN-025, REQ-FN-035
#[tokio::test]
async fn on_fallback_the_solution_handed_in_is_compared() {
    let world = on_test(discussing(&["Same"]), None, fenced(FORGETFUL))
        .on("debugger", |_| fenced(FORGETFUL));
    let given = solution(0.5);
    assert_eq!(
        finalized(&world, &given).await,
        Finalized {
            solution: given,
            submission: None,
            contamination: verdict(ContaminationVerdict::Same)
        }
    );
    assert_eq!(world.calls().last().unwrap().input["final_solution"], script(0.5));
}

// ---- the result of the run

/// REQ-FN-034, REQ-FN-036
#[tokio::test]
async fn the_result_carries_everything_the_phases_gave() {
    let mut world = World::new("M=2 T=1 K=1 L=1").on_call(|call| {
        (call.role == "init")
            .then(|| Ok(Reply { cost_usd: Some(0.25), ..Reply::text(fenced(&script(0.5))) }))
    });
    world.references = vec!["We averaged trees.".to_owned()];
    let Completed { result, submission } = world.run().await.unwrap();

    assert_eq!(result.phase1.initial_score, score(0.55));
    assert_eq!(result.phase2_results.len(), 1);
    assert_eq!(result.phase2_results[0].best_score, score(0.6));
    assert!(result.total_duration_seconds > 0.0);
    let expected = FinalResult {
        task: world.task.clone(),
        config: world.config.clone(),
        phase3: None,
        final_solution: SolutionScript {
            score: Some(score(0.6)),
            created_at: result.final_solution.created_at,
            ..submitted(&submitting())
        },
        submission_path: world.dir().root().join("final/submission.csv").into_string(),
        total_cost_usd: Some(0.5),
        contamination: verdict(ContaminationVerdict::Novel),
        phase_status: PhaseStatus {
            phase1: PhaseOutcome::Completed,
            phase2: PhaseOutcome::Completed,
            phase3: PhaseOutcome::Skipped,
            finalization: PhaseOutcome::Completed,
            cut_short: None,
            notes: Vec::new(),
        },
        ..result.clone()
    };
    assert_eq!(result, expected);
    assert!(world.dir().submission().is_absolute());
    assert!(world.dir().solution(&submission.unwrap()).exists());
}

/// REQ-FN-025, REQ-FN-036
#[tokio::test]
async fn a_run_without_a_submission_still_has_a_result() {
    let world = on_test(World::new("M=1 T=1 K=1 L=1"), None, fenced(FORGETFUL))
        .on("debugger", |_| fenced(FORGETFUL));
    let Completed { result, submission } = world.run().await.unwrap();
    assert_eq!((submission, result.submission_path.as_str()), (None, ""));
    assert_eq!(result.final_solution, result.phase2_results[0].best_solution);
    assert_eq!(result.final_solution.phase, SolutionPhase::Refined);
    assert_eq!(result.total_cost_usd, None);
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Failed);
    assert!(
        world.warnings().iter().any(|it| it.starts_with("no submission could be made")),
        "{:#?}",
        world.warnings()
    );
}

/// REQ-FN-025, REQ-FN-036
#[tokio::test]
async fn a_machine_that_cannot_run_the_submission_script_costs_the_submission_not_the_run() {
    let world = World::new("M=1 T=1 K=1 L=1").on_job(|job| {
        job.script
            .contains("submission.csv")
            .then(|| Err(ExecError::Io(std::io::Error::other("no space left on device"))))
    });
    let Completed { result, submission } = world.run().await.unwrap();
    assert_eq!((submission, result.submission_path.as_str()), (None, ""));
    assert_eq!(result.final_solution, result.phase2_results[0].best_solution);
    assert_eq!(result.phase_status.finalization, PhaseOutcome::Failed);
}

/// REQ-FN-035, REQ-FN-042
#[tokio::test]
async fn the_events_tell_finalization_from_its_start_to_its_end() {
    let world = World::new("M=1 T=1 K=1 L=1");
    world.run().await.unwrap();
    let told: Vec<_> = world
        .events()
        .into_iter()
        .filter_map(|(key, event)| (key == "finalization").then_some(event))
        .collect();
    assert_eq!(
        told,
        [
            Event::PhaseStarted { phase: Phase::Finalization },
            Event::Selected { from: SolutionPhase::Refined, score: score(0.6) },
            Event::SubsamplingChecked { before: None, after: None },
            Event::LeakageChecked { found: false, changed: false },
            Event::Evaluated { purpose: Purpose::Submission, score: None, repairs: 0, error: None },
            Event::Submitted { rows: Some(1) },
            Event::ContaminationChecked { verdicts: Vec::new(), overall: None },
            Event::Published { score: score(0.6), from: SolutionPhase::Refined },
            Event::PhaseEnded { phase: Phase::Finalization, best: Some(score(0.6)) },
        ]
    );
}

/// REQ-FN-036, REQ-FN-045
#[tokio::test]
async fn publishing_puts_the_submission_and_its_script_where_people_look() {
    let world = World::new("M=1 T=1 K=1 L=1");
    let Completed { result, submission } = world.run().await.unwrap();
    let (dir, name) = (world.dir(), submission.unwrap());
    let kept = fs_err::read_to_string(dir.solution(&name)).unwrap();
    assert_eq!(kept, "id,y\n1,2\n");
    assert_eq!(fs_err::read_to_string(dir.submission()).unwrap(), kept);

    // What was published before gives way.
    fs_err::write(dir.solution("older.csv"), "id,y\n1,9\n").unwrap();
    dir.publish("older.csv", "an older script, longer than the new one").unwrap();
    dir.publish(&name, &result.final_solution.content).unwrap();
    assert_eq!(fs_err::read_to_string(&result.submission_path).unwrap(), kept);
    assert_eq!(
        published(&world),
        [("solution.py", submitting()), ("submission.csv", kept)]
            .map(|(name, content)| (name.to_owned(), content))
    );
    assert!(dir.solution(&name).exists());
}

/// REQ-FN-045
#[test]
fn a_submission_that_cannot_be_published_leaves_the_older_pair_together() {
    let world = World::new("");
    let dir = world.dir();
    fs_err::create_dir_all(dir.root().join("solutions")).unwrap();
    fs_err::write(dir.solution("older.csv"), "id,y\n1,9\n").unwrap();
    dir.publish("older.csv", "older").unwrap();
    assert!(dir.publish("lost.csv", "newer").is_err());
    assert_eq!(
        published(&world),
        [("solution.py", "older"), ("submission.csv", "id,y\n1,9\n")]
            .map(|(name, content)| (name.to_owned(), content.to_owned()))
    );
}

/// The files in `final/` with their content, temporary ones included.
fn published(world: &World) -> Vec<(String, String)> {
    let folder = world.dir().root().join("final");
    let mut files: Vec<_> = fs_err::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let content = fs_err::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), content)
        })
        .collect();
    files.sort();
    files
}

/// REQ-FN-037
#[tokio::test]
async fn finalization_itself_takes_no_time_worth_mentioning() {
    let world = discussing(&["Novel", "Novel"]);
    let began = Instant::now();
    finalized(&world, &solution(0.5)).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
