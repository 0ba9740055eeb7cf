//! A whole run with the default settings: real binary, real Python, scripted agents.

use std::collections::BTreeMap;

use mle_star::FinalResult;
use mle_star_search::event::{Event, Output, Record};

use crate::shop::{Shop, records, steps};

pub(crate) fn calls_by_role(records: &[Record]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (key, output) in records.iter().filter_map(Record::finished) {
        if matches!(output, Output::Asked { .. }) {
            let role = key.as_str().rsplit('/').next().unwrap();
            *counts.entry(role.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn position(steps: &[String], wanted: &str) -> usize {
    steps.iter().position(|step| step == wanted).unwrap_or_else(|| panic!("no step {wanted}"))
}

/// M=4, T=4, K=4, L=2, R=5: as many calls and scripts as Algorithms 1 to 3 imply, in their order.
///
/// REQ-OR-017, REQ-OR-044, REQ-OR-036, REQ-OR-003
#[test]
fn a_default_run_makes_exactly_the_calls_and_runs_that_the_algorithms_imply() {
    let shop = Shop::new();
    shop.run("").assert().success();
    let run = shop.only_run();
    let records = records(&run);

    let expected: BTreeMap<String, usize> = [
        ("retriever", 1),
        ("init", 4),
        ("merger", 3),
        ("data", 1),
        ("ablation", 2 * 4),
        ("summarize", 2 * 4),
        ("extractor", 2 * 4),
        ("coder", 2 * 4 * 4),
        ("planner", 2 * 4 * 3),
        ("ens_planner", 5),
        ("ensembler", 5),
        // Candidates, merges, the checks after merging, inner steps, ensembles, two submissions:
        // the early one of the initial solution, and the final one.
        ("leakage", 4 + 3 + 1 + 2 * 4 * 4 + 5 + 2),
        ("subsampling_extract", 2),
        ("test", 2),
    ]
    .into_iter()
    .map(|(role, count)| (role.to_owned(), count))
    .collect();
    assert_eq!(calls_by_role(&records), expected);
    let outputs = records.iter().filter_map(Record::finished).map(|(_, output)| output);
    let scripts = outputs.filter(|output| matches!(output, Output::Ran { .. })).count();
    assert_eq!(scripts, 4 + 3 + 2 * 4 * (1 + 4) + 5 + 2);

    let steps = steps(&run);
    let order = [
        "phase1/retriever",
        "phase1/candidate-3/init",
        "phase1/candidate-3/leakage",
        "phase1/candidate-3/attempt-0/run",
        "phase1/merge-1/merger",
        "phase1/merge-3/attempt-0/run",
        "phase1/checks/data",
        "phase1/checks/leakage",
        "phase1/early_submission/test",
        "phase1/early_submission/attempt-0/run",
        "phase2/path-1/outer-0/ablation",
        "phase2/path-1/outer-0/study/attempt-0/run",
        "phase2/path-1/outer-0/summarize",
        "phase2/path-1/outer-0/extract-0/extractor",
        "phase2/path-1/outer-0/inner-0/coder",
        "phase2/path-1/outer-0/inner-0/leakage",
        "phase2/path-1/outer-0/inner-0/attempt-0/run",
        "phase2/path-1/outer-0/inner-1/planner",
        "phase2/path-1/outer-3/inner-3/attempt-0/run",
        "phase3/round-0/ens_planner",
        "phase3/round-0/ensembler",
        "phase3/round-4/attempt-0/run",
        "finalization/subsampling_extract",
        "finalization/test",
        "finalization/leakage",
        "finalization/attempt-0/run",
        "totals",
    ];
    let positions: Vec<usize> = order.iter().map(|step| position(&steps, step)).collect();
    assert!(positions.is_sorted(), "{positions:?}");

    let phases: Vec<String> = records
        .iter()
        .filter_map(|record| match record {
            Record::Happened {
                event: event @ (Event::PhaseStarted { .. } | Event::PhaseEnded { .. }),
                ..
            } => Some(serde_json::to_value(event).unwrap()),
            _ => None,
        })
        .map(|event| {
            format!("{} {}", event["event"].as_str().unwrap(), event["phase"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        phases,
        [
            "phase_started phase1",
            "phase_ended phase1",
            "phase_started phase2",
            "phase_ended phase2",
            "phase_started phase3",
            "phase_ended phase3",
            "phase_started finalization",
            "phase_ended finalization",
        ]
    );
}

/// REQ-OR-036, REQ-DM-025
#[test]
fn the_result_has_the_names_of_the_specification_and_the_files_are_in_place() {
    let shop = Shop::new();
    shop.run("T=1 K=2 R=2").assert().success();
    let run = shop.only_run();

    let text = fs_err::read_to_string(run.join("result.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "task",
            "config",
            "phase1",
            "phase2_results",
            "phase3",
            "final_solution",
            "submission_path",
            "total_duration_seconds",
            "total_cost_usd",
            "contamination",
            "phase_status",
        ]
    );
    let result: FinalResult = serde_json::from_str(&text).unwrap();
    assert_eq!(result.submission_path, run.join("final/submission.csv").as_str());
    assert_eq!(fs_err::read_to_string(&result.submission_path).unwrap(), "id,y\n3,4\n");
    assert_eq!(
        fs_err::read_to_string(run.join("final/solution.py")).unwrap(),
        result.final_solution.content
    );
    assert_eq!(result.final_solution.score.unwrap().get(), 0.9);
    // One retriever call and four candidates said what they cost.
    assert!((result.total_cost_usd.unwrap() - 0.05).abs() < 1e-9);
    assert_eq!(result.phase2_results.len(), 2);
    for lane in ["candidate-0", "merge", "path-0", "path-1", "ensemble", "final"] {
        assert!(run.join("work").join(lane).join("input/train.csv").is_file(), "{lane}");
        assert!(run.join("work").join(lane).join("final").is_dir(), "{lane}");
    }
    assert!(!shop.path().join("shop/final").exists(), "nothing is written beside the task");
}

#[test]
fn an_output_folder_gets_a_copy_of_the_submission() {
    let shop = Shop::new();
    let task = fs_err::read_to_string(shop.path().join("shop/task.yaml")).unwrap();
    shop.write("shop/task.yaml", &format!("{task}output_dir: out\n"));
    shop.run("T=1 K=1 L=1").assert().success();
    let copy = fs_err::read_to_string(shop.path().join("shop/out/submission.csv")).unwrap();
    assert_eq!(copy, "id,y\n3,4\n");
}

/// The replies of one run answer another: same result, nothing paid.
#[test]
fn a_run_can_be_replayed_through_another_runs_replies() {
    let shop = Shop::new();
    shop.run("T=1 K=1 R=1").assert().success();
    let first = shop.only_run();
    let mut command = shop.command();
    command.args(["run", "shop", "--out", "again", "-s", "T=1", "-s", "K=1", "-s", "R=1"]);
    command.args(["--agents", &format!("replay:{first}")]).assert().success();

    let again = shop.path().join("again").read_dir_utf8().unwrap().next().unwrap().unwrap();
    assert_eq!(steps(again.path()).len(), steps(&first).len());
    let cost = |run: &camino::Utf8Path| {
        let text = fs_err::read_to_string(run.join("result.json")).unwrap();
        serde_json::from_str::<FinalResult>(&text).unwrap().total_cost_usd
    };
    assert_eq!((cost(again.path()), cost(&first).is_some()), (None, true));
}

/// A real competition: the data is profiled and reaches the prompts, the layout is recognised.
#[test]
fn a_real_task_folder_is_read() {
    let folder =
        camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/titanic");
    if !folder.is_dir() {
        crate::shop::skipped(&format!("{folder} is not there"));
        return;
    }
    let shop = Shop::new();
    let mut command = shop.command();
    command.args(["run", folder.as_str(), "--agents", "scripted:replies.yaml"]);
    command.args(["-s", "M=1", "-s", "T=1", "-s", "K=1", "-s", "L=1"]).assert().success();
    let header = match &records(&shop.only_run())[0] {
        Record::Opened { header, .. } => header.clone(),
        record => panic!("{record:?}"),
    };
    let described = header.data.describe();
    assert!(described.contains("train.csv") && described.contains("PassengerId"), "{described}");
}
