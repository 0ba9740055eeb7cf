//! Bad input gets a clear error, and leaves nothing behind.
//!
//! Every refusal is an `error:` line and a `hint:` line, and changes no file: [`refusal`] sees to
//! that, and the snapshots show the words and the exit code.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use assert_cmd::Command;
use camino::{Utf8Path, Utf8PathBuf};
use insta::assert_snapshot;

use crate::shop::{REPLIES, Shop, steps};

/// What `command` says while it does nothing.
pub(crate) fn refusal(shop: &Shop, command: &mut Command) -> String {
    let before = files(shop.path());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();

    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let [error, hint] = lines[..] else { panic!("not two lines:\n{said}") };
    assert!(error.starts_with("error: ") && hint.starts_with("hint: "), "{said}");
    assert!(files(shop.path()) == before, "a file was changed or left behind\n{said}");
    format!("{}exit code: {}", shop.plain(&said), output.status.code().unwrap())
}

/// What `mle-star run shop` says to more arguments.
fn run_refusal(shop: &Shop, arguments: &[&str]) -> String {
    refusal(shop, shop.run("").args(arguments))
}

/// What `mle-star run shop` says to a task file in which `from` is `to`.
fn task_refusal(from: &str, to: &str) -> String {
    let shop = Shop::new();
    edit(&shop.path().join("shop/task.yaml"), from, to);
    run_refusal(&shop, &[])
}

/// What `mle-star resume run` says.
fn resume_refusal(shop: &Shop, run: &Utf8Path) -> String {
    refusal(shop, shop.command().args(["resume", run.as_str()]))
}

/// Everything in a folder, to the byte. Links are not followed.
fn files(folder: &Utf8Path) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in folder.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            found.extend(files(&path));
        }
        found.insert(
            path.clone(),
            if kind.is_file() { fs_err::read(path).unwrap() } else { Vec::new() },
        );
    }
    found
}

fn edit(file: &Utf8Path, from: &str, to: &str) {
    let text = fs_err::read_to_string(file).unwrap();
    assert!(text.contains(from), "`{from}` is not in {file}");
    fs_err::write(file, text.replacen(from, to, 1)).unwrap();
}

/// A shop with a finished run.
fn finished() -> (Shop, Utf8PathBuf) {
    let shop = Shop::new();
    shop.run("M=1 T=1 K=1 L=1").assert().success();
    let run = shop.only_run();
    (shop, run)
}

/// Changes one line of the journal, counted from 1.
fn edit_journal(run: &Utf8Path, number: usize, change: impl Fn(&str) -> String) {
    let journal = run.join("journal.jsonl");
    let text = fs_err::read_to_string(&journal).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = lines.get_mut(number - 1).unwrap();
    *line = change(line);
    fs_err::write(&journal, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_task_that_is_not_there() {
    let shop = Shop::new();
    assert_snapshot!(refusal(&shop, shop.command().args(["run", "shopp"])), @"
    error: there is no task at `[FOLDER]/shopp`
    hint: did you mean `[FOLDER]/shop`?
    exit code: 2
    ");
}

#[test]
fn a_folder_that_does_not_say_what_to_do() {
    let shop = Shop::new();
    shop.write("bare/train.csv", "x,y\n1,2\n");
    let bare =
        |arguments: &[&str]| refusal(&shop, shop.command().args(["run", "bare"]).args(arguments));
    assert_snapshot!(bare(&[]), @r#"
    error: `[FOLDER]/bare` has no task.yaml, and neither a description.md nor --goal says what to predict, and --metric does not say how it is judged
    hint: `mle-star init` writes a task.yaml; or add what is missing, such as --goal "…" --metric rmse
    exit code: 2
    "#);
    assert_snapshot!(bare(&["--metric", "rmse"]), @r#"
    error: `[FOLDER]/bare` has no task.yaml, and neither a description.md nor --goal says what to predict
    hint: `mle-star init` writes a task.yaml; or add what is missing, such as --goal "…" --metric rmse
    exit code: 2
    "#);
    assert_snapshot!(bare(&["--goal", "Predict y.", "--metric", "profit"]), @r#"
    error: `[FOLDER]/bare` has no task.yaml, and neither --minimize nor --maximize says which way the metric improves
    hint: `mle-star init` writes a task.yaml; or add what is missing, such as --goal "…" --metric rmse
    exit code: 2
    "#);
}

#[test]
fn a_task_file_with_something_wrong_in_it() {
    assert_snapshot!(task_refusal("description:", "descripton:"), @"
    error: unknown key `descripton` in `[FOLDER]/shop/task.yaml`; did you mean `description`?
    hint: a task file has competition_id, task_type, data_modality, evaluation_metric, metric_direction, description or description_file, and data_dir
    exit code: 2
    ");
    assert_snapshot!(task_refusal("Predict y from x.", "[Predict, y]"), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: `description`: invalid type: sequence, expected a string
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
    assert_snapshot!(task_refusal("regression", "regresion"), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: `task_type`: unknown variant `regresion`, expected one of `classification`, `regression`, `image_classification`, `image_to_image`, `text_classification`, `audio_classification`, `sequence_to_sequence`, `tabular`
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
    assert_snapshot!(task_refusal("task_type: regression\n", ""), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: missing field `task_type`
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
    assert_snapshot!(task_refusal("Predict y from x.", "'  '"), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: `description` of the task is empty
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
    assert_snapshot!(task_refusal("r2\n", "r2\npackages: pandas\n"), @r#"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: `packages`: invalid type: string "pandas", expected a sequence
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    "#);
}

#[test]
fn a_task_file_that_is_no_mapping() {
    let shop = Shop::new();
    shop.write("shop/task.yaml", "competition_id: \"shop\ntask_type: [\n");
    assert_snapshot!(run_refusal(&shop, &[]), @"
    error: `[FOLDER]/shop/task.yaml` is not a task file: invalid indentation in multiline quoted scalar at line 2, column 1
    hint: a task file has competition_id, task_type, data_modality, evaluation_metric, metric_direction, description or description_file, and data_dir
    exit code: 2
    ");
    shop.write("shop/task.yaml", "- competition_id: shop\n");
    assert_snapshot!(run_refusal(&shop, &[]), @"
    error: `[FOLDER]/shop/task.yaml` is not a task file: it has no keys
    hint: a task file has competition_id, task_type, data_modality, evaluation_metric, metric_direction, description or description_file, and data_dir
    exit code: 2
    ");
    shop.write("shop/task.yaml", "");
    assert_snapshot!(run_refusal(&shop, &[]), @"
    error: `[FOLDER]/shop/task.yaml` is not a task file: it has no keys
    hint: a task file has competition_id, task_type, data_modality, evaluation_metric, metric_direction, description or description_file, and data_dir
    exit code: 2
    ");
}

#[test]
fn a_description_that_is_given_twice_or_not_there() {
    assert_snapshot!(task_refusal("r2\n", "r2\ndescription_file: about.md\n"), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: it has both `description` and `description_file`
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
    assert_snapshot!(task_refusal("description: Predict y from x.", "description_file: about.md"), @"
    error: failed to open file `[FOLDER]/shop/about.md`: No such file or directory (os error 2)
    hint: check the path and its permissions
    exit code: 2
    ");
}

#[test]
fn a_description_that_must_not_be_read() {
    let shop = Shop::new();
    edit(
        &shop.path().join("shop/task.yaml"),
        "description: Predict y from x.",
        "description_file: about.md",
    );
    shop.write("shop/about.md", "Predict y from x.");
    let about = shop.path().join("shop/about.md");
    fs_err::set_permissions(&about, std::fs::Permissions::from_mode(0o000)).unwrap();
    if fs_err::read(&about).is_ok() {
        crate::shop::skipped("this user can read every file");
        return;
    }
    let output = shop.run("").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_snapshot!(shop.plain(&String::from_utf8(output.stderr).unwrap()), @r"
    error: failed to open file `[FOLDER]/shop/about.md`: Permission denied (os error 13)
    hint: check the path and its permissions
    ");
}

#[test]
fn a_direction_that_contradicts_the_metric_or_is_unknown() {
    assert_snapshot!(task_refusal("r2\n", "r2\nmetric_direction: minimize\n"), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: `metric_direction: minimize` contradicts the metric: `r2` is to be maximized
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
    assert_snapshot!(run_refusal(&Shop::new(), &["--minimize"]), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: `metric_direction: minimize` contradicts the metric: `r2` is to be maximized
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
    assert_snapshot!(task_refusal(": r2", ": profit"), @"
    error: `[FOLDER]/shop/task.yaml` is not a usable task: missing field `metric_direction`
    hint: correct it; --metric, --minimize and --maximize take precedence over a task file
    exit code: 2
    ");
}

#[test]
fn data_that_is_not_there_or_empty() {
    let shop = Shop::new();
    let data = shop.path().join("shop/input");
    fs_err::remove_dir_all(&data).unwrap();
    assert_snapshot!(run_refusal(&shop, &[]), @"
    error: the data of the task cannot be used: data folder [FOLDER]/shop/input does not exist
    hint: `data_dir` must be a folder with at least one file
    exit code: 2
    ");
    fs_err::create_dir(&data).unwrap();
    assert_snapshot!(run_refusal(&shop, &[]), @"
    error: the data of the task cannot be used: data folder [FOLDER]/shop/input holds no files
    hint: `data_dir` must be a folder with at least one file
    exit code: 2
    ");
    fs_err::create_dir_all(data.join("images/train")).unwrap();
    assert_snapshot!(run_refusal(&shop, &[]), @"
    error: the data of the task cannot be used: data folder [FOLDER]/shop/input holds no files
    hint: `data_dir` must be a folder with at least one file
    exit code: 2
    ");
    fs_err::remove_dir_all(&data).unwrap();
    fs_err::write(&data, "x,y\n1,2\n").unwrap();
    assert_snapshot!(run_refusal(&shop, &[]), @"
    error: the data of the task cannot be used: [FOLDER]/shop/input is not a folder
    hint: `data_dir` must be a folder with at least one file
    exit code: 2
    ");
}

#[test]
fn settings_that_make_no_sense() {
    let shop = Shop::new();
    let set = |setting: &str| run_refusal(&shop, &["-s", setting]);
    assert_snapshot!(set("outer_loop_step=2"), @"
    error: unknown setting `outer_loop_step`; did you mean `outer_loop_steps`?
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(set("colour=2"), @"
    error: unknown setting `colour`
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(set("T=many"), @r#"
    error: invalid value for `T`: invalid type: string "many", expected a whole number
    hint: `mle-star run --help` lists the settings
    exit code: 2
    "#);
    assert_snapshot!(set("T=-1"), @"
    error: invalid value for `T`: invalid value: integer `-1`, expected a whole number
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(set("max_budget_usd=-1"), @"
    error: invalid value for `max_budget_usd`: must be a finite amount above 0
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(set("max_budget_usd=0"), @"
    error: invalid value for `max_budget_usd`: must be a finite amount above 0
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(set("M=0"), @"
    error: invalid value for `num_retrieved_models`: must be at least 1
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(set("T"), @"
    error: `T` is not of the form key=value
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
}

#[test]
fn environment_variables_that_make_no_sense() {
    let shop = Shop::new();
    let with = |name: &str, value: &str| refusal(&shop, shop.run("").env(name, value));
    assert_snapshot!(with("MLE_STAR_TIME_LIMIT", "soon"), @r#"
    error: invalid value in the environment variable `MLE_STAR_TIME_LIMIT`: invalid type: string "soon", expected a whole number
    hint: `mle-star run --help` lists the settings
    exit code: 2
    "#);
    assert_snapshot!(with("MLE_STAR_MAX_BUDGET", "-1"), @"
    error: invalid value in the environment variable `MLE_STAR_MAX_BUDGET`: must be a finite amount above 0
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
}

#[test]
fn a_settings_file_that_cannot_be_used() {
    let shop = Shop::new();
    let with = |text: &str| {
        shop.write("settings.yaml", text);
        run_refusal(&shop, &["--config", "settings.yaml"])
    };
    assert_snapshot!(run_refusal(&shop, &["--config", "settings.yaml"]), @"
    error: failed to open file `settings.yaml`: No such file or directory (os error 2)
    hint: check the path and its permissions
    exit code: 2
    ");
    assert_snapshot!(with("outer_loop_step: 2\n"), @"
    error: cannot use `settings.yaml`: unknown setting `outer_loop_step`; did you mean `outer_loop_steps`?
    hint: a file of settings has lines such as `outer_loop_steps: 2`
    exit code: 2
    ");
    assert_snapshot!(with("outer_loop_steps: many\n"), @r#"
    error: cannot use `settings.yaml`: invalid value for `outer_loop_steps`: invalid type: string "many", expected a whole number
    hint: a file of settings has lines such as `outer_loop_steps: 2`
    exit code: 2
    "#);
    assert_snapshot!(with("T: 0\n"), @"
    error: invalid value for `outer_loop_steps`: must be at least 1
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(with("- T: 2\n"), @"
    error: cannot use `settings.yaml`: expected mapping start at line 1, column 1
    hint: a file of settings has lines such as `outer_loop_steps: 2`
    exit code: 2
    ");
    assert_snapshot!(with("model: \"sonnet\n"), @"
    error: cannot use `settings.yaml`: invalid indentation in multiline quoted scalar at line 2, column 1
    hint: a file of settings has lines such as `outer_loop_steps: 2`
    exit code: 2
    ");
}

#[test]
fn a_reference_that_is_not_there() {
    let shop = Shop::new();
    assert_snapshot!(run_refusal(&shop, &["--reference", "forum.txt"]), @"
    error: failed to open file `forum.txt`: No such file or directory (os error 2)
    hint: check the path and its permissions
    exit code: 2
    ");
}

/// REQ-OR-046
#[test]
fn agents_that_cannot_be_had() {
    let shop = Shop::new();
    let with =
        |agents: &str| refusal(&shop, shop.command().args(["run", "shop", "--agents", agents]));
    assert_snapshot!(with("gpt"), @"
    error: unknown agents `gpt`
    hint: agents are claude, playbook, scripted:<file> or replay:<run>
    exit code: 2
    ");
    assert_snapshot!(with("scripted:"), @"
    error: unknown agents `scripted:`
    hint: agents are claude, playbook, scripted:<file> or replay:<run>
    exit code: 2
    ");
    assert_snapshot!(with("claude"), @"
    error: the environment variable `ANTHROPIC_API_KEY` is not set
    hint: set it, or use --agents playbook, which needs no key
    exit code: 2
    ");
    assert_snapshot!(with("playbook"), @"
    error: 2 training rows with a target are too few: at least 10 are needed
    hint: add training rows that have a target
    exit code: 2
    ");
    assert_snapshot!(with("scripted:nothing.yaml"), @"
    error: failed to open file `[FOLDER]/nothing.yaml`: No such file or directory (os error 2)
    hint: check the path and its permissions
    exit code: 2
    ");
    assert_snapshot!(with("replay:shop"), @"
    error: cannot replay `[FOLDER]/shop`: failed to open file `[FOLDER]/shop/journal.jsonl`: No such file or directory (os error 2)
    hint: replay:<run> is a run directory; `mle-star list` shows the runs
    exit code: 2
    ");
}

#[test]
fn scripted_replies_that_cannot_be_used() {
    let shop = Shop::new();
    let with = |text: &str| {
        shop.write("replies.yaml", text);
        run_refusal(&shop, &[])
    };
    let malformed = with("replies: [\n");
    assert!(malformed.starts_with("error: cannot use `[FOLDER]/replies.yaml`"), "{malformed}");
    let misspelt = with("replies:\n- {rol: coder, reply: x}\n");
    assert!(misspelt.contains("unknown field `rol`"), "{misspelt}");
    assert_snapshot!(with("replies:\n- {role: coder}\n"), @"
    error: rule 1 for role `coder` in `[FOLDER]/replies.yaml` needs either `reply` or `no_answer`
    hint: scripted:<file> is YAML: `replies:` with a `role` and a `reply` each
    exit code: 2
    ");
}

#[test]
fn a_python_that_is_not_there() {
    let shop = Shop::new();
    assert_snapshot!(run_refusal(&shop, &["--python", "./python9"]), @"
    error: this machine cannot run the scripts: no usable python interpreter: `./python9` could not be started: No such file or directory (os error 2)
    hint: install Python 3.10 or later (apt install python3 python3-venv), or use --python
    exit code: 1
    ");
}

#[test]
fn packages_that_are_not_installed() {
    assert_snapshot!(
        task_refusal("r2\n", "r2\npackages: [pip, no-such-package, other_one>=2]\n"),
        @"
    error: the task needs Python packages that are not installed: no-such-package, other_one>=2
    hint: [PYTHON] -m pip install no-such-package 'other_one>=2'
    exit code: 1
    "
    );
}

#[test]
fn prompts_that_replace_nothing() {
    let shop = Shop::new();
    let with = || run_refusal(&shop, &["-s", "prompts_dir=prompts"]);
    assert_snapshot!(with(), @"
    error: the prompts in `[FOLDER]/prompts` cannot be used: No such file or directory (os error 2)
    hint: `prompts_dir` is a folder of files that replace prompts of the same name
    exit code: 2
    ");
    shop.write("prompts/retreiver.md", "Find models.");
    assert_snapshot!(with(), @"
    error: the prompts in `[FOLDER]/prompts` cannot be used: `[FOLDER]/prompts/retreiver.md` replaces no prompt; the names are retriever.md, init.md, merger.md, ablation.md, summarize.md, extractor.md, coder.md, planner.md, ens_planner.md, ensembler.md, debugger.md, leakage_detection.md, leakage_correction.md, data.md, test.md, test_subsampling_extract.md, test_subsampling_remove.md, test_contamination.md
    hint: `prompts_dir` is a folder of files that replace prompts of the same name
    exit code: 2
    ");
    fs_err::remove_file(shop.path().join("prompts/retreiver.md")).unwrap();
    shop.write("prompts/summarize.md", "Sum up {raw_results}.");
    assert_snapshot!(with(), @"
    error: the prompts in `[FOLDER]/prompts` cannot be used: `[FOLDER]/prompts/summarize.md` uses `{raw_results}`, which this prompt does not have; did you mean `{raw_result}`?
    hint: `prompts_dir` is a folder of files that replace prompts of the same name
    exit code: 2
    ");
}

#[test]
fn a_folder_for_runs_that_cannot_be_made() {
    let shop = Shop::new();
    assert_snapshot!(run_refusal(&shop, &["--out", "replies.yaml/runs"]), @"
    error: failed to create directory `[FOLDER]/replies.yaml/runs`: Not a directory (os error 20)
    hint: check the path and its permissions
    exit code: 1
    ");
}

#[test]
fn a_run_that_is_none() {
    let shop = Shop::new();
    assert_snapshot!(refusal(&shop, shop.command().args(["resume", "shop"])), @"
    error: there is no run at `[FOLDER]/shop`
    hint: `mle-star list` shows the runs
    exit code: 2
    ");
    assert_snapshot!(refusal(&shop, shop.command().args(["show", "shop"])), @"
    error: there is no run at `shop`
    hint: `mle-star list` shows the runs
    exit code: 2
    ");
    assert_snapshot!(refusal(&shop, shop.command().arg("list")), @"
    error: there is no folder `runs`
    hint: name the folder that holds the run directories
    exit code: 2
    ");
    assert_snapshot!(refusal(&shop, shop.command().args(["list", "replies.yaml"])), @"
    error: there is no folder `replies.yaml`
    hint: name the folder that holds the run directories
    exit code: 2
    ");
}

#[test]
fn a_step_that_is_none() {
    let (shop, run) = finished();
    let with =
        |step: &str| refusal(&shop, shop.command().args(["show", run.as_str(), "--step", step]));
    assert_snapshot!(with("phase1/retreiver"), @"
    error: the run has no finished step `phase1/retreiver`
    hint: did you mean phase1/retriever?
    exit code: 2
    ");
    assert_snapshot!(with("9"), @"
    error: the run has no finished step `9`
    hint: `mle-star show <run>` lists the steps
    exit code: 2
    ");
}

#[test]
fn a_journal_that_somebody_broke() {
    let (shop, run) = finished();
    let intact = fs_err::read(run.join("journal.jsonl")).unwrap();

    edit_journal(&run, 4, |line| line.replacen('{', "{{", 1));
    assert_snapshot!(resume_refusal(&shop, &run), @"
    error: the run at `[FOLDER]/runs/[RUN]` cannot be opened: the journal of the run cannot be used: damaged record at [FOLDER]/runs/[RUN]/journal.jsonl:4: key must be a string at line 1 column 2
    hint: the line can be mended by hand, or it and all later ones removed
    exit code: 1
    ");
    assert_snapshot!(refusal(&shop, shop.command().args(["show", run.as_str()])), @"
    error: the run at `[FOLDER]/runs/[RUN]` cannot be opened: the journal of the run cannot be used: damaged record at [FOLDER]/runs/[RUN]/journal.jsonl:4: key must be a string at line 1 column 2
    hint: the line can be mended by hand, or it and all later ones removed
    exit code: 1
    ");

    fs_err::write(run.join("journal.jsonl"), "").unwrap();
    assert_snapshot!(resume_refusal(&shop, &run), @"
    error: the run at `[FOLDER]/runs/[RUN]` cannot be opened: the journal does not begin with the settings of its run
    hint: without its first line a run cannot go on; begin a new one
    exit code: 1
    ");

    fs_err::write(run.join("journal.jsonl"), &intact).unwrap();
    edit_journal(&run, 1, |line| line.replacen(r#""format":1"#, r#""format":999"#, 1));
    assert_snapshot!(resume_refusal(&shop, &run), @"
    error: the run at `[FOLDER]/runs/[RUN]` cannot be opened: the journal has format 999; this program reads format 1
    hint: use the version of mle-star that began the run
    exit code: 1
    ");

    let header = intact.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs_err::write(run.join("journal.jsonl"), &intact[header..]).unwrap();
    assert_snapshot!(resume_refusal(&shop, &run), @"
    error: the run at `[FOLDER]/runs/[RUN]` cannot be opened: the journal does not begin with the settings of its run
    hint: without its first line a run cannot go on; begin a new one
    exit code: 1
    ");

    fs_err::write(run.join("journal.jsonl"), &intact).unwrap();
    shop.command().args(["resume", run.as_str()]).assert().success();
    assert!(fs_err::read(run.join("journal.jsonl")).unwrap() == intact, "nothing was to be done");
}

#[test]
fn a_run_that_another_process_is_writing() {
    let shop = Shop::new();
    shop.close();
    let first = shop.start(&shop.run("M=1 T=1 K=1 L=1"), Stdio::piped());
    shop.wait_for_script();
    assert_snapshot!(resume_refusal(&shop, &shop.only_run()), @"
    error: the run at `[FOLDER]/runs/[RUN]` cannot be opened: the journal of the run cannot be used: `[FOLDER]/runs/[RUN]/journal.jsonl` is being written by another process
    hint: wait for the other process, or stop it: mle-star stop [FOLDER]/runs/[RUN]
    exit code: 1
    ");

    shop.open();
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert!(shop.only_run().join("final/submission.csv").is_file());
}

#[test]
fn data_that_is_not_what_the_run_began_with() {
    let (shop, run) = finished();
    shop.write("shop/input/train.csv", "id,x,y\n1,2,4\n2,3,4\n");
    shop.write("shop/input/more.csv", "id\n");
    assert_snapshot!(resume_refusal(&shop, &run), @"
    error: the data is not what the run began with: more.csv: new; train.csv: content changed
    hint: restore the data, or name its folder with --data
    exit code: 1
    ");
    fs_err::remove_dir_all(shop.path().join("shop/input")).unwrap();
    assert_snapshot!(resume_refusal(&shop, &run), @"
    error: the data of the task cannot be used: data folder [FOLDER]/shop/input does not exist
    hint: `data_dir` must be a folder with at least one file
    exit code: 2
    ");
}

#[test]
fn recorded_steps_that_no_longer_fit_are_redone_only_when_that_is_said() {
    let shop = Shop::new();
    let coder = "- role: coder\n    step";
    shop.write(
        "replies.yaml",
        &REPLIES.replace(coder, "- role: coder\n    cost_usd: 0.25\n    step"),
    );
    shop.write("prompts/summarize.md", "Sum up {raw_result}.");
    shop.run("M=2 T=1 K=2 L=1 prompts_dir=prompts").assert().success();
    let run = shop.only_run();
    let before = steps(&run);

    shop.write("prompts/summarize.md", "Sum up, in one sentence, {raw_result}.");
    assert_snapshot!(resume_refusal(&shop, &run), @"
    error: the run at `[FOLDER]/runs/[RUN]` cannot be opened: step `phase2/path-0/outer-0/summarize` was recorded with a different input; going on would redo 14 recorded steps ($0.50)
    hint: mle-star resume [FOLDER]/runs/[RUN] --rerun-changed
    exit code: 1
    ");

    // The new summary is the old one, so what follows from it is what it was.
    shop.command().args(["resume", run.as_str(), "--rerun-changed"]).assert().success();
    let after = steps(&run);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after[before.len()..], ["phase2/path-0/outer-0/summarize"]);
}
