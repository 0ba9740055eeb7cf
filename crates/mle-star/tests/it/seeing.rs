//! What is left to be looked at when a run has ended, and while it goes on.

use camino::Utf8Path;

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
    assert!(text.contains("Where the solution comes from"), "{text}");

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
