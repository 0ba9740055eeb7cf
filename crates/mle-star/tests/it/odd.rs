//! Data in odd forms, with the playbook: a submission that makes sense, or an error that says what
//! to do.
//!
//! Scripts for all oddities run in one Python, one after the other: loading the libraries takes
//! longer than the scripts. What only shows in a whole run is tried through the binary.

mod data;

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use insta::assert_snapshot;
use mle_star::TaskDescription;
use mle_star::models::{DataModality, MetricDirection, TaskType};
use mle_star_agent::{Agent as _, Call, Waits};
use mle_star_playbook::{Options, Playbook};
use mle_star_search::event::{Event, Record};
use mle_star_search::reply::try_extract_code;
use serde_json::{Value, json};

use data::{TEST, TRAIN, noise, oddities, packed, size, table, town, usual, usual_test, verdict};

use crate::bad_input::refusal;
use crate::playbook::{ONE_AT_A_TIME, python, warnings};
use crate::shop::{Shop, records};

/// Runs the scripts of all folders, and writes beside each what it printed or how it failed.
const RUN_ALL: &str = r#"
import contextlib, io, os, sys, traceback
for folder in sys.argv[1:]:
    os.chdir(folder)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(open("script.py", encoding="utf-8").read(), "script.py", "exec"), {"__name__": "__main__"})
    except BaseException:
        printed.write(traceback.format_exc())
    open("printed.txt", "w", encoding="utf-8").write(printed.getvalue())
"#;

/// One oddity: its data, how it is judged, and what the submission must look like.
struct Oddity {
    name: &'static str,
    metric: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    header: &'static str,
    ids: Ids,
    answers: Answers,
    /// The worst score that is still sensible.
    at_worst: f64,
}

enum Ids {
    None,
    From(usize),
    Named(fn(usize) -> String),
}

enum Answers {
    Words(&'static [&'static str]),
    Between(f64, f64),
}

impl Oddity {
    fn at_worst(self, at_worst: f64) -> Self {
        Self { at_worst, ..self }
    }

    fn in_thousands(self) -> Self {
        Self { answers: Answers::Between(0.0, 200_000.0), at_worst: 20_000.0, ..self }
    }

    /// Writes the data and the script that makes the submission.
    async fn prepare(&self, folder: &Utf8Path) {
        fs_err::create_dir_all(folder.join("input")).unwrap();
        for (name, text) in &self.files {
            fs_err::write(folder.join("input").join(name), text).unwrap();
        }
        let playbook = open(&folder.join("input"), self.metric)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let script = ask(
            &playbook,
            "init",
            json!({ "model_name": "", "example_code": "def model_linear(" }),
        )
        .await;
        let script = ask(&playbook, "test", json!({ "final_solution": script })).await;
        fs_err::write(folder.join("script.py"), script).unwrap();
    }

    /// What is wrong with what the script printed and submitted.
    fn problem(&self, folder: &Utf8Path) -> Option<String> {
        let printed = fs_err::read_to_string(folder.join("printed.txt")).unwrap();
        let Ok(text) = fs_err::read_to_string(folder.join("final/submission.csv")) else {
            return Some(printed);
        };
        let score =
            printed.lines().find_map(|it| it.strip_prefix("Final Validation Performance: "));
        let score: f64 = score.and_then(|it| it.parse().ok()).unwrap_or(f64::NAN);
        let good =
            if self.metric == "rmse" { score <= self.at_worst } else { score >= self.at_worst };
        if !good {
            return Some(format!("the score is {score}\n{printed}"));
        }
        let mut lines = text.lines();
        if lines.next() != Some(self.header) {
            return Some(format!("the header is wrong: {text}"));
        }
        let lines: Vec<&str> = lines.collect();
        if lines.len() != TEST.len() {
            return Some(format!("there are {} rows", lines.len()));
        }
        lines.iter().zip(TEST).find_map(|(line, row)| {
            let (id, answer) = line.split_once(',').unwrap_or(("", line));
            let expected = match &self.ids {
                Ids::None => String::new(),
                Ids::From(first) => (first + row - TEST.start).to_string(),
                Ids::Named(name) => name(row),
            };
            let fits = match &self.answers {
                Answers::Words(words) => words.contains(&answer),
                Answers::Between(least, most) => {
                    answer.parse().is_ok_and(|it: f64| (*least..=*most).contains(&it))
                }
            };
            (id != expected || !fits).then(|| format!("row {row} is `{line}`"))
        })
    }
}

pub(crate) fn open(
    data: &Utf8Path,
    metric: &str,
) -> Result<Playbook, mle_star_playbook::ShapeError> {
    let direction = match metric {
        "rmse" => MetricDirection::Minimize,
        _ => MetricDirection::Maximize,
    };
    let task = TaskDescription::new(
        "odd",
        TaskType::Tabular,
        DataModality::Tabular,
        metric,
        direction,
        "Predict the `answer`.",
    );
    let task = TaskDescription { data_dir: data.to_owned(), ..task.unwrap() };
    let profile = mle_star_profile::profile(data, &mle_star_profile::Bounds::default()).unwrap();
    Playbook::new(&task, &profile, &[], Options::default())
}

async fn ask(playbook: &Playbook, role: &str, input: Value) -> String {
    try_extract_code(&answer(playbook, role, None, input).await).unwrap()
}

/// What the playbook says in a role.
pub(crate) async fn answer(
    playbook: &Playbook,
    role: &str,
    variant: Option<&str>,
    input: Value,
) -> String {
    let call = Call {
        step: role.to_owned(),
        role: role.to_owned(),
        variant: variant.map(str::to_owned),
        lane: "final".to_owned(),
        system_prompt: String::new(),
        prompt: String::new(),
        input,
        tools: Vec::new(),
        schema: None,
        model: String::new(),
        max_turns: None,
        max_budget_usd: None,
        thread: None,
        waits: Waits::default(),
    };
    playbook.ask(&call).await.unwrap().text
}

/// Runs the scripts of all folders in one Python.
pub(crate) fn run_all(python: &Utf8Path, folders: &[Utf8PathBuf]) {
    let status = Command::new(python)
        .args(["-c", RUN_ALL])
        .args(folders)
        .env("OMP_NUM_THREADS", "1")
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn odd_data_becomes_a_sensible_submission() {
    let Some(python) = python().await else { return };
    let shop = Shop::new();
    let oddities = oddities();
    let folders: Vec<Utf8PathBuf> =
        (0..oddities.len()).map(|it| shop.path().join(format!("odd-{it}"))).collect();
    for (oddity, folder) in oddities.iter().zip(&folders) {
        oddity.prepare(folder).await;
    }
    let scripts = folders.iter().map(|it| fs_err::read_to_string(it.join("script.py")).unwrap());
    let on_the_map = scripts.filter(|it| it.contains("def features_coordinates(")).count();
    assert_eq!(on_the_map, 1);
    run_all(&python, &folders);
    let problems: Vec<String> = oddities
        .iter()
        .zip(&folders)
        .filter_map(|(it, folder)| Some(format!("{}: {}", it.name, it.problem(folder)?)))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn data_without_an_answer_is_an_error_with_a_remedy() {
    let few = table("id,size,answer", 0..3, |row| format!("{row},{:.2},{row}", size(row)));
    let test = usual_test().1;
    let ambiguous =
        table("id,size,town,answer", TRAIN, |row| format!("{},{}", usual(row), row % 2));
    let one = table("id,size,town,answer", TRAIN, |row| format!("{},1", usual(row)));
    let two = table("id,size,town,first,second", TRAIN, |row| {
        format!("{},{},{}", usual(row), row % 2, row % 3)
    });
    let said = |metric: &str, files: &[(&str, &[u8])]| {
        let shop = Shop::new();
        for (name, text) in files {
            shop.write(&format!("odd/{name}"), std::str::from_utf8(text).unwrap());
        }
        let mut command = shop.command();
        command.args(["run", "odd", "--agents", "playbook", "--goal", "Predict it."]);
        refusal(&shop, command.args(["--metric", metric]))
    };
    let messages = [
        said("rmse", &[("train.csv", &few), ("test.csv", &test)]),
        said("accuracy", &[("train.csv", &one), ("test.csv", &test)]),
        said("rmse", &[("train.csv", &one), ("test.csv", &test)]),
        said("accuracy", &[("train.csv", &two), ("test.csv", &test)]),
        said(
            "accuracy",
            &[("train_a.csv", &ambiguous), ("train_b.csv", &ambiguous), ("test.csv", &test)],
        ),
        said("accuracy", &[("train.csv", &ambiguous)]),
        said("accuracy", &[("notes.md", b"hello")]),
    ];
    assert_snapshot!(messages.join("\n\n"), @"
    error: 3 training rows with a target are too few: at least 10 are needed
    hint: add training rows that have a target
    exit code: 2

    error: the target `answer` has one value only: there is nothing to learn
    hint: check that the target is read from the right column
    exit code: 2

    error: the target `answer` has one value only: there is nothing to learn
    hint: check that the target is read from the right column
    exit code: 2

    error: the target cannot be told: `train.csv` has `first` and `second`, which `test.csv` has not
    hint: add a `sample_submission.csv` with the target's name, or put the name between backticks in the description or --goal
    exit code: 2

    error: `train_a.csv` and `train_b.csv` could both be the training table
    hint: name the right one `train.csv`, or leave only that one in the folder
    exit code: 2

    error: there is no test table beside `train.csv`
    hint: put the rows to predict into `test.csv`, without the target
    exit code: 2

    error: there is no training table in the data folder (a .csv, .tsv or .csv.gz file)
    hint: put the rows to learn from into `train.csv`
    exit code: 2
    ");
}

/// One run with everything at once that a folder may do to a newcomer.
#[tokio::test]
async fn a_folder_in_an_odd_form_is_run_by_the_binary() {
    let Some(python) = python().await else { return };
    let shop = Shop::new();
    let train = table("Größe;id;leer;town;Größe;answer", TRAIN, |row| {
        let answer = if row % 10 == 0 { "" } else { verdict(row) };
        let size = format!("{:.2}", size(row)).replace('.', ",");
        format!("{size};{row:03};;\"{}\n?\";{row};{answer}", town(row))
    });
    shop.write("odd/train.csv", &format!("\u{feff}{}", String::from_utf8(train).unwrap()));
    let test = table("id,neu,town,Größe", TEST, |row| {
        format!("{row:03},1,\"{}\n?\",{:.2}", town(row), size(row))
    });
    fs_err::write(shop.path().join("odd/test.csv.gz"), packed(&test)).unwrap();
    let mut command = shop.command();
    command.env("MLE_STAR_PYTHON", python.as_str());
    command.args(["run", "odd", "--agents", "playbook", "--goal", "Predict `answer`."]);
    command.args(["--metric", "accuracy"]);
    for setting in ["M=1", "T=1", "K=1", "L=1", "R=1"] {
        command.args(["-s", setting]);
    }
    let _others = ONE_AT_A_TIME.lock().await;
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = shop.only_run();
    assert_eq!(warnings(&run), [""; 0]);
    let text = fs_err::read_to_string(run.join("final/submission.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("id,answer"));
    let right = lines.zip(TEST).filter(|(line, row)| {
        let (id, answer) = line.split_once(',').unwrap();
        assert_eq!(id, format!("{row:03}"));
        assert!(["yes", "no"].contains(&answer), "{line}");
        answer == verdict(*row)
    });
    assert!(right.count() >= 24);
    assert_eq!(text.lines().count(), 1 + TEST.len());
}

/// What is predicted depends on two further tables alone: what a customer earns, and how often and
/// for how much they bought.
#[tokio::test]
async fn further_tables_are_taken_in_and_improve_the_score() {
    let Some(python) = python().await else { return };
    let shop = Shop::new();
    let customer = |row: usize| format!("c{:03}", (row * 17) % 60);
    let income = |customer: &str| size(customer.trim_start_matches('c').parse().unwrap());
    let purchases = |customer: &str| {
        let number: usize = customer.trim_start_matches('c').parse().unwrap();
        (0..1 + number % 5).map(move |it| (number * 10 + it, 10.0 + 40.0 * noise(number, it + 3)))
    };
    let answer = |row: usize| {
        let customer = customer(row);
        income(&customer) + purchases(&customer).map(|it| it.1).sum::<f64>() + noise(row, 5)
    };
    let line = |row: usize| format!("{row},{},{:.2}", customer(row), noise(row, 6));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let train = table("id,customer,weather,answer", 0..200, |row| {
        format!("{},{:.3}", line(row), answer(row))
    });
    shop.write("odd/train.csv", &text(train));
    shop.write("odd/test.csv", &text(table("id,customer,weather", 200..260, line)));
    // The key has another name here: values tell what belongs together.
    let customers = table("who,income,street", 0..60, |it| {
        format!("c{it:03},{:.2},{}", income(&format!("c{it:03}")), ["a", "b"][it % 2])
    });
    shop.write("odd/customers.csv", &text(customers));
    let bought = (0..60).flat_map(|it| {
        let name = format!("c{it:03}");
        let rows: Vec<String> = purchases(&name)
            .map(|(number, paid)| format!("{number},{name},{paid:.2},shop{}\n", number % 3))
            .collect();
        rows
    });
    shop.write(
        "odd/bought.csv",
        &format!("number,customer,paid,shop\n{}", bought.collect::<String>()),
    );
    shop.write("odd/unrelated.csv", "planet,moons\nMars,2\nEarth,1\nVenus,0\nJupiter,95\n");
    let mut command = shop.command();
    command.env("MLE_STAR_PYTHON", python.as_str());
    command.args(["run", "odd", "--agents", "playbook", "--goal", "Predict `answer`."]);
    command.args(["--metric", "rmse"]);
    for setting in ["M=1", "T=1", "K=1", "L=1", "R=1"] {
        command.args(["-s", setting]);
    }
    let _others = ONE_AT_A_TIME.lock().await;
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = shop.only_run();
    assert_eq!(warnings(&run), [""; 0]);
    let script = fs_err::read_to_string(run.join("final/solution.py")).unwrap();
    assert!(script.contains("./input/customers.csv") && script.contains("./input/bought.csv"));
    assert!(!script.contains("unrelated"));
    let scores: Vec<(String, f64)> = records(&run)
        .into_iter()
        .filter_map(|record| match record {
            Record::Happened {
                key, event: Event::Evaluated { score: Some(score), .. }, ..
            } => Some((key.to_string(), f64::from(score))),
            _ => None,
        })
        .collect();
    let at = |part: &str| {
        scores.iter().find(|it| it.0.contains(part)).unwrap_or_else(|| panic!("{scores:?}")).1
    };
    assert!(at("checks") < 0.8 * at("candidate"), "{scores:?}");
    let text = fs_err::read_to_string(run.join("final/submission.csv")).unwrap();
    let errors = text.lines().skip(1).zip(200..260).map(|(line, row)| {
        let (id, found) = line.split_once(',').unwrap();
        assert_eq!(id, row.to_string());
        (found.parse::<f64>().unwrap() - answer(row)).abs()
    });
    let errors: Vec<f64> = errors.collect();
    assert_eq!(errors.len(), 60);
    assert!(errors.iter().sum::<f64>() / 60.0 < 15.0, "{errors:?}");
}
