//! `mle-star bench`: many tasks, graded by a program.

use crate::shop::Shop;

/// Grades a submission by its number of lines, with nothing but the standard library.
const GRADER: &str = r#"
import json, pathlib, sys
task, submission = sys.argv[1:]
lines = pathlib.Path(submission).read_text().splitlines()
print(json.dumps({"task": task, "valid": True, "score": len(lines) / 10, "medal": "bronze"}))
"#;

/// Two tasks that are alike but for their names, and what is known of one of them.
fn collection() -> Shop {
    let shop = Shop::new();
    for task in ["doors", "windows"] {
        for file in ["task.yaml", "input/train.csv", "input/test.csv"] {
            let text = fs_err::read_to_string(shop.path().join("shop").join(file)).unwrap();
            shop.write(&format!("all/{task}/{file}"), &text);
        }
    }
    shop.write("all/grade.py", GRADER);
    shop.write("all/answers/doors.json", r#"{"baseline": {"model": 0.1, "bootstrap_se": 0.01}}"#);
    shop
}

fn bench(shop: &Shop, arguments: &[&str]) -> (i32, String, String) {
    let settings = ["-s", "M=1", "-s", "T=1", "-s", "K=1", "-s", "L=1"];
    let mut command = shop.command();
    command.args(["bench", "all", "--agents", "scripted:replies.yaml"]);
    let output = command.args(settings).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| shop.plain(&String::from_utf8(bytes).unwrap());
    let seconds = regex_lite::Regex::new(r"after \d+ s|\| \d+ \|\n").unwrap();
    let stdout = seconds.replace_all(&text(output.stdout), "| [SECONDS] |\n").into_owned();
    let stderr = seconds.replace_all(&text(output.stderr), "after [SECONDS]").into_owned();
    (output.status.code().unwrap(), stdout, stderr)
}

#[test]
fn every_task_is_run_once_for_each_seed_and_graded_in_the_end() {
    let shop = collection();
    let (code, table, said) = bench(&shop, &["--seeds", "2"]);
    assert_eq!(code, 0, "{said}");
    insta::assert_snapshot!(said, @"
    doors, seed 0: [FOLDER]/bench/doors/seed-0/[RUN]
    doors, seed 0: validation score 0.5 after [SECONDS]
    windows, seed 0: [FOLDER]/bench/windows/seed-0/[RUN]
    windows, seed 0: validation score 0.5 after [SECONDS]
    doors, seed 1: [FOLDER]/bench/doors/seed-1/[RUN]
    doors, seed 1: validation score 0.5 after [SECONDS]
    windows, seed 1: [FOLDER]/bench/windows/seed-1/[RUN]
    windows, seed 1: validation score 0.5 after [SECONDS]
    ");
    insta::assert_snapshot!(table, @"
    | task | | constant | baseline | AutoGluon | ours | validation | medal | seconds |
    | --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |
    | doors | ↑ | – | 0.1000 | – | 0.2000 | 0.5000 | bronze, bronze | [SECONDS] |
    | windows | ↑ | – | – | – | 0.2000 | 0.5000 | bronze, bronze | [SECONDS] |

    Valid submissions: 4 of 4. Better than the baseline on 1 of 2 tasks, not worse by more than its standard error on 1. Better than AutoGluon on 0 of 2.

    | task | initial | refined | ensemble |
    | --- | ---: | ---: | ---: |
    | doors | 0.5000 | 0.5000 | – |
    | windows | 0.5000 | 0.5000 | – |
    ");

    // Nothing is run again; what was broken off goes on.
    let broken_off = shop.path().join("bench/doors/seed-1");
    let run = broken_off.read_dir_utf8().unwrap().next().unwrap().unwrap().into_path();
    fs_err::remove_file(run.join("result.json")).unwrap();
    let (code, again, said) = bench(&shop, &["--seeds", "2"]);
    assert_eq!((code, again), (0, table), "{said}");
    assert_eq!(said.matches("validation score").count(), 1, "{said}");
}

#[test]
fn a_task_that_cannot_be_run_does_not_keep_the_others_from_it() {
    let shop = collection();
    shop.write("all/doors/task.yaml", "competition_id: doors\n");
    let (code, table, said) = bench(&shop, &[]);
    assert_eq!(code, 1, "{said}");
    assert!(table.contains("| windows |") && !table.contains("| doors |"), "{table}");
    assert!(said.contains("doors, seed 0:\nerror: "), "{said}");
}

#[test]
fn a_task_that_is_not_there_is_refused_by_name() {
    let shop = collection();
    let (code, _, said) = bench(&shop, &["--task", "roofs"]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(said, @"
    error: there is no task `roofs` in `all`
    hint: there are: doors, windows
    ");
}
