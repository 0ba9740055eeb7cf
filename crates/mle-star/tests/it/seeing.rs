//! What is left to be looked at when a run has ended, and while it goes on.

use camino::Utf8Path;
use serde_json::Value;

use crate::shop::{REPLIES, Shop};

const SMALL: &str = "M=2 T=1 K=1 L=1 time_limit_seconds=600";

fn page(run: &Utf8Path) -> String {
    fs_err::read_to_string(run.join("report.html")).unwrap()
}

/// REQ-OR-037, REQ-OR-038, REQ-OR-039
#[test]
fn a_run_leaves_a_report_that_can_be_made_again_from_the_journal_alone() {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    let run = shop.only_run();
    let written = page(&run);
    assert!(written.contains("0.61") && written.contains(">finished<"), "{written}");
    let text = fs_err::read_to_string(run.join("report.md")).unwrap();
    assert!(text.contains("Where the submission comes from"), "{text}");

    let copied = shop.path().join("elsewhere");
    fs_err::create_dir_all(&copied).unwrap();
    fs_err::copy(run.join("journal.jsonl"), copied.join("journal.jsonl")).unwrap();
    shop.command().args(["report", copied.as_str()]).assert().success();
    assert!(page(&copied).contains("0.61"));
    let out = shop.path().join("one.md");
    shop.command().args(["report", run.as_str(), "--out", out.as_str()]).assert().success();
    assert_eq!(fs_err::read_to_string(out).unwrap(), text);
}

#[test]
fn a_run_that_failed_or_was_stopped_leaves_a_report_too() {
    let shop = Shop::new();
    shop.write("replies.yaml", &REPLIES.replace("role: coder", "role: nobody"));
    shop.run(SMALL).assert().code(1);
    assert!(page(&shop.only_run()).contains(">stopped<"));

    let shop = Shop::new();
    let broken = "replies:\n  - role: init\n    reply: |\n      ```python\n      raise ValueError('no')\n      ```\n  - role: debugger\n    reply: none\n";
    let others = REPLIES.split_once("replies:\n").unwrap().1;
    shop.write("replies.yaml", &format!("{broken}{others}"));
    shop.run(SMALL).assert().code(1);
    let page = page(&shop.only_run());
    assert!(page.contains(">failed<"), "{page}");
    assert!(page.contains("all 2 candidates produced execution errors"), "{page}");
}

#[test]
fn a_report_that_cannot_be_written_spoils_no_run() {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    let run = shop.only_run();
    fs_err::remove_file(run.join("report.html")).unwrap();
    fs_err::create_dir_all(run.join("report.html/full")).unwrap();
    shop.command().args(["resume", run.as_str()]).assert().success();
    shop.command().args(["report", run.as_str()]).assert().code(1);
    shop.command().args(["report", "nowhere"]).assert().code(2);
}

fn log(file: &Utf8Path) -> Vec<Value> {
    let text = fs_err::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn messages(log: &[Value]) -> Vec<&str> {
    log.iter().map(|line| line["message"].as_str().unwrap()).collect()
}

/// REQ-OR-047
#[test]
fn a_run_leaves_a_log_with_a_line_of_json_for_all_that_happened() {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    let run = shop.only_run();
    let lines = log(&run.join("log.jsonl"));
    for line in &lines {
        for field in ["time", "level", "target", "message", "fields"] {
            assert!(!line[field].is_null(), "{line}");
        }
        assert!(["INFO", "WARNING"].contains(&line["level"].as_str().unwrap()), "{line}");
        assert!(line["target"].as_str().unwrap().starts_with("mle_star"), "{line}");
    }
    let markers: Vec<&str> =
        messages(&lines).into_iter().filter(|it| it.starts_with("===")).collect();
    assert_eq!(
        markers,
        [
            "=== Phase 1: Initial Solution Generation ===",
            "=== Phase 2: Refinement ===",
            "=== Finalization ===",
        ]
    );
    // What the executor says, which is not on record, stands beside what the records say.
    assert!(messages(&lines).contains(&"execution started"));

    shop.command().args(["resume", run.as_str()]).assert().success();
    assert_eq!(log(&run.join("log.jsonl")), lines, "what is on record is not logged again");
}

/// REQ-OR-047
#[test]
fn at_the_level_of_debugging_prompts_and_responses_are_logged_to_the_file_that_is_set_too() {
    let shop = Shop::new();
    let file = shop.path().join("logs/all.jsonl");
    shop.write("logs/all.jsonl", "{\"kept\": true}\n");
    let settings = format!("{SMALL} log_level=DEBUG log_file={file}");
    shop.run(&settings).assert().success();
    let lines = log(&shop.only_run().join("log.jsonl"));
    let of = |message: &str| lines.iter().filter(|it| it["message"] == message).count();
    assert_eq!((of("prompt"), of("response")), (20, 20));
    let prompt = lines.iter().find(|it| it["message"] == "prompt").unwrap();
    assert!(prompt["fields"]["prompt"].as_str().unwrap().contains("task_description"), "{prompt}");
    let text = fs_err::read_to_string(&file).unwrap();
    assert!(text.starts_with("{\"kept\": true}\n"), "appended");
    assert_eq!(text.lines().count(), lines.len() + 1);
}

/// REQ-OR-047
#[test]
fn lines_on_standard_error_tell_time_level_and_logger_and_follow_the_level() {
    let shop = Shop::new();
    let output = shop.run(SMALL).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let shape = regex_lite::Regex::new(
        r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ INFO mle_star: === Phase 2: Refinement ===$",
    );
    assert!(shape.unwrap().is_match(&text), "{text}");

    let shop = Shop::new();
    let output = shop.run(SMALL).env("MLE_STAR_LOG_LEVEL", "WARNING").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains(" INFO "), "{text}");
    assert!(log(&shop.only_run().join("log.jsonl")).is_empty());
}

#[test]
fn a_log_that_cannot_be_written_spoils_no_run() {
    for file in ["/dev/full", "/proc/nowhere/log.jsonl"] {
        let shop = Shop::new();
        let output = shop.run(&format!("{SMALL} log_file={file}")).output().unwrap();
        assert!(output.status.success(), "{file}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.contains("warning: no log: "), file.starts_with("/proc"), "{text}");
    }
}

#[test]
fn why_a_run_has_no_result_is_in_its_log() {
    let shop = Shop::new();
    shop.write("replies.yaml", &REPLIES.replace("role: coder", "role: nobody"));
    shop.run(SMALL).assert().code(1);
    let lines = log(&shop.only_run().join("log.jsonl"));
    let last = lines.last().unwrap();
    assert_eq!(last["level"], "ERROR");
    assert!(last["fields"]["error"].as_str().unwrap().contains("no scripted reply"), "{last}");
}
