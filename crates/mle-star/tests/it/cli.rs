//! What people see on the command line.

use std::collections::BTreeSet;
use std::process::{Output, Stdio};

use assert_cmd::Command;
use camino::Utf8Path;
use insta::assert_snapshot;
use mle_star_search::event::Record;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::shop::{REPLIES, Shop, records, steps};

/// One path and one script at a time, so that the order of the lines is always the same.
const SMALL: &str = "M=2 T=1 K=1 L=1";

/// What a command prints when it succeeds, with what it says while it works before it.
fn output(shop: &Shop, command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(status.success(), "{stdout}{stderr}");
    shop.plain(&format!("{stderr}--- standard output\n{stdout}"))
}

/// What a command prints when it succeeds and has nothing to say.
fn stdout(shop: &Shop, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = shop.command().args(arguments).output().unwrap();
    assert!(status.success() && stderr.is_empty(), "{}", text(stderr));
    shop.plain(&text(stdout))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// A shop with a finished run under a name that does not change.
fn finished() -> Shop {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    fs_err::rename(shop.only_run(), shop.path().join("runs/first")).unwrap();
    shop
}

/// Puts a copy of the journal of `runs/first`, with `change` made to it, at `runs/NAME`.
fn copy(shop: &Shop, name: &str, change: impl Fn(&str) -> String) {
    let journal = fs_err::read_to_string(shop.path().join("runs/first/journal.jsonl")).unwrap();
    shop.write(&format!("runs/{name}/journal.jsonl"), &change(&journal));
}

#[test]
fn a_run_says_what_it_finds_and_prints_where_the_result_is() {
    let shop = Shop::new();
    assert_snapshot!(output(&shop, &mut shop.run(SMALL)), @"
    run directory: [FOLDER]/runs/[RUN]
    task shop · r2 (higher is better) · agents: scripted:[FOLDER]/replies.yaml
    [SANDBOX]
    === Phase 1: Initial Solution Generation ===
    phase1 found a, b
    phase1/candidate-0 score 0.5
    phase1/candidate-1 score 0.51
    phase1/merge-1 accepted · 0.51 -> 0.6
    phase1/early_submission ran
    phase1/early_submission wrote the submission · rows: 1
    phase1/early_submission final/submission.csv is that of the merged solution · 0.6
    phase1 ended · best 0.6
    === Phase 2: Refinement ===
    phase2/path-0/outer-0/study ran
    phase2/path-0/outer-0/inner-0 accepted · 0.61 (best 0.61) · raise the gain
    path 0 ended · best 0.61
    phase2 ended · best 0.61
    Phase 3: Ensemble is not needed
    === Finalization ===
    finalization takes the refined solution · 0.61
    finalization ran
    finalization wrote the submission · rows: 1
    finalization final/submission.csv is that of the refined solution · 0.61
    finalization ended · best 0.61
    [TIMES] · cost $0.03
    --- standard output
    scores: initial 0.6, refined 0.61
    validation score: 0.61
    submission: [FOLDER]/runs/[RUN]/final/submission.csv
    result: [FOLDER]/runs/[RUN]/result.json
    report: [FOLDER]/runs/[RUN]/report.html
    ");
}

#[test]
fn a_quiet_run_prints_only_the_outcome() {
    let shop = Shop::new();
    assert_snapshot!(output(&shop, shop.run(SMALL).arg("--quiet")), @"
    --- standard output
    scores: initial 0.6, refined 0.61
    validation score: 0.61
    submission: [FOLDER]/runs/[RUN]/final/submission.csv
    result: [FOLDER]/runs/[RUN]/result.json
    report: [FOLDER]/runs/[RUN]/report.html
    ");
}

#[test]
fn a_verbose_run_says_every_step() {
    let shop = Shop::new();
    let said = output(&shop, shop.run(SMALL).arg("--verbose"));
    for step in steps(&shop.only_run()) {
        let shown = said.lines().any(|line| line.starts_with(&format!("{step} ")));
        assert!(shown || step == "totals", "{step} is not in\n{said}");
    }
    let run: Vec<&str> = said.lines().filter(|line| line.contains("/merge-1")).collect();
    assert_snapshot!(run.join("\n"), @"
    phase1/merge-1/merger answered
    phase1/merge-1/leakage answered
    phase1/merge-1/attempt-0/run ended after [TIME]
    phase1/merge-1 score 0.6
    phase1/merge-1 accepted · 0.51 -> 0.6
    ");
}

#[test]
fn json_is_the_journal_line_by_line() {
    let shop = Shop::new();
    let printed = shop.run(SMALL).arg("--json").output().unwrap();
    assert!(printed.status.success());
    let run = shop.only_run();
    assert_eq!(text(printed.stdout), fs_err::read_to_string(run.join("journal.jsonl")).unwrap());
    assert_eq!(
        text(printed.stderr),
        format!("run directory: {run}\n"),
        "what is for people goes elsewhere"
    );

    let again = shop.command().args(["resume", run.as_str(), "--json"]).output().unwrap();
    let again: Vec<Record> =
        text(again.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(again, records(&run));
}

#[test]
fn a_run_that_cannot_go_on_says_why_and_how_to_resume_it() {
    let shop = Shop::new();
    shop.write("replies.yaml", &REPLIES.replace("role: coder", "role: nobody"));
    let failed = shop.run(SMALL).args(["--quiet"]).output().unwrap();
    assert_eq!((failed.status.code(), text(failed.stdout).as_str()), (Some(1), ""));
    assert_snapshot!(shop.plain(&text(failed.stderr)), @"
    error: the run at `[FOLDER]/runs/[RUN]` has no result: the run was stopped: could not ask the agent at step `phase2/path-0/outer-0/inner-0/coder`: no scripted reply for role `coder` at step `phase2/path-0/outer-0/inner-0/coder`
    hint: when that is mended: mle-star resume [FOLDER]/runs/[RUN]
    ");

    shop.write("replies.yaml", REPLIES);
    let run = shop.only_run();
    let before = steps(&run);
    shop.command().args(["resume", run.as_str()]).assert().success();
    assert_eq!(steps(&run)[..before.len()], before[..]);

    let shop = Shop::new();
    shop.write("replies.yaml", &REPLIES.replace("score = 0.5$candidate", "raise ValueError(1)"));
    let debugger = "replies:\n  - {role: debugger, no_answer: refused}\n";
    let replies = fs_err::read_to_string(shop.path().join("replies.yaml")).unwrap();
    shop.write("replies.yaml", &replies.replace("replies:\n", debugger));
    let failed = shop.run(SMALL).args(["--quiet"]).output().unwrap();
    assert_eq!((failed.status.code(), text(failed.stdout).as_str()), (Some(1), ""));
    assert_snapshot!(shop.plain(&text(failed.stderr)), @"
    error: the run at `[FOLDER]/runs/[RUN]` has no result: no initial solution was found: Phase 1 failed: all 2 candidates produced execution errors
    hint: mle-star show [FOLDER]/runs/[RUN]
    ");
}

#[test]
fn show_says_what_happened() {
    let shop = finished();
    let run = stdout(&shop, &["show", "runs/first"]);
    let ends = run.lines().take(10).chain(["..."]).chain(run.lines().skip(run.lines().count() - 6));
    assert_snapshot!(ends.collect::<Vec<_>>().join("\n"), @"
    task shop · r2 (higher is better) · agents: scripted:[FOLDER]/replies.yaml
    [SANDBOX]
    === Phase 1: Initial Solution Generation ===
    phase1/retriever answered · $0.01
    phase1 found a, b
    phase1/candidate-0/init answered · $0.01
    phase1/candidate-0/leakage answered
    phase1/candidate-1/init answered · $0.01
    phase1/candidate-1/leakage answered
    phase1/candidate-0/attempt-0/run ended after [TIME]
    ...
    finalization final/submission.csv is that of the refined solution · 0.61
    finalization ended · best 0.61
    [TIMES] · cost $0.03

    finished · best 0.61 · 20 agent calls · 7 scripts · 0 warnings
    submission: runs/first/final/submission.csv
    ");
    let json = shop.command().args(["show", "runs/first", "--json"]).output().unwrap().stdout;
    let mut whole: serde_json::Map<String, Value> = serde_json::from_slice(&json).unwrap();
    let parts: Vec<String> = whole.keys().skip(15).cloned().collect();
    whole.retain(|key, _| !parts.contains(key) && key != "elapsed_seconds");
    assert_snapshot!(shop.plain(&serde_json::to_string_pretty(&whole).unwrap()), @r#"
    {
      "competition_id": "shop",
      "metric": "r2 (higher is better)",
      "agents": "scripted:[FOLDER]/replies.yaml",
      "state": "finished",
      "phase": "finalization",
      "began": "[MOMENT]",
      "last": "[MOMENT]",
      "agent_calls": 20,
      "scripts": 7,
      "cost_usd": 0.03,
      "best": 0.61,
      "selected": 0.61,
      "resumes": 0,
      "warnings": 0
    }
    "#);
    assert_snapshot!(parts.join(" "), @"subject budget costs durations phases lanes open_steps solutions submission ablations troubles lineage events");
}

#[test]
fn show_step_says_what_a_step_gave() {
    let shop = finished();
    let step = |key: &str| stdout(&shop, &["show", "runs/first", "--step", key]);
    assert_snapshot!(step("phase1/merge-1/merger"), @r#"
    ```python
    gain = 0.0
    score = 0.6 + gain
    print(f"Final Validation Performance: {score}")
    ```
    "#);
    assert_snapshot!(step("phase1/merge-1/attempt-0/run"), @"
    script: solutions/e6c2abc1636d780d.py
    ended with exit code 0 after [TIME]; [SANDBOX]

    Final Validation Performance: 0.6
    ");
    assert_snapshot!(step("totals"), @"
    running time: [TIME]
    cost: $0.03
    ");

    let json = stdout(&shop, &["show", "runs/first", "--step", "phase1/merge-1/merger", "--json"]);
    let record: Record =
        serde_json::from_str(&json.replace("[MOMENT]", "2020-01-01T00:00:00Z")).unwrap();
    assert_eq!(record.finished().unwrap().0.as_str(), "phase1/merge-1/merger");
}

#[test]
fn list_shows_every_run_whatever_became_of_it() {
    let shop = finished();
    copy(&shop, "stopped", |journal| {
        let lines = journal.split_inclusive('\n');
        let phase1 = lines.take_while(|line| !line.contains(r#""key":"phase2"#));
        phase1.collect()
    });
    copy(&shop, "torn", |journal| format!("{journal}{{\"record\":\"star"));
    copy(&shop, "damaged", |journal| journal.replacen("{\"record\":\"started\"", "{{", 1));
    copy(&shop, "empty", |_| String::new());
    shop.write("runs/notes.txt", "no run");
    shop.write("runs/other/notes.txt", "no run");
    assert_snapshot!(stdout(&shop, &["list"]), @"
    run      state               best  calls  scripts      cost
    damaged  damaged                -      0        0         -
    empty    empty                  -      0        0         -
    first    finished            0.61     20        7     $0.03
    stopped  stopped              0.6     12        4     $0.03
    torn     finished            0.61     20        7     $0.03
    ");

    let listed: Vec<Value> = serde_json::from_str(&stdout(&shop, &["list", "--json"])).unwrap();
    let brief: Vec<String> = listed
        .iter()
        .map(|run| format!("{} {} {}", run["name"], run["state"], run["overview"]["best"]))
        .collect();
    assert_snapshot!(brief.join("\n"), @r#"
    "damaged" "damaged" null
    "empty" "empty" null
    "first" "finished" 0.61
    "stopped" "stopped" 0.6
    "torn" "finished" 0.61
    "#);
    assert_snapshot!(listed[0]["error"].as_str().unwrap(), @"damaged record at runs/damaged/journal.jsonl:3: key must be a string at line 1 column 2");
    let keys = listed.iter().map(|run| run.as_object().unwrap().len());
    assert_eq!(
        keys.collect::<BTreeSet<_>>(),
        BTreeSet::from([3, 4]),
        "only a damaged one has more"
    );

    // Looking mends nothing.
    let torn = fs_err::read_to_string(shop.path().join("runs/torn/journal.jsonl")).unwrap();
    assert!(torn.ends_with("{\"record\":\"star"));
    let shown = |run: &str| stdout(&shop, &["show", run, "--json"]);
    assert_eq!(shown("runs/torn"), shown("runs/first"));
    assert_snapshot!(stdout(&shop, &["show", "runs/stopped"]).lines().last().unwrap(), @"stopped · best 0.6 · 12 agent calls · 4 scripts · 0 warnings");
}

#[test]
fn a_folder_without_runs_has_none() {
    let shop = Shop::new();
    assert_snapshot!(stdout(&shop, &["list", "shop"]), @"no runs");
    assert_eq!(stdout(&shop, &["list", "shop", "--json"]), "[]\n");
}

#[test]
fn a_run_that_is_running_is_listed_as_such() {
    let shop = Shop::new();
    shop.close();
    let run = shop.start(&shop.run(SMALL), Stdio::piped());
    shop.wait_for_script();
    assert!(stdout(&shop, &["list"]).lines().any(|line| line.starts_with("[RUN]  running ")));
    shop.open();
    assert!(run.wait_with_output().unwrap().status.success());
    assert!(stdout(&shop, &["list"]).lines().any(|line| line.starts_with("[RUN]  finished ")));
}

/// Escape sequences, a bell, the one-byte introducer of sequences, and a turn of direction.
#[test]
fn what_agents_and_scripts_write_cannot_command_the_terminal() {
    let hostile = r"\u001b[2J\u0007\u009b31m\u202e";
    let in_json = REPLIES
        .replace("raise the gain", &format!("raise {hostile} the gain"))
        .replace(r#""model_name": "a""#, &format!(r#""model_name": "a{hostile}""#))
        .replace(
            "gain = 0.01$inner",
            &format!("print('{hostile}'); raise ValueError('{hostile}')"),
        );
    let debugger = format!("replies:\n  - {{role: debugger, no_answer: \"{hostile}\"}}\n");
    let shop = Shop::new();
    shop.write("replies.yaml", &in_json.replace("replies:\n", &debugger));

    let mut shown = Vec::new();
    let mut show = |command: &mut Command| {
        // Colours are forced, because without a terminal all sequences would be stripped anyway.
        let output = command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").output().unwrap();
        assert!(output.status.success(), "{}", text(output.stderr));
        shown.push(text(output.stdout) + &text(output.stderr));
    };
    show(shop.run(SMALL).arg("--verbose"));
    let run = shop.only_run();
    show(shop.command().args(["show", run.as_str()]));
    show(shop.command().args(["show", run.as_str(), "--json"]));
    show(shop.command().arg("list"));
    for step in steps(&run) {
        show(shop.command().args(["show", run.as_str(), "--step", &step]));
    }
    let journal = fs_err::read_to_string(run.join("journal.jsonl")).unwrap();
    assert!(journal.contains('\u{9b}'), "the journal has it all");
    assert!(shown.iter().any(|it| it.contains("ValueError")) && shown[0].contains("[2J"));
    for text in shown {
        let obeyed = |it: char| it.is_control() && !"\n\t".contains(it) || it == '\u{202e}';
        assert!(!text.contains(obeyed), "{text:?}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_neither_the_run_nor_in_an_error() {
    let shop = Shop::new();
    let closed = |command: &Command| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = shop.start(command, writer).wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", text(ended.stderr));
        text(ended.stderr)
    };
    closed(shop.run(SMALL).arg("--json"));
    let run = shop.only_run();
    assert!(run.join("final/submission.csv").is_file() && run.join("result.json").is_file());

    for arguments in [&["list"][..], &["list", "--json"], &["show", run.as_str()]] {
        assert_eq!(closed(shop.command().args(arguments)), "");
    }
}

/// Interrupts a run while a script runs, and resumes it with the command that it printed.
fn interrupted_and_resumed(signal: Signal) {
    let shop = Shop::new();
    shop.close();
    let child = shop.start(&shop.run(SMALL), Stdio::piped());
    let process = Pid::from_child(&child);
    shop.wait_for_script();
    let run = shop.only_run();
    kill_process(process, signal).unwrap();
    let ended = child.wait_with_output().unwrap();

    let code = if signal == Signal::TERM { 143 } else { 130 };
    assert_eq!((ended.status.code(), text(ended.stdout).as_str()), (Some(code), ""));
    let said = text(ended.stderr);
    let command = said.lines().last().unwrap().strip_prefix("interrupted; go on with: mle-star ");
    assert_eq!(command.unwrap(), format!("resume {run}"), "{said}");
    shop.wait_for_the_end_of_scripts();
    let before = steps(&run);
    assert!(before.contains(&"phase1/candidate-1/init".to_owned()), "{before:?}");

    shop.open();
    shop.command().args(command.unwrap().split(' ')).assert().success();
    let after = steps(&run);
    assert!(after.starts_with(&before), "what was finished is as it was: {after:?}");
    assert_eq!(after.iter().collect::<BTreeSet<_>>().len(), after.len(), "nothing was done twice");
    assert_eq!(after.last().unwrap(), "totals");
    assert_eq!(
        started_twice(&run),
        BTreeSet::from(
            ["phase1/candidate-0/attempt-0/run", "phase1/candidate-1/attempt-0/run"]
                .map(str::to_owned)
        ),
        "only what was under way was begun again"
    );
}

/// The steps that began more than once.
fn started_twice(run: &Utf8Path) -> BTreeSet<String> {
    let mut once = BTreeSet::new();
    let started = records(run).into_iter().filter_map(|record| match record {
        Record::Started { key, .. } => Some(key.to_string()),
        Record::Opened { .. }
        | Record::Resumed { .. }
        | Record::Settings { .. }
        | Record::Decided { .. }
        | Record::Abandoned { .. }
        | Record::Finished { .. }
        | Record::Happened { .. } => None,
    });
    started.filter(|key| !once.insert(key.clone())).collect()
}

#[test]
fn control_c_stops_a_run_so_that_it_can_be_resumed() {
    interrupted_and_resumed(Signal::INT);
}

#[test]
fn a_request_to_terminate_stops_a_run_so_that_it_can_be_resumed() {
    interrupted_and_resumed(Signal::TERM);
}

/// The flag wins over the file, the file over the environment, the environment over the preset,
/// and the preset over the defaults. All of them end up in `config.yaml`.
#[test]
fn settings_come_from_five_places_and_the_nearest_wins() {
    let shop = Shop::new();
    shop.write("settings.yaml", "num_retrieved_models: 1\nK: 1\nmodel: file\nlog_level: ERROR\n");
    let mut command = shop.run("model=flag");
    command.args(["--preset", "fast", "--config", "settings.yaml"]);
    command.env("MLE_STAR_OUTER_LOOP_STEPS", "2").env("MLE_STAR_NUM_RETRIEVED_MODELS", "3");
    command.env("MLE_STAR_MODEL", "environment").env("MLE_STAR_LOG_LEVEL", "DEBUG");
    command.env("MLE_STAR_TIME_LIMIT", "900").env("MLE_STAR_SOMETHING_ELSE", "1");
    command.assert().success();
    let config = fs_err::read_to_string(shop.only_run().join("config.yaml")).unwrap();
    assert_snapshot!(config, @"
    num_retrieved_models: 1
    outer_loop_steps: 2
    inner_loop_steps: 1
    num_parallel_solutions: 1
    ensemble_rounds: 1
    time_limit_seconds: 900
    subsample_limit: 30000
    max_debug_attempts: 3
    max_budget_usd: null
    model: flag
    agent_models: {}
    claude_path: null
    permission_mode: bypassPermissions
    denied_commands: []
    log_level: ERROR
    log_file: null
    phase_time_budget:
      phase1: 0.1
      phase2: 0.65
      phase3: 0.15
      finalization: 0.1
    script_timeout_seconds: null
    script_memory_limit: null
    script_process_limit: null
    script_output_limit: null
    script_workspace_limit: null
    script_file_limit: null
    max_concurrent_sessions: 4
    tool_profile: minimal
    session: call
    web_search: auto
    strict_paper_selection: false
    early_submission: true
    prompts_dir: null
    seed: 0
    ");

    // What a run settled is a file of settings for another.
    let settled = shop.only_run().join("config.yaml");
    let mut command = shop.run("");
    command.args(["--config", settled.as_str(), "--out", "again"]).assert().success();
    let again = shop.path().join("again").read_dir_utf8().unwrap().next().unwrap().unwrap();
    assert_eq!(fs_err::read_to_string(again.path().join("config.yaml")).unwrap(), config);
}

#[test]
fn a_later_setting_wins_over_an_earlier_one() {
    let shop = Shop::new();
    shop.run("M=9 T=1 K=1 L=1 num_retrieved_models=1").assert().success();
    let config = fs_err::read_to_string(shop.only_run().join("config.yaml")).unwrap();
    assert!(config.starts_with("num_retrieved_models: 1\n"), "{config}");
}

/// A secret of the environment that a person pasted into a task is not written down, nor shown in
/// an error.
#[test]
fn a_secret_in_a_task_or_an_error_is_masked() {
    let shop = Shop::new();
    let task = fs_err::read_to_string(shop.path().join("shop/task.yaml")).unwrap();
    let task = task.replace("Predict y from x.", "Predict y. My key is sk-ant-very-secret.");
    shop.write("shop/task.yaml", &task);
    let mut run = shop.run(SMALL);
    run.env("SOME_API_KEY", "sk-ant-very-secret").assert().success();
    let run = shop.only_run();
    for file in ["journal.jsonl", "task.yaml", "config.yaml", "result.json"] {
        let text = fs_err::read_to_string(run.join(file)).unwrap();
        assert!(!text.contains("very-secret"), "{file}");
    }
    assert!(fs_err::read_to_string(run.join("task.yaml")).unwrap().contains("[redacted]"));

    let mut wrong = shop.command();
    wrong.env("SOME_API_KEY", "sk-ant-very-secret").args(["run", "sk-ant-very-secret"]);
    let said = text(wrong.output().unwrap().stderr);
    assert!(said.contains("[redacted]") && !said.contains("very-secret"), "{said}");
}
