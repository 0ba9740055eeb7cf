//! Looking into a finished run, taking its solution out, and tidying up after it.

use std::process::Command;

use camino::Utf8Path;

use crate::shop::Shop;

const SMALL: &str = "M=2 T=1 K=1 L=1 time_limit_seconds=600";

/// A shop with a finished run under a name that does not change.
fn finished() -> Shop {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    fs_err::rename(shop.only_run(), shop.path().join("runs/first")).unwrap();
    shop
}

fn stdout(shop: &Shop, arguments: &[&str]) -> String {
    let output = shop.command().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn diff_shows_what_one_solution_changed_in_another() {
    let shop = finished();
    let alone = stdout(&shop, &["diff", "runs/first", "outer-0/inner-0"]);
    insta::assert_snapshot!(alone, @r#"
    --- phase1/merge-1 (e6c2abc1636d780d.py)
    +++ phase2/path-0/outer-0/inner-0 (4109c6df2398ba13.py)
    @@ -1,3 +1,3 @@
    -gain = 0.0
    +gain = 0.010
     score = 0.6 + gain
     print(f"Final Validation Performance: {score}")
    "#);
    let named = ["diff", "runs/first", "initial", "phase2/path-0/outer-0/inner-0"];
    assert_eq!(stdout(&shop, &named), alone);
    assert_eq!(stdout(&shop, &["diff", "runs/first", "best", "best"]), "");

    let unknown = shop.command().args(["diff", "runs/first", "phase1/merge-9"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(unknown.stderr).unwrap(), @"
    error: the run has no solution `phase1/merge-9`
    hint: did you mean phase1/merge-1?
    ");
    let orphan = shop.command().args(["diff", "runs/first", "candidate-0"]).output().unwrap();
    insta::assert_snapshot!(String::from_utf8(orphan.stderr).unwrap(), @"
    error: `candidate-0` was not made from another solution
    hint: name the one to compare it with
    ");
}

/// Runs `program` where a solution expects to be run, and gives the submission it wrote.
fn submission_of(shop: &Shop, name: &str, program: &[&str]) -> String {
    let folder = shop.path().join(name);
    fs_err::create_dir_all(folder.join("final")).unwrap();
    fs_err::os::unix::fs::symlink(shop.path().join("shop/input"), folder.join("input")).unwrap();
    let ran = Command::new("python3").args(program).current_dir(&folder).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    fs_err::read_to_string(folder.join("final/submission.csv")).unwrap()
}

#[test]
fn what_is_exported_writes_the_same_submission_without_us() {
    let shop = finished();
    let out = shop.path().join("out");
    let printed = stdout(&shop, &["export", "runs/first", "--out", out.as_str()]);
    let files: Vec<&str> =
        printed.lines().filter_map(|line| Utf8Path::new(line).file_name()).collect();
    assert_eq!(files, ["solution.py", "solution.ipynb", "requirements.txt", "submission.csv"]);
    let expected = fs_err::read_to_string(out.join("submission.csv")).unwrap();
    let script = out.join("solution.py");
    assert_eq!(submission_of(&shop, "script", &[script.as_str()]), expected);

    let run_cells = "import json, sys\nspace = {}\n\
         for cell in json.load(open(sys.argv[1]))['cells']:\n    \
         if cell['cell_type'] == 'code': exec(''.join(cell['source']), space)\n";
    let notebook = out.join("solution.ipynb");
    let written = submission_of(&shop, "notebook", &["-c", run_cells, notebook.as_str()]);
    assert_eq!(written, expected);
}

#[test]
fn what_is_exported_of_a_run_that_was_stopped_has_the_score_of_what_is_submitted() {
    let shop = finished();
    let journal = fs_err::read_to_string(shop.path().join("runs/first/journal.jsonl")).unwrap();
    // Phase 2 has found something better by then, which was not submitted yet.
    let is_before = |line: &&str| !line.contains("\"key\":\"finalization\"");
    let stopped: String = journal.split_inclusive('\n').take_while(is_before).collect();
    shop.write("runs/first/journal.jsonl", &stopped);
    stdout(&shop, &["export", "runs/first", "--out", "out"]);
    let notebook = fs_err::read_to_string(shop.path().join("out/solution.ipynb")).unwrap();
    assert!(notebook.contains("r2 (higher is better): 0.6. The data"), "{notebook}");
    assert!(stdout(&shop, &["show", "runs/first"]).contains("best 0.61 "));
}

#[test]
fn clean_says_what_it_would_remove_and_removes_it_when_told() {
    let shop = finished();
    let run = shop.path().join("runs/first");
    let running = shop.path().join("runs/broken");
    fs_err::create_dir_all(running.join("work/path-0")).unwrap();
    fs_err::write(running.join("journal.jsonl"), "{\n").unwrap();

    let would = stdout(&shop, &["clean"]);
    assert!(would.contains("runs/first/work") && would.ends_with("would be removed with --yes\n"));
    assert!(!would.contains("broken"), "what cannot be read is left alone");
    assert!(run.join("work").is_dir());
    stdout(&shop, &["clean", "runs/first", "--yes"]);
    let mut left: Vec<String> =
        run.read_dir_utf8().unwrap().map(|entry| entry.unwrap().file_name().to_owned()).collect();
    left.sort();
    assert_eq!(
        left,
        [
            "config.yaml",
            "final",
            "journal.jsonl",
            "log.jsonl",
            "report.html",
            "report.md",
            "result.json",
            "solutions",
            "task.yaml"
        ]
    );
    assert!(running.join("work/path-0").is_dir());
    assert!(shop.path().join("shop/input/train.csv").is_file(), "data is never ours to remove");
    assert_eq!(stdout(&shop, &["clean"]), "nothing to remove\n");
    stdout(&shop, &["resume", "runs/first"]);
}

#[test]
fn shells_can_complete_and_there_is_a_manual() {
    let shop = Shop::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&shop, &["completions", shell]);
        assert!(script.contains("resume") && script.contains("mle-star"), "{shell}");
    }
    let bash = stdout(&shop, &["completions", "bash"]);
    let checked = Command::new("bash").args(["-n", "-c", &bash]).status().unwrap();
    assert!(checked.success());
    assert!(stdout(&shop, &["man"]).starts_with(".ie"));
    assert!(stdout(&shop, &["man", "run"]).contains("require\\-sandbox"));
    shop.command().args(["man", "fly"]).assert().code(2);
}
