//! Whole runs with the playbook: no key, no replies from a file, real packages.

use camino::{Utf8Path, Utf8PathBuf};
use mle_star::models::{ConfigLayer, DataModality, MetricDirection, TaskType};
use mle_star::pipeline::Resume;
use mle_star::task_file::{TaskOptions, read_task};
use mle_star::{Agents, FinalResult, Pipeline, TaskDescription};
use mle_star_exec::venv;
use mle_star_search::event::{Event, Header, Record};
use mle_star_search::models::parse_score;
use tokio::sync::Mutex;

use crate::shop::{Shop, records, skipped};

/// Two models, one refinement on each of two paths, one ensemble.
const WHOLE: &str = "M=2 T=1 K=1 L=2 R=1";
/// One model and one refinement.
const SMALLEST: &str = "M=1 T=1 K=1 L=1 R=1";

/// Each of these uses all cores; one after the other they are no slower.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A Python with the standard packages.
pub(crate) async fn python() -> Option<Utf8PathBuf> {
    match venv::provide_standard(Utf8Path::new(env!("CARGO_TARGET_TMPDIR")), &|_| ()).await {
        Ok(python) => Some(python),
        Err(error) => {
            skipped(&format!("there are no libraries: {error}"));
            None
        }
    }
}

/// Runs `task` with the playbook, in the folder of `shop`.
async fn run(
    shop: &Shop,
    task: TaskDescription,
    settings: &str,
    python: Utf8PathBuf,
) -> FinalResult {
    let _others = ONE_AT_A_TIME.lock().await;
    let settings = ConfigLayer::from_pairs(settings.split_whitespace()).unwrap();
    Pipeline::new(task)
        .python(Some(python))
        .supervisor(env!("CARGO_BIN_EXE_mle-star"))
        .settings(settings)
        .agents(Agents::Playbook)
        .runs(shop.path().join("runs"))
        .run()
        .await
        .unwrap()
}

/// A table of houses: size, age, town, door code, and what follows from them.
pub(crate) fn houses(rows: std::ops::Range<usize>, target: Option<fn(f64) -> String>) -> String {
    let mut text = String::from("id,size,age,town,door");
    text.push_str(if target.is_some() { ",answer\n" } else { "\n" });
    for row in rows {
        // Numbers that look random enough, and are the same every time.
        let noise = |salt: usize| ((row * 7919 + salt * 104_729) % 1009) as f64 / 1009.0;
        let (size, age) = (40.0 + 160.0 * noise(1), 80.0 * noise(2));
        let town = match noise(3) {
            share if share < 0.3 => "north",
            share if share < 0.6 => "south",
            _ => "west",
        };
        let side = if noise(4) < 0.5 { "A" } else { "B" };
        let gap = if noise(5) < 0.1 { String::new() } else { format!("{age:.1}") };
        let worth = size * if town == "west" { 2.0 } else { 1.0 } - age
            + if side == "A" { 40.0 } else { 0.0 }
            + 20.0 * noise(6);
        let mut line = vec![row.to_string(), format!("{size:.2}"), gap, town.to_owned()];
        line.push(format!("{side}/{}/{}", row % 60, row % 4));
        line.extend(target.map(|target| target(worth)));
        text.push_str(&line.join(","));
        text.push('\n');
    }
    text
}

fn task(shop: &Shop, metric: &str, direction: MetricDirection) -> TaskDescription {
    let task = TaskDescription::new(
        "houses",
        TaskType::Tabular,
        DataModality::Tabular,
        metric,
        direction,
        "Predict the answer for each house.",
    );
    TaskDescription { data_dir: shop.path().join("houses"), ..task.unwrap() }
}

/// The identifiers and answers of the submission.
fn submission(result: &FinalResult) -> Vec<(String, String)> {
    let text = fs_err::read_to_string(&result.submission_path).unwrap();
    let lines = text.lines().map(|line| line.split_once(',').unwrap());
    lines.map(|(id, answer)| (id.to_owned(), answer.to_owned())).collect()
}

pub(crate) fn warnings(run: &Utf8Path) -> Vec<String> {
    let found = records(run).into_iter().filter_map(|record| match record {
        Record::Happened { event: Event::Warned { message }, .. } => Some(message),
        _ => None,
    });
    found.collect()
}

#[tokio::test]
async fn a_yes_or_no_question_is_answered_from_data_to_submission() {
    let Some(python) = python().await else { return };
    let shop = Shop::new();
    let rich = |worth: f64| u8::from(worth > 130.0).to_string();
    shop.write("houses/train.csv", &houses(0..300, Some(rich)));
    shop.write("houses/test.csv", &houses(300..400, None));
    let task = task(&shop, "accuracy", MetricDirection::Maximize);
    let result = run(&shop, task, WHOLE, python).await;

    assert_eq!(warnings(&shop.only_run()), [""; 0]);
    assert!(f64::from(result.final_solution.score.unwrap()) > 0.85);
    assert!(result.phase3.as_ref().unwrap().ensemble_scores.iter().all(Option::is_some));
    let rows = submission(&result);
    assert_eq!(rows[0], ("id".to_owned(), "answer".to_owned()));
    assert_eq!(rows.len(), 101);
    assert!(rows.iter().skip(1).zip(300..).all(|((id, _), row)| *id == row.to_string()));
    assert!(rows.iter().skip(1).all(|(_, answer)| answer == "0" || answer == "1"));

    // The agents are named wherever the run is shown, and it can be taken up again.
    let Some(Record::Opened { header: Header { agents, .. }, .. }) =
        records(&shop.only_run()).into_iter().next()
    else {
        panic!("the journal has no header")
    };
    assert_eq!(agents, "playbook (no LLM)");
    let mut again = Resume::new(shop.only_run());
    again.supervisor = Some(env!("CARGO_BIN_EXE_mle-star").into());
    again.open().await.unwrap();
}

#[tokio::test]
async fn a_number_is_predicted_from_data_in_an_odd_form() {
    let Some(python) = python().await else { return };
    let shop = Shop::new();
    let price = |worth: f64| format!("{worth:.3}");
    let train = houses(0..300, Some(price)).replace(',', ";");
    let test = houses(300..400, None);
    shop.write("houses/train.csv", &format!("\u{feff}{train}"));
    shop.write("houses/test.csv", &test);
    let sample = (300..400).map(|row| format!("{row},0\n")).collect::<String>();
    shop.write("houses/sample_submission.csv", &format!("id,answer\n{sample}"));
    let task = task(&shop, "rmse", MetricDirection::Minimize);
    let result = run(&shop, task, SMALLEST, python).await;

    assert_eq!(warnings(&shop.only_run()), [""; 0]);
    // The answers have a standard deviation of about 90, and noise of about 6.
    assert!(f64::from(result.final_solution.score.unwrap()) < 30.0);
    assert_eq!(submission(&result).len(), 101);
}

#[tokio::test]
async fn every_way_to_combine_solutions_works_for_classes_and_for_numbers() {
    let Some(python) = python().await else { return };
    let yes_or_no = |worth: f64| u8::from(worth > 130.0).to_string();
    let price = |worth: f64| format!("{:.3}", worth + 100.0);
    let targets: [fn(f64) -> String; 2] = [yes_or_no, price];
    let metrics = [("roc_auc", MetricDirection::Maximize), ("rmsle", MetricDirection::Minimize)];
    for (target, (metric, direction)) in targets.into_iter().zip(metrics) {
        let shop = Shop::new();
        shop.write("houses/train.csv", &houses(0..60, Some(target)));
        shop.write("houses/test.csv", &houses(60..80, None));
        let task = task(&shop, metric, direction);
        // More rounds than there are ways: those that are too many have no plan.
        let result =
            run(&shop, task, "M=1 T=1 K=1 L=2 R=10 early_submission=false", python.clone()).await;

        let warnings = warnings(&shop.only_run());
        assert!(
            warnings.iter().all(|it| it.contains("A_ens_planner gave no plan")),
            "{warnings:?}"
        );
        let ensembles = result.phase3.unwrap();
        let scored = ensembles.ensemble_scores.iter().flatten().count();
        assert_eq!(scored, 10 - warnings.len(), "{metric}");
        let tried = |way: &str| {
            let tag = format!("[ensembles/{way}");
            ensembles.ensemble_plans.iter().any(|plan| plan.contains(&tag))
        };
        assert!(
            ["solutions", "hill_climbing", "stacking", "mean"].into_iter().all(tried),
            "{metric}"
        );
        assert_eq!(tried("rank_mean"), metric == "roc_auc");
        assert_eq!(tried("median"), metric == "rmsle");
    }
}

/// The smallest run that predicts a number, and what came of it.
async fn prices_of_a_few_houses(python: &Utf8Path) -> (Shop, FinalResult) {
    let shop = Shop::new();
    let price = |worth: f64| format!("{worth:.3}");
    shop.write("houses/train.csv", &houses(0..60, Some(price)));
    shop.write("houses/test.csv", &houses(60..80, None));
    let task = task(&shop, "rmse", MetricDirection::Minimize);
    let result = run(&shop, task, SMALLEST, python.to_owned()).await;
    (shop, result)
}

#[tokio::test]
async fn no_model_is_fitted_twice_on_the_same_table() {
    let Some(python) = python().await else { return };
    let (shop, result) = prices_of_a_few_houses(&python).await;
    assert!(!shop.only_run().join("shared").exists(), "what scripts shared is of no use any more");

    // The script of the run, by itself, in a folder that it shares with nobody but itself.
    let script = &result.final_solution.content;
    let shared = shop.path().join("shared");
    fs_err::create_dir(&shared).unwrap();
    std::os::unix::fs::symlink("houses", shop.path().join("input")).unwrap();
    let score = |script: &str| {
        shop.write("solution.py", script);
        let mut command = std::process::Command::new(&python);
        command.arg("solution.py").current_dir(shop.path()).env("MLE_STAR_SHARED", &shared);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.starts_with("Final Validation Performance"));
        line.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr))).to_owned()
    };
    let kept = || {
        let mut files: Vec<_> = shared.read_dir_utf8().unwrap().map(|it| it.unwrap()).collect();
        files.sort_by(|a, b| a.path().cmp(b.path()));
        let stamped = |file: camino::Utf8DirEntry| {
            (file.file_name().to_owned(), file.metadata().unwrap().modified().unwrap())
        };
        files.into_iter().map(stamped).collect::<Vec<_>>()
    };
    let first = score(script);
    let fits = kept();
    assert!(!fits.is_empty());
    assert_eq!(score(script), first);
    assert_eq!(kept(), fits, "nothing was fitted again");

    let damaged = &fits[0].0;
    fs_err::write(shared.join(damaged), "not an archive").unwrap();
    assert_eq!(score(script), first);
    let mended = kept();
    assert_ne!(mended[0], fits[0]);
    assert_eq!(mended[1..], fits[1..], "only what was damaged was fitted again");

    let other = script.replacen("# === model: ", "# === model: other_", 1);
    assert_ne!(other, *script);
    score(&other);
    assert!(kept().len() > fits.len(), "another model is fitted, though the table is the same");

    // Side by side, each in a sandbox of its own, scripts have the same process id.
    let watched = format!("{SAME_PROCESS}{script}");
    for _ in 0..2 {
        fs_err::remove_dir_all(&shared).unwrap();
        fs_err::create_dir(&shared).unwrap();
        assert_eq!(score(&watched), first);
    }
    let parts = fs_err::read_to_string(shop.path().join("parts")).unwrap();
    let mut parts: Vec<&str> = parts.lines().collect();
    assert_eq!(parts.len(), 2 * fits.len());
    parts.sort_unstable();
    parts.dedup();
    assert_eq!(parts.len(), 2 * fits.len(), "no script writes to a file of another");
}

/// Before a script: it has a known process id, and its unfinished files are listed in `parts`.
const SAME_PROCESS: &str = "import os
import numpy
os.getpid = lambda: 2
def listed(part, *arrays, save=numpy.savez):
    print(part, file=open('parts', 'a'))
    save(part, *arrays)
numpy.savez = listed
";

/// Runs the code of a notebook in one namespace, cell by cell, as a kernel does. A kernel itself is
/// none of the packages that a run needs.
const RUN_CELLS: &str = "import json, sys
space = {'__name__': '__main__'}
for cell in json.load(open(sys.argv[1]))['cells']:
    if cell['cell_type'] == 'code':
        exec(compile(''.join(cell['source']), cell['id'], 'exec'), space)
";

#[tokio::test]
async fn what_is_exported_reproduces_the_score_and_the_submission() {
    let Some(python) = python().await else { return };
    let (shop, result) = prices_of_a_few_houses(&python).await;
    let out = shop.path().join("out");
    let run = shop.only_run();
    shop.command().args(["export", run.as_str(), "--out", out.as_str()]).assert().success();

    let (script, notebook) = (out.join("solution.py"), out.join("solution.ipynb"));
    let expected = fs_err::read_to_string(out.join("submission.csv")).unwrap();
    assert_eq!(expected, fs_err::read_to_string(&result.submission_path).unwrap());
    for (name, program) in
        [("script", vec![script.as_str()]), ("notebook", vec!["-c", RUN_CELLS, notebook.as_str()])]
    {
        // A folder as the notebook says it must be: the data in `./input`, and nothing else.
        let folder = shop.path().join(name);
        fs_err::create_dir(&folder).unwrap();
        fs_err::os::unix::fs::symlink(shop.path().join("houses"), folder.join("input")).unwrap();
        let mut command = std::process::Command::new(&python);
        // Side by side with other tests, threads that wait for each other take minutes.
        let threads = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LOKY_MAX_CPU_COUNT"];
        command.envs(threads.map(|name| (name, "1")));
        let output = command.args(program).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(parse_score(&printed), result.final_solution.score, "{name}: {printed}");
        let written = fs_err::read_to_string(folder.join("final/submission.csv")).unwrap();
        assert_eq!(written, expected, "{name}");
    }
    let requirements = fs_err::read_to_string(out.join("requirements.txt")).unwrap();
    assert!(requirements.contains("pandas==") && requirements.contains("scikit-learn=="));
}

#[tokio::test]
async fn a_known_task_is_solved() {
    let folder =
        Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/titanic"));
    if !folder.is_dir() {
        return skipped(&format!("there is no `{folder}`"));
    }
    let Some(python) = python().await else { return };
    let shop = Shop::new();
    let task = read_task(folder, &TaskOptions::default()).unwrap();
    let result = run(&shop, task, SMALLEST, python).await;
    assert!(f64::from(result.final_solution.score.unwrap()) > 0.78);
    assert_eq!(submission(&result).len(), 224);
}
