//! From a folder of data to a task: `init`, the layouts that need no task file, `.env`, and what is
//! said to those who misspell.

use std::io::{Cursor, Write};

use camino::{Utf8Path, Utf8PathBuf};
use insta::assert_snapshot;
use mle_star::draft::{Draft, MetricSource};
use mle_star::task_file::{TaskOptions, read_task};
use mle_star_playbook::{Seen, Shape, ShapeError};
use mle_star_profile::{Bounds, profile};

use crate::shop::{Shop, records, skipped};

/// What a command prints on both streams, and its exit code.
fn said(shop: &Shop, arguments: &[&str]) -> String {
    let output = shop.command().args(arguments).env("COLUMNS", "100").output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let code = output.status.code().unwrap();
    shop.plain(&format!("{stderr}--- standard output\n{stdout}exit code: {code}"))
}

fn flats(rows: std::ops::Range<usize>, target: &str) -> String {
    let header = if target.is_empty() { "id,size\n" } else { "id,size,rent\n" };
    rows.fold(header.to_owned(), |text, at| {
        let rent = if target.is_empty() { String::new() } else { format!(",{}.5", at * 13 % 97) };
        format!("{text}{at},{}{rent}\n", at * 7 % 31)
    })
}

/// A folder with flats, below `name`.
fn with_flats(name: &str) -> Shop {
    let shop = Shop::new();
    shop.write(&format!("{name}/train.csv"), &flats(0..40, "rent"));
    shop.write(&format!("{name}/test.csv"), &flats(40..50, ""));
    shop
}

fn zipped(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

const ABOUT: &str = "# Flats\nPredict the `rent`.\n\n## Evaluation\nMean absolute error.\n";

#[test]
fn init_writes_a_task_file_and_says_why() {
    let shop = with_flats("flats/input");
    shop.write("flats/description.md", ABOUT);
    assert_snapshot!(said(&shop, &["init", "flats"]), @"
    data: input (it holds 2 files)
    target: `rent` (`train.csv` has it and `test.csv` has not)
    id: id (it names the rows of a submission)
    data_modality: tabular (there are tables and nothing else)
    task_type: regression (it is a number (0.5, 1.5, 13.5, 14.5, 15.5, …))
    evaluation_metric: mae (the description says so)
    metric_direction: minimize (so it is with `mae`)
    description_file: description.md (it is there)
    --- standard output
    flats/task.yaml
    exit code: 0
    ");
    assert_snapshot!(fs_err::read_to_string(shop.path().join("flats/task.yaml")).unwrap(), @"
    # Written by `mle-star init` from what lies in this folder. Change what is wrong;
    # lines with CHECK are guesses.

    # The name of the task, for run directories and reports.
    competition_id: flats

    # Target: `rent`, a number (0.5, 1.5, 13.5, 14.5, 15.5, …).
    # Id column: `id`.
    # Tables: `train.csv` (40 rows), `test.csv`.

    # classification, regression, text_classification, image_classification,
    # audio_classification, image_to_image, sequence_to_sequence or tabular
    task_type: regression
    # tabular, text, image, audio or mixed
    data_modality: tabular

    # How predictions are judged.
    evaluation_metric: mae
    metric_direction: minimize

    # What agents are told about the task. `description: …` is the same in place.
    description_file: description.md

    # The data, relative to this file.
    data_dir: input
    ");
    let task = read_task(&shop.path().join("flats"), &TaskOptions::default()).unwrap();
    assert_eq!(task.evaluation_metric, "mae");

    assert_snapshot!(said(&shop, &["init", "flats"]), @"
    error: there is a `flats/task.yaml` already
    hint: --force replaces it; `mle-star run` takes it as it is
    --- standard output
    exit code: 2
    ");
    shop.write("flats/task.yaml", "mine");
    said(&shop, &["init", "flats", "--force"]);
    assert_eq!(read_task(&shop.path().join("flats"), &TaskOptions::default()).unwrap(), task);
    assert_snapshot!(said(&shop, &["init", "flat"]), @"
    error: there is no folder `flat`
    hint: name the folder that holds the data
    --- standard output
    exit code: 2
    ");
}

#[test]
fn init_says_what_it_could_not_decide() {
    let shop = with_flats("flats");
    assert_snapshot!(said(&shop, &["init", "flats"]), @"
    data: . (it holds 2 files)
    target: `rent` (`train.csv` has it and `test.csv` has not)
    id: id (it names the rows of a submission)
    data_modality: tabular (there are tables and nothing else)
    task_type: regression (it is a number (0.5, 1.5, 13.5, 14.5, 15.5, …))
    metric_direction: minimize (so it is with `rmse`)
    check evaluation_metric: nothing says it plainly; `rmse` is a guess (mae, rmsle, r2 fit too)
    check description: there is no description.md; say more about the task
    --- standard output
    flats/task.yaml
    exit code: 0
    ");
    let shop = Shop::new();
    shop.write("odd/notes.txt", "nothing here\n");
    assert_snapshot!(said(&shop, &["init", "odd", "--metric", "profit"]), @"
    data: . (it holds 1 file)
    data_modality: tabular (there is nothing else that is known)
    evaluation_metric: profit (--metric says so)
    check target: there is no training table in the data folder (a .csv, .tsv or .csv.gz file); put the rows to learn from into `train.csv`
    check task_type: without a target, `tabular` is a guess
    check metric_direction: `profit` is not known here; write minimize or maximize
    check description: there is no description.md; say more about the task
    --- standard output
    odd/task.yaml
    exit code: 0
    ");
}

/// Metrics that are about the same thing.
fn family(metric: &str) -> &'static str {
    match metric {
        "accuracy" | "f1" => "classes",
        "roc_auc" | "mean_columnwise_roc_auc" | "log_loss" | "multiclass_log_loss" => {
            "probabilities"
        }
        "rmse" | "rmse_of_log" | "mae" | "rmsle" => "numbers",
        other => panic!("`{other}` has no family"),
    }
}

/// Copies a folder without its task file, and without its description if `words` is not wanted.
fn copied(folder: &Utf8Path, shop: &Shop, words: bool) -> Utf8PathBuf {
    let to = shop.path().join(folder.file_name().unwrap());
    fs_err::create_dir_all(to.join("input")).unwrap();
    for entry in folder.join("input").read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        fs_err::copy(entry.path(), to.join("input").join(entry.file_name())).unwrap();
    }
    if words {
        fs_err::copy(folder.join("description.md"), to.join("description.md")).unwrap();
    }
    to
}

#[test]
fn init_sees_what_every_known_task_is() {
    let all = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(folders) = all.read_dir_utf8() else {
        return skipped(&format!("there is no `{all}`"));
    };
    let mut tasks = 0;
    for folder in folders.map(|it| it.unwrap().into_path()) {
        if !folder.join("task.yaml").is_file() {
            continue;
        }
        tasks += 1;
        let real = read_task(&folder, &TaskOptions::default()).unwrap();
        let data = profile(&real.data_dir, &Bounds::default()).unwrap();
        let shape = Shape::of(&real, &data).unwrap();
        let name = folder.file_name().unwrap();

        // With a description, `init` finds the whole task, and nothing is left to check.
        let shop = Shop::new();
        let copy = copied(&folder, &shop, true);
        shop.command().args(["init", name]).assert().success();
        let drafted = read_task(&copy, &TaskOptions::default()).unwrap();
        let facts = |task: &mle_star::TaskDescription| {
            let metric = (task.evaluation_metric.clone(), task.metric_direction);
            (task.competition_id.clone(), task.task_type, task.data_modality, metric)
        };
        assert_eq!(facts(&drafted), facts(&real), "{name}");
        assert_eq!(drafted.description, real.description);
        let draft = Draft::of(&copy, &TaskOptions::default()).unwrap();
        assert_eq!((draft.metric.source, draft.open), (MetricSource::Told, vec![]), "{name}");
        let seen = draft.seen.unwrap();
        assert_eq!(
            (seen.targets.as_slice(), seen.kind, seen.id.as_deref()),
            (shape.targets(), shape.kind(), shape.id()),
            "{name}"
        );

        // Without one, the data alone shows target, kind, family and direction.
        let shop = Shop::new();
        let bare = Draft::of(&copied(&folder, &shop, false), &TaskOptions::default()).unwrap();
        let seen = bare.seen.as_ref().unwrap();
        let shown = (seen.targets.as_slice(), seen.kind, seen.id.as_deref());
        assert_eq!(shown, (shape.targets(), shape.kind(), shape.id()), "{name}, bare");
        assert_eq!(bare.task_type, real.task_type, "{name}, bare");
        assert_eq!(bare.data_modality, real.data_modality, "{name}, bare");
        assert_eq!(family(&bare.metric.name), family(&real.evaluation_metric), "{name}, bare");
        assert_eq!(bare.direction, Some(real.metric_direction), "{name}, bare");
        assert_eq!(bare.metric.source, MetricSource::Guessed, "{name}, bare");
    }
    assert!(tasks >= 9, "{tasks} tasks");
}

/// Runs with the scripted replies, and gives the task that the run took.
fn run(shop: &Shop, arguments: &[&str]) -> mle_star::TaskDescription {
    let small = ["-s", "M=1", "-s", "T=1", "-s", "K=1", "-s", "L=1", "-q"];
    let scripted = ["--agents", "scripted:replies.yaml"];
    shop.command().arg("run").args(arguments).args(scripted).args(small).assert().success();
    match records(&shop.only_run()).first() {
        Some(mle_star_search::event::Record::Opened { header, .. }) => header.task.clone(),
        record => panic!("{record:?}"),
    }
}

#[test]
fn a_folder_as_aide_takes_it_is_run_with_goal_and_evaluation_in_words() {
    let shop = with_flats("flats");
    let eval = "Use the RMSE between the logarithm of the predicted and observed rent";
    let task = run(&shop, &["flats", "--goal", "Predict the rent", "--eval", eval]);
    assert_eq!(task.evaluation_metric, "rmse_of_log");
    assert_eq!(task.data_dir, shop.path().join("flats"));
}

#[test]
fn a_folder_as_mle_bench_prepares_it_is_run_without_a_word() {
    let shop = with_flats("flats/prepared/public");
    shop.write("flats/prepared/public/description.md", ABOUT);
    shop.write("flats/prepared/private/test.csv", "id,rent\n40,1\n");
    let task = run(&shop, &["flats"]);
    assert_eq!(task.evaluation_metric, "mae");
    assert_eq!(task.data_dir, shop.path().join("flats/prepared/public"));
    assert_eq!(task.description, ABOUT);
}

#[test]
fn a_download_from_kaggle_is_unpacked_and_run() {
    let shop = Shop::new();
    let (train, test) = (flats(0..40, "rent"), flats(40..50, ""));
    shop.write("flats/description.md", ABOUT);
    let archive = zipped(&[("train.csv", &train), ("test.csv", &test)]);
    fs_err::write(shop.path().join("flats/flats.zip"), archive).unwrap();
    let packed = read_task(&shop.path().join("flats"), &TaskOptions::default()).unwrap_err();
    assert_snapshot!(shop.plain(&packed.to_string()), @"the data of `[FOLDER]/flats` is in archives: flats.zip");
    let task = run(&shop, &["flats"]);
    assert_eq!(task.data_dir, shop.path().join("flats/input"));
    assert_eq!(fs_err::read_to_string(task.data_dir.join("train.csv")).unwrap(), train);
    assert!(shop.path().join("flats/flats.zip").is_file());
}

#[test]
fn an_archive_that_is_hostile_is_refused_with_a_hint() {
    let shop = Shop::new();
    shop.write("flats/description.md", ABOUT);
    let archive = zipped(&[("../../evil.csv", "x")]);
    fs_err::write(shop.path().join("flats/flats.zip"), archive).unwrap();
    assert_snapshot!(said(&shop, &["init", "flats"]), @"
    error: `flats/flats.zip` cannot be unpacked: its entry `../../evil.csv` leads out of the folder
    hint: if you trust it, unpack it yourself into `input`
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["run", "flats"]), @"
    error: `flats/flats.zip` cannot be unpacked: its entry `../../evil.csv` leads out of the folder
    hint: if you trust it, unpack it yourself into `input`
    --- standard output
    exit code: 2
    ");
}

#[test]
fn a_folder_that_tells_too_little_says_what_is_missing() {
    let shop = with_flats("flats");
    shop.write("flats/README.md", "Predict the rent. Others had an RMSE of 3.\n");
    assert_snapshot!(said(&shop, &["run", "flats"]), @r#"
    error: `[FOLDER]/flats` has no task.yaml, and --metric does not say how it is judged (the description names rmse)
    hint: `mle-star init` writes a task.yaml; or add what is missing, such as --goal "…" --metric rmse
    --- standard output
    exit code: 2
    "#);
    assert_snapshot!(said(&shop, &["run", "flat", "--metric", "rmse"]), @"
    error: there is no task at `[FOLDER]/flat`
    hint: did you mean `[FOLDER]/flats`?
    --- standard output
    exit code: 2
    ");
}

#[test]
fn settings_and_keys_are_read_from_a_file_and_masked_like_others() {
    let shop = Shop::new();
    shop.write(
        ".env",
        "MLE_STAR_SEED=7\nexport ANTHROPIC_API_KEY='sk-never-shown'\nHOME=/nowhere\n",
    );
    let small = ["-s", "M=1", "-s", "T=1", "-s", "K=1", "-s", "L=1"];
    let mut command = shop.command();
    command.args(["run", "shop", "--agents", "scripted:replies.yaml"]).args(small);
    command.assert().success();
    match &records(&shop.only_run())[0] {
        mle_star_search::event::Record::Opened { header, .. } => {
            assert_eq!(header.config.seed, 7);
        }
        record => panic!("{record:?}"),
    }
    // The environment takes precedence.
    let wrong =
        shop.command().args(["run", "shop", "--dry-run"]).env("MLE_STAR_SEED", "x").output();
    let wrong = String::from_utf8(wrong.unwrap().stderr).unwrap();
    assert!(wrong.contains("`MLE_STAR_SEED`: invalid type: string \"x\""), "{wrong}");
    // An error that quotes a secret is masked.
    assert_snapshot!(said(&shop, &["show", "sk-never-shown"]), @"
    error: there is no run at `[redacted]`
    hint: `mle-star list` shows the runs
    --- standard output
    exit code: 2
    ");
    shop.write(".env", "MLE_STAR_MODEL=\"opus\nANTHROPIC_API_KEY=sk-never-shown\n");
    assert_snapshot!(said(&shop, &["list"]), @"
    error: line 1 of `.env`: the quote is not closed in the value of `MLE_STAR_MODEL`
    hint: a line is NAME=value; a value that has spaces stands between quotes
    --- standard output
    exit code: 2
    ");
}

#[test]
fn what_is_misspelt_is_answered_with_the_nearest_name() {
    let shop = Shop::new();
    shop.write("runs/rent-20261115-210000/journal.jsonl", "");
    assert_snapshot!(said(&shop, &["shwo"]), @"
    error: unrecognized subcommand 'shwo'

    Usage: mle-star <COMMAND>
    hint: a similar subcommand exists: 'show'
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["rnu"]), @"
    error: unrecognized subcommand 'rnu'

    Usage: mle-star <COMMAND>
    hint: a similar subcommand exists: 'run'
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["run", "--runs"]), @"
    error: unexpected argument '--runs' found

    Usage: mle-star run [OPTIONS] <TASK>
    hint: `mle-star run --help` says what there is
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["run", "shop", "--agents", "playbok"]), @"
    error: unknown agents `playbok`
    hint: did you mean `playbook`? agents are claude, playbook, scripted:<file> or replay:<run>
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["run", "shop", "--metirc", "rmse"]), @"
    error: unexpected argument '--metirc' found

    Usage: mle-star run --metric <NAME> <TASK>
    hint: a similar argument exists: '--metric'
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["run"]), @"
    error: the following required arguments were not provided:
      <TASK>

    Usage: mle-star run <TASK>
    hint: `mle-star run --help` says what there is
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["man", "repotr"]), @"
    error: there is no command `repotr`
    hint: did you mean `report`?
    --- standard output
    exit code: 2
    ");
    for command in ["show", "resume", "report", "export", "stop"] {
        let said = said(&shop, &[command, "runs/rent-20261115-210001"]);
        // Some commands say where a run is in full.
        let said = said.replace("[FOLDER]/", "");
        assert!(said.contains("hint: did you mean `runs/rent-20261115-210000`?"), "{said}");
    }
    assert_snapshot!(said(&shop, &["show", "rent-20261115-210000"]), @"
    error: there is no run at `rent-20261115-210000`
    hint: did you mean `runs/rent-20261115-210000`? `mle-star list` shows the runs
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["show", "nothing"]), @"
    error: there is no run at `nothing`
    hint: `mle-star list` shows the runs
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["run", "shoop"]), @"
    error: there is no task at `[FOLDER]/shoop`
    hint: did you mean `[FOLDER]/shop`?
    --- standard output
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &["bench", ".", "--task", "shpo"]), @"
    error: there is no task `shpo` in `.`
    hint: did you mean `shop`? there are: shop
    --- standard output
    exit code: 2
    ");
}

#[test]
fn what_is_seen_agrees_with_what_the_playbook_refuses() {
    let shop = Shop::new();
    shop.write("flats/train.csv", "id,size\n1,2\n");
    shop.write("flats/test.csv", "id,size\n3,4\n");
    let folder = shop.path().join("flats");
    let data = profile(&folder, &Bounds::default()).unwrap();
    let seen = Seen::of(&folder, &data, "", None);
    let (train, test) = ("train.csv".to_owned(), "test.csv".to_owned());
    assert_eq!(seen, Err(ShapeError::NoTarget { train, test }));
}

#[test]
fn a_token_from_a_file_reaches_the_program_that_needs_it_and_nothing_else() {
    use std::os::unix::fs::PermissionsExt as _;

    let shop = Shop::new();
    let (program, asked) = (shop.path().join("claude"), shop.path().join("asked"));
    let text = format!(
        "#!/bin/sh\ncase \"$1\" in --version) echo '2.1.999 (Claude Code)'; exit;; esac\n\
         echo \"$AWS_SECRET_ACCESS_KEY\" > {asked}\necho \"wrong: $AWS_SECRET_ACCESS_KEY\" >&2\nexit 1\n"
    );
    shop.write("claude", &text);
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    shop.write(
        ".env",
        &format!(
            "CLAUDE_CODE_USE_BEDROCK=1\nAWS_SECRET_ACCESS_KEY=sk-never-shown\n\
             MLE_STAR_CLAUDE_PATH={program}\n"
        ),
    );
    // In a sandbox, the program could not tell us.
    let failed = shop.command().args(["run", "shop", "--sandbox", "off"]).output().unwrap();
    let stderr = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(fs_err::read_to_string(&asked).unwrap(), "sk-never-shown\n", "{stderr}");
    assert!(!stderr.contains("sk-never-shown"), "{stderr}");
    for entry in shop.only_run().read_dir_utf8().unwrap().map(|it| it.unwrap()) {
        if entry.file_type().unwrap().is_file() {
            let bytes = fs_err::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("sk-never-shown"), "{}", entry.path());
        }
    }
}
