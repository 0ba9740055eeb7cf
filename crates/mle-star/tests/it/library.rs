//! The library: run_pipeline and Pipeline.

use std::collections::BTreeSet;
use std::future::Future;

use camino::Utf8PathBuf;
use mle_star::models::{
    ConfigLayer, DataModality, MetricDirection, PhaseOutcome, PhaseStatus, SolutionPhase, TaskType,
};
use mle_star::{
    Agents, Diagnostics, FinalResult, Pipeline, PipelineConfig, PipelineError, RunError,
    TaskDescription, run_pipeline, run_pipeline_sync,
};
use mle_star_search::event::{Header, Record};
use serde_json::Value;

use crate::shop::{Shop, records, steps, with_reply};

/// The smallest run with two paths.
const SMALL: &str = "M=2 T=1 K=1 L=2 R=1";

fn task(shop: &Shop) -> TaskDescription {
    let task = TaskDescription::new(
        "shop",
        TaskType::Regression,
        DataModality::Tabular,
        "r2",
        MetricDirection::Maximize,
        "Predict y from x.",
    );
    TaskDescription { data_dir: shop.path().join("shop/input"), ..task.unwrap() }
}

fn settings(text: &str) -> ConfigLayer {
    ConfigLayer::from_pairs(text.split_whitespace()).unwrap()
}

/// A small run with the replies in `replies`.
fn pipeline(shop: &Shop, replies: &str) -> Pipeline {
    Pipeline::new(task(shop))
        .python(Some("python3".into()))
        .supervisor(env!("CARGO_BIN_EXE_mle-star"))
        .config(settings(SMALL).resolve().unwrap())
        .agents(Agents::Scripted(shop.path().join(replies)))
        .runs(shop.path().join("runs"))
}

fn runs(shop: &Shop) -> Vec<Utf8PathBuf> {
    let runs = shop.path().join("runs").read_dir_utf8().unwrap();
    let mut runs: Vec<_> = runs.map(|run| run.unwrap().into_path()).collect();
    runs.sort();
    runs
}

fn header(shop: &Shop) -> Header {
    let Some(Record::Opened { header, .. }) = records(&shop.only_run()).into_iter().next() else {
        panic!("the journal has no header")
    };
    header
}

/// A result without what differs between any two runs: times and folders.
fn timeless(result: &FinalResult) -> Value {
    fn strip(value: &mut Value) {
        if let Value::Object(map) = value {
            for varying in ["created_at", "total_duration_seconds", "submission_path"] {
                map.remove(varying);
            }
            map.values_mut().for_each(strip);
        } else if let Value::Array(items) = value {
            items.iter_mut().for_each(strip);
        }
    }
    let mut value = serde_json::to_value(result).unwrap();
    strip(&mut value);
    value
}

// Before anything is spent.

/// REQ-OR-001, REQ-OR-053
#[test]
fn run_pipeline_is_async_takes_a_task_and_maybe_settings_and_gives_a_result() {
    fn gives<F: Future<Output = Result<FinalResult, RunError>>>(
        _: fn(TaskDescription, Option<PipelineConfig>) -> F,
    ) {
    }
    gives(run_pipeline);
    let _: fn(TaskDescription, Option<PipelineConfig>) -> Result<FinalResult, RunError> =
        run_pipeline_sync;
}

/// REQ-OR-001, REQ-OR-002
#[tokio::test]
async fn run_pipeline_refuses_a_task_without_data_before_it_asks_for_agents() {
    let shop = Shop::new();
    shop.write("file", "not a folder");
    fs_err::create_dir_all(shop.path().join("empty/deeper")).unwrap();
    for (folder, reason) in [
        ("missing", "data folder $ does not exist"),
        ("empty", "data folder $ holds no files"),
        ("file", "$ is not a folder"),
    ] {
        let data_dir = shop.path().join(folder);
        let reason = reason.replace('$', data_dir.as_str());
        let task = TaskDescription { data_dir, ..task(&shop) };
        let error = run_pipeline(task, None).await.unwrap_err();
        let RunError::Data(source) = error else { panic!("{error:?}") };
        assert_eq!(source.to_string(), reason);
    }
}

/// REQ-OR-002
#[tokio::test]
async fn run_pipeline_refuses_what_makes_no_sense() {
    let shop = Shop::new();
    let unnamed = TaskDescription { competition_id: " ".to_owned(), ..task(&shop) };
    let error = run_pipeline(unnamed, None).await.unwrap_err();
    assert_eq!(error.to_string(), "`competition_id` of the task is empty");

    let nothing_to_do = PipelineConfig { inner_loop_steps: 0, ..PipelineConfig::default() };
    let error = run_pipeline(task(&shop), Some(nothing_to_do)).await.unwrap_err();
    assert_eq!(error.to_string(), "invalid value for `inner_loop_steps`: must be at least 1");

    let free = PipelineConfig { max_budget_usd: Some(0.0), ..PipelineConfig::default() };
    let error = run_pipeline(task(&shop), Some(free)).await.unwrap_err();
    assert!(matches!(error, RunError::Config(_)), "{error:?}");
}

/// REQ-OR-002
#[tokio::test]
async fn the_input_is_checked_before_the_agents_are_looked_for_and_no_run_is_left() {
    let shop = Shop::new();
    let no_replies = "no-such-file.yaml";
    let missing = TaskDescription { data_dir: shop.path().join("missing"), ..task(&shop) };
    let refused = Pipeline::new(missing)
        .python(Some("python3".into()))
        .supervisor(env!("CARGO_BIN_EXE_mle-star"))
        .agents(Agents::Scripted(shop.path().join(no_replies)))
        .runs(shop.path().join("runs"));
    let error = refused.run().await.unwrap_err();
    assert!(matches!(error, RunError::Data(_)), "{error:?}");
    let error = pipeline(&shop, no_replies).run().await.unwrap_err();
    assert!(matches!(error, RunError::Agents(_)), "{error:?}");
    assert!(!shop.path().join("runs").exists());
}

/// REQ-OR-002
#[tokio::test]
async fn data_may_lie_deeper_in_its_folder() {
    let shop = Shop::new();
    shop.write("nested/a/b/train.csv", "id,x,y\n1,2,3\n");
    let nested = TaskDescription { data_dir: shop.path().join("nested"), ..task(&shop) };
    let run = Pipeline::new(nested)
        .python(Some("python3".into()))
        .supervisor(env!("CARGO_BIN_EXE_mle-star"))
        .agents(Agents::Scripted(shop.path().join("replies.yaml")))
        .runs(shop.path().join("runs"))
        .open()
        .await
        .unwrap();
    assert_eq!(run.header().data.total_files, 1);
}

/// REQ-OR-046
#[test]
fn a_missing_key_is_named_before_anything_is_begun() {
    let shop = Shop::new();
    for key in [None, Some("")] {
        let mut command = shop.command();
        // The key is looked for before the interpreter, which is not there either.
        command.args(["run", "shop", "--agents", "claude", "--python", "/no/such/python"]);
        command.envs(key.map(|key| ("ANTHROPIC_API_KEY", key)));
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let first = said.lines().next();
        assert_eq!(first, Some("error: the environment variable `ANTHROPIC_API_KEY` is not set"));
    }
    assert!(!shop.path().join("runs").exists());
}

/// REQ-OR-002, REQ-OR-046
#[test]
fn the_input_is_checked_before_the_key() {
    let shop = Shop::new();
    fs_err::remove_dir_all(shop.path().join("shop/input")).unwrap();
    let output = shop.command().args(["run", "shop", "--agents", "claude"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("does not exist") && !said.contains("ANTHROPIC_API_KEY"), "{said}");

    let shop = Shop::new();
    let output = shop
        .command()
        .args(["run", "shop", "--agents", "claude"])
        .env("MLE_STAR_TIME_LIMIT", "soon")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("MLE_STAR_TIME_LIMIT") && !said.contains("API_KEY"), "{said}");
}

// To the end.

/// REQ-OR-001, REQ-OR-036
#[tokio::test]
async fn a_pipeline_gives_the_whole_result_and_puts_it_where_people_look() {
    let shop = Shop::new();
    let result = pipeline(&shop, "replies.yaml").run().await.unwrap();
    let run = shop.only_run();
    assert_eq!(result.task, task(&shop));
    assert_eq!(result.config, settings(SMALL).resolve().unwrap());
    assert_eq!(result.phase1.retrieved_models.len(), 2);
    assert_eq!(result.phase2_results.len(), 2);
    assert_eq!(result.phase3.as_ref().unwrap().input_solutions.len(), 2);
    assert_eq!(result.final_solution.phase, SolutionPhase::Final);
    assert_eq!(result.submission_path, run.join("final/submission.csv"));
    assert!(result.total_duration_seconds > 0.0);
    // One retriever and two candidates, a cent each.
    let cost = result.total_cost_usd.unwrap();
    assert!((cost - 0.03).abs() < 1e-9, "{cost}");
    assert_eq!(
        result.phase_status,
        PhaseStatus {
            phase1: PhaseOutcome::Completed,
            phase2: PhaseOutcome::Completed,
            phase3: PhaseOutcome::Completed,
            finalization: PhaseOutcome::Completed,
            cut_short: None,
            notes: Vec::new(),
        }
    );
    let read = |name: &str| fs_err::read_to_string(run.join(name)).unwrap();
    assert_eq!(serde_json::from_str::<FinalResult>(&read("result.json")).unwrap(), result);
    assert_eq!(read("final/submission.csv"), "id,y\n3,4\n");
    assert_eq!(read("final/solution.py"), result.final_solution.content);
}

/// REQ-OR-003
#[tokio::test]
async fn every_workspace_has_its_input_and_its_final_folder() {
    let shop = Shop::new();
    pipeline(&shop, "replies.yaml").run().await.unwrap();
    let work = shop.only_run().join("work");
    let mut lanes = BTreeSet::new();
    for lane in work.read_dir_utf8().unwrap() {
        let lane = lane.unwrap();
        assert_eq!(
            lane.path().join("input").canonicalize_utf8().unwrap(),
            shop.path().join("shop/input").canonicalize_utf8().unwrap()
        );
        assert!(lane.path().join("final").is_dir(), "{}", lane.path());
        lanes.insert(lane.file_name().to_owned());
    }
    let expected = ["candidate-0", "candidate-1", "ensemble", "final", "merge", "path-0", "path-1"];
    assert_eq!(lanes, expected.map(str::to_owned).into());
    assert!(shop.only_run().join("final").is_dir());
}

/// REQ-OR-004
#[tokio::test]
async fn the_gpus_that_were_found_are_recorded() {
    let shop = Shop::new();
    pipeline(&shop, "replies.yaml").run().await.unwrap();
    let found = mle_star_exec::machine::detect_gpu_info().await;
    assert_eq!(header(&shop).machine.gpus, found);
    assert_eq!(found.gpu_names.len(), found.gpu_count);
    assert_eq!(found.cuda_available, found.gpu_count > 0);
}

/// REQ-OR-001, REQ-OR-044
#[test]
fn a_run_without_any_settings_uses_the_defaults_and_completes() {
    let shop = Shop::new();
    shop.run("").assert().success();
    let text = fs_err::read_to_string(shop.only_run().join("result.json")).unwrap();
    let result: FinalResult = serde_json::from_str(&text).unwrap();
    assert_eq!(result.config, PipelineConfig::default());
    assert_eq!(result.phase1.candidate_scores.len(), 4);
    let outer: Vec<_> = result.phase2_results.iter().map(|path| path.step_history.len()).collect();
    assert_eq!(outer, [4, 4]);
    assert_eq!(result.phase3.unwrap().ensemble_scores.len(), 5);
}

/// REQ-OR-028, REQ-OR-045
#[tokio::test]
async fn settings_reach_the_run_and_its_record() {
    let shop = Shop::new();
    let config = PipelineConfig {
        outer_loop_steps: 1,
        max_budget_usd: Some(12.5),
        ..settings("M=1 K=1 L=1").resolve().unwrap()
    };
    let result = pipeline(&shop, "replies.yaml").config(config.clone()).run().await.unwrap();
    assert_eq!(result.config, config);
    assert_eq!(header(&shop).config, config);
    let studies: Vec<_> =
        steps(&shop.only_run()).into_iter().filter(|step| step.ends_with("/ablation")).collect();
    assert_eq!(studies, ["phase2/path-0/outer-0/ablation"]);
}

/// REQ-OR-053
#[test]
fn run_pipeline_sync_needs_no_runtime() {
    let shop = Shop::new();
    let missing = TaskDescription { data_dir: shop.path().join("missing"), ..task(&shop) };
    let thread = std::thread::spawn(move || run_pipeline_sync(missing, None));
    let error = thread.join().unwrap().unwrap_err();
    assert!(matches!(error, RunError::Data(_)), "{error:?}");
}

// Failure, and what comes after it.

/// Replies of which one role's are others.
/// REQ-OR-042
#[tokio::test]
async fn a_run_without_a_single_working_candidate_tells_how_far_it_got() {
    let shop = Shop::new();
    let failing = with_reply("init", "```python\nraise ValueError('no such column')\n```");
    shop.write("failing.yaml", &with_debugger(&failing));
    let error = pipeline(&shop, "failing.yaml").run().await.unwrap_err();
    let RunError::Pipeline { run, source } = &error else { panic!("{error:?}") };
    assert_eq!(*run, shop.only_run());
    let PipelineError::Phase1 { source, diagnostics } = source else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "Phase 1 failed: all 2 candidates produced execution errors");
    let steps = steps(run);
    assert_eq!(
        **diagnostics,
        Diagnostics {
            elapsed_seconds: diagnostics.elapsed_seconds,
            cost_usd: Some(0.01),
            last_finished_step: steps.last().cloned(),
            finished_steps: steps.len(),
            scripts: diagnostics.scripts.clone(),
        }
    );
    assert!(diagnostics.elapsed_seconds > 0.0);
    assert!(!run.join("result.json").exists());
}

/// The same replies with a debugger who is at a loss.
fn with_debugger(replies: &str) -> String {
    format!("{replies}  - role: debugger\n    reply: I have no idea.\n")
}

/// REQ-OR-051
#[tokio::test]
async fn a_run_is_not_touched_by_those_before_it() {
    let shop = Shop::new();
    let fresh = pipeline(&shop, "replies.yaml").run().await.unwrap();
    let failing = with_reply("init", "```python\nraise ValueError('no such column')\n```");
    shop.write("failing.yaml", &with_debugger(&failing));
    pipeline(&shop, "failing.yaml").run().await.unwrap_err();
    let again = pipeline(&shop, "replies.yaml").run().await.unwrap();

    assert_eq!(timeless(&again), timeless(&fresh));
    assert_ne!(again.submission_path, fresh.submission_path);
    let runs = runs(&shop);
    assert_eq!(runs.len(), 3);
    let finished: Vec<_> =
        runs.iter().filter(|run| run.join("result.json").exists()).map(|run| steps(run)).collect();
    let unordered: Vec<BTreeSet<_>> = finished.into_iter().map(BTreeSet::from_iter).collect();
    assert_eq!(unordered.len(), 2);
    assert_eq!(unordered[0], unordered[1]);
}

/// REQ-OR-051
#[tokio::test]
async fn what_a_script_leaves_behind_does_not_reach_the_next_one() {
    let shop = Shop::new();
    // All scripts of a path share a folder. The study leaves something in every part of it.
    let study = "```python\n\
        import os\n\
        os.makedirs('cache/deep')\n\
        for name in ['leftover.txt', 'cache/deep/leftover.txt', 'final/submission.csv']:\n    \
            open(name, 'w').write('old')\n\
        print('left')\n```";
    let block = "```python\n\
        import os\n\
        gain = 0.3 if os.path.exists('leftover.txt') or os.path.exists('cache') \
        or os.listdir('final') else 0.1\n```";
    shop.write("leaving.yaml", &with_reply("ablation", study));
    let leaving = fs_err::read_to_string(shop.path().join("leaving.yaml")).unwrap();
    let rule = serde_json::json!({ "role": "coder", "reply": block });
    shop.write(
        "leaving.yaml",
        &leaving.replacen("replies:\n", &format!("replies:\n  - {rule}\n"), 1),
    );
    let result = pipeline(&shop, "leaving.yaml").run().await.unwrap();
    let scores: Vec<_> =
        result.phase2_results.iter().map(|path| path.best_score.to_string()).collect();
    assert_eq!(scores, ["0.7", "0.7"], "{:#?}", result.phase2_results);
}

/// REQ-OR-022, REQ-OR-040
#[tokio::test]
async fn a_path_whose_folder_cannot_be_used_leaves_the_other_alone() {
    let shop = Shop::new();
    let run = pipeline(&shop, "replies.yaml").open().await.unwrap();
    // A file stands where the folder of path 0 should be.
    fs_err::create_dir_all(run.dir().root().join("work")).unwrap();
    fs_err::write(run.dir().workspace("path-0"), "in the way").unwrap();
    let result = mle_star::pipeline::complete(&run).await.unwrap();
    let failed: Vec<_> =
        result.phase2_results.iter().map(|path| path.step_history[0].failed).collect();
    assert_eq!(failed, [true, false]);
    assert_eq!(result.phase2_results[0].best_solution, result.phase1.initial_solution);
    let [note] = result.phase_status.notes.as_slice() else { panic!("{:?}", result.phase_status) };
    assert!(note.starts_with("path 0 failed: ") && note.ends_with("it is not a folder"), "{note}");
    assert!(Utf8PathBuf::from(result.submission_path).is_file());
}

// Secrets.

#[test]
fn a_secret_of_the_environment_is_written_nowhere() {
    const SECRET: &str = "tok-0123456789";
    let shop = Shop::new();
    let told = format!("```python\nprint('{SECRET}')\n```\nThe token is {SECRET}.");
    shop.write("replies.yaml", &with_reply("ablation", &told));
    let output = shop
        .run(SMALL)
        .args(["--json"])
        .env("SHOP_TOKEN", SECRET)
        .assert()
        .success()
        .get_output()
        .clone();
    for stream in [output.stdout, output.stderr] {
        assert!(!String::from_utf8(stream).unwrap().contains(SECRET));
    }
    let mut folders = vec![shop.only_run()];
    let mut journal = false;
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.is_symlink() {
                continue; // the data
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            journal |= path.file_name() == Some("journal.jsonl");
            let text = fs_err::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(SECRET), "{path}");
        }
    }
    assert!(journal);
}
