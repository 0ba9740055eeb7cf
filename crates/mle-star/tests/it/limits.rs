//! What a run may take, and how it ends before it is done: by a limit, or because somebody asks.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Output, Stdio};

use assert_cmd::Command;
use camino::Utf8Path;
use insta::assert_snapshot;
use mle_star::FinalResult;
use mle_star::estimate::Estimate;
use mle_star_search::event::{self, Record};
use mle_star_search::models::PipelineConfig;

use crate::shop::{REPLIES, Shop, records, steps};
use crate::whole_run::calls_by_role;

/// One path and one script at a time.
const SMALL: &str = "M=2 T=1 K=1 L=1";

/// What a command says, prints and ends with.
fn said(shop: &Shop, command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let said = format!("{}{}exit code: {}", text(stderr), text(stdout), status.code().unwrap());
    shop.plain(&said)
}

/// `mle-star resume` of the only run, with one setting.
fn resume(shop: &Shop, setting: &str) -> Command {
    let mut command = shop.command();
    command.args(["resume", shop.only_run().as_str(), "-q", "-s", setting]);
    command
}

fn result(run: &Utf8Path) -> FinalResult {
    serde_json::from_str(&fs_err::read_to_string(run.join("result.json")).unwrap()).unwrap()
}

/// The settings that were changed by resuming.
fn changed_settings(run: &Utf8Path) -> Vec<PipelineConfig> {
    let settings = records(run).into_iter().filter_map(|record| match record {
        Record::Settings { config, .. } => Some(config),
        _ => None,
    });
    settings.collect()
}

/// A run that waits in the scripts of its candidates.
fn waiting(shop: &Shop) -> Child {
    shop.close();
    let child = shop.start(&shop.run(SMALL), Stdio::piped());
    shop.wait_for_script();
    child
}

#[test]
fn a_dry_run_says_what_a_run_would_take_and_leaves_nothing() {
    let shop = Shop::new();
    assert_snapshot!(said(&shop, shop.run("T=2 K=2").arg("--dry-run")), @"
    num_retrieved_models: 4
    outer_loop_steps: 2
    inner_loop_steps: 2
    num_parallel_solutions: 2
    ensemble_rounds: 5
    time_limit_seconds: 86400
    subsample_limit: 30000
    max_debug_attempts: 3
    max_budget_usd: null
    model: sonnet
    agent_models: {}
    claude_path: null
    permission_mode: bypassPermissions
    denied_commands: []
    log_level: INFO
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

    role                   least    most
    retriever                  1       1
    init                       4       4
    merger                     1       3
    data                       1       1
    ablation                   4       4
    summarize                  4       4
    extractor                  4      16
    planner                    4       4
    coder                      8       8
    ens_planner                5       5
    ensembler                  5       5
    leakage                   21      90
    leakage_correction         0      90
    debugger                   0      79
    subsampling_extract        2       2
    subsampling_remove         0       2
    test                       2       2
    all calls                 66     320
    scripts                   24     106

    cost: unknown, no earlier run here has costs
    exit code: 0
    ");
    assert!(!shop.path().join("runs").exists());
}

#[test]
fn a_dry_run_knows_what_earlier_runs_cost() {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    shop.write("runs/damaged/journal.jsonl", "{\n{\n");
    let said = said(&shop, shop.run("L=1").arg("--dry-run"));
    assert_snapshot!(said.lines().rev().nth(1).unwrap(), @"cost: $0.75 to $3.59, by the mean cost of each role in 1 earlier run here");
    assert_eq!(shop.path().join("runs").read_dir_utf8().unwrap().count(), 2);
}

#[test]
fn a_dry_run_refuses_what_a_run_refuses() {
    let shop = Shop::new();
    let alike = |settings: &str, python: &str| {
        let with =
            |more: &[&str]| said(&shop, shop.run(settings).args(["--python", python]).args(more));
        let refusal = with(&[]);
        assert!(refusal.starts_with("error: "), "{refusal}");
        assert_eq!(with(&["--dry-run"]), refusal);
    };
    alike("T=0", "python3");
    alike("prompts_dir=none", "python3");
    alike("", "./no-python");
    fs_err::remove_dir_all(shop.path().join("shop/input")).unwrap();
    alike("", "python3");
    assert!(!shop.path().join("runs").exists());
}

#[test]
fn a_default_run_takes_what_was_estimated() {
    let shop = Shop::new();
    shop.run("").assert().success();
    let records = records(&shop.only_run());
    let estimate = Estimate::of(&PipelineConfig::default(), 0);

    let mut calls = calls_by_role(&records);
    for (role, range) in &estimate.calls {
        let made = calls.remove(*role).unwrap_or(0);
        assert!((range.least..=range.most).contains(&made), "{role}: {made} is not in {range:?}");
    }
    assert!(calls.is_empty(), "not estimated: {calls:?}");
    let outputs = records.iter().filter_map(Record::finished).map(|(_, output)| output);
    let scripts = outputs.filter(|output| matches!(output, event::Output::Ran { .. })).count();
    assert!((estimate.scripts.least..=estimate.scripts.most).contains(&scripts), "{scripts}");
}

#[test]
fn stop_ends_a_run_so_that_it_can_be_resumed() {
    let shop = Shop::new();
    let mut child = waiting(&shop);
    let run = shop.only_run();
    assert_snapshot!(said(&shop, shop.command().args(["stop", run.as_str()])), @"
    asked `[FOLDER]/runs/[RUN]` to stop
    exit code: 0
    ");

    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("ending;") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the run ended and did not say so");
    }
    shop.open();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert_snapshot!(shop.plain(&rest), @"
    phase1/candidate-0 score 0.5
    phase1/candidate-1 score 0.51
    interrupted; go on with: mle-star resume [FOLDER]/runs/[RUN]
    ");
    let before = steps(&run);
    assert!(before.contains(&"phase1/candidate-1/attempt-0/run".to_owned()), "{before:?}");
    assert!(!run.join("result.json").exists());

    shop.command().args(["resume", run.as_str()]).assert().success();
    assert!(steps(&run).starts_with(&before));
    assert!(run.join("final/submission.csv").is_file());
}

#[test]
fn stop_finalize_ends_a_run_with_a_submission() {
    let shop = Shop::new();
    let child = waiting(&shop);
    let run = shop.only_run();
    let stop = said(&shop, shop.command().args(["stop", run.as_str(), "--finalize"]));
    assert_snapshot!(stop, @"
    asked `[FOLDER]/runs/[RUN]` to finalize
    exit code: 0
    ");
    shop.open();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert_snapshot!(shop.plain(&said), @"
    ended early: the end was asked for
    scores: initial 0.51, refined 0.51
    validation score: 0.51
    submission: [FOLDER]/runs/[RUN]/final/submission.csv
    result: [FOLDER]/runs/[RUN]/result.json
    report: [FOLDER]/runs/[RUN]/report.html
    ");

    let result = result(&run);
    assert_eq!(result.phase_status.cut_short.as_deref(), Some("the end was asked for"));
    assert_eq!(result.submission_path, run.join("final/submission.csv").as_str());
    assert!(run.join("final/submission.csv").is_file());
    let steps = steps(&run);
    assert!(!steps.iter().any(|step| step.starts_with("phase2/")), "{steps:?}");
}

/// A process that only finds out that the run is taken has no say in it.
#[test]
fn a_second_resume_takes_back_nothing_that_was_asked_of_the_first() {
    let shop = Shop::new();
    let child = waiting(&shop);
    let run = shop.only_run();
    shop.command().args(["stop", run.as_str(), "--finalize"]).assert().success();
    shop.command().args(["resume", run.as_str()]).assert().code(1);
    shop.open();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn a_run_that_is_over_cannot_be_stopped() {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    let run = shop.only_run();
    let stop = said(&shop, shop.command().args(["stop", run.as_str()]));
    assert_snapshot!(stop, @"
    error: `[FOLDER]/runs/[RUN]` is not running
    hint: `mle-star list` shows which runs are
    exit code: 2
    ");
    assert_eq!(said(&shop, shop.command().args(["stop", run.as_str(), "--finalize"])), stop);
    assert_snapshot!(said(&shop, shop.command().args(["stop", "shop"])), @"
    error: there is no run at `shop`
    hint: did you mean `runs/[RUN]`? `mle-star list` shows the runs
    exit code: 2
    ");
}

#[test]
fn a_run_that_its_time_limit_cut_short_goes_on_with_a_larger_one() {
    let shop = Shop::new();
    let slow = "gain = 0.01$inner\n      import time; time.sleep(0.7)";
    shop.write("replies.yaml", &REPLIES.replace("gain = 0.01$inner", slow));
    let settings = "M=2 T=2 K=4 L=1 time_limit_seconds=6 script_timeout_seconds=5";
    let first = said(&shop, shop.run(settings).arg("-q"));
    assert!(first.contains("ended early: the time is over\n"), "{first}");
    assert!(first.ends_with("exit code: 3"), "{first}");
    let run = shop.only_run();
    let cut = result(&run);
    assert_eq!(cut.phase_status.cut_short.as_deref(), Some("the time is over"));
    assert!(run.join("final/submission.csv").is_file());
    let before = steps(&run);

    let second = said(&shop, &mut resume(&shop, "time_limit_seconds=600"));
    assert!(second.ends_with("exit code: 0"), "{second}");
    let limits: Vec<u64> =
        changed_settings(&run).iter().map(|config| config.time_limit_seconds).collect();
    assert_eq!(limits, [600]);
    let whole = result(&run);
    assert_eq!(whole.phase_status.cut_short, None);
    let mut attempts =
        whole.phase2_results[0].step_history.iter().flat_map(|step| &step.inner_loop_attempts);
    assert!(attempts.all(|attempt| attempt.score.is_some()), "none is lost to the first limit");
    assert!(whole.final_solution.score.unwrap().get() > cut.final_solution.score.unwrap().get());
    assert!(steps(&run).starts_with(&before), "the journal only grows");
}

#[test]
fn only_limits_can_change_when_a_run_is_resumed() {
    let shop = Shop::new();
    shop.run(SMALL).assert().success();
    assert_snapshot!(said(&shop, &mut resume(&shop, "T=9")), @"
    error: invalid value for `outer_loop_steps`: only limits can change when a run is resumed
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_snapshot!(said(&shop, &mut resume(&shop, "time_limit=9")), @"
    error: unknown setting `time_limit`; did you mean `time_limit_seconds`?
    hint: `mle-star run --help` lists the settings
    exit code: 2
    ");
    assert_eq!(changed_settings(&shop.only_run()), []);
}

#[test]
fn a_run_whose_budget_is_spent_ends_with_what_it_has() {
    let shop = Shop::new();
    let dear = "- role: coder\n    cost_usd: 0.25\n    step";
    shop.write("replies.yaml", &REPLIES.replace("- role: coder\n    step", dear));
    let first = said(&shop, shop.run("M=2 T=1 K=4 L=1 max_budget_usd=0.5").arg("-q"));
    assert_snapshot!(first, @"
    note: the submission is the early one, of the initial solution (score 0.6)
    ended early: the budget is spent
    scores: initial 0.6, refined 0.61
    validation score: 0.61
    submission: [FOLDER]/runs/[RUN]/final/submission.csv
    result: [FOLDER]/runs/[RUN]/result.json
    report: [FOLDER]/runs/[RUN]/report.html
    exit code: 3
    ");
    let run = shop.only_run();
    assert!(run.join("final/submission.csv").is_file());

    let second = said(&shop, &mut resume(&shop, "max_budget_usd=5"));
    assert_snapshot!(second, @"
    scores: initial 0.6, refined 0.613
    validation score: 0.613
    submission: [FOLDER]/runs/[RUN]/final/submission.csv
    result: [FOLDER]/runs/[RUN]/result.json
    report: [FOLDER]/runs/[RUN]/report.html
    exit code: 0
    ");
    assert_eq!(result(&run).phase_status.cut_short, None);
}

#[test]
fn a_time_limit_within_which_nothing_is_scored_is_an_error_that_names_the_remedy() {
    let shop = Shop::new();
    let slow = "import csv, time\n      time.sleep(2)\n";
    shop.write("replies.yaml", &REPLIES.replace("import csv\n", slow));
    let settings = format!("{SMALL} time_limit_seconds=2 script_timeout_seconds=60");
    let first = said(&shop, shop.run(&settings).arg("-q"));
    assert_snapshot!(first, @"
    error: the run at `[FOLDER]/runs/[RUN]` has no result: the run ended before a first solution was scored, because the time is over: Phase 1 failed: all 2 candidates produced execution errors
    hint: with a larger limit: mle-star resume [FOLDER]/runs/[RUN] -s time_limit_seconds=…
    exit code: 1
    ");
    let run = shop.only_run();
    assert!(!run.join("result.json").exists());

    let second = said(&shop, &mut resume(&shop, "time_limit_seconds=600"));
    assert!(second.ends_with("exit code: 0"), "{second}");
    assert!(run.join("final/submission.csv").is_file());
    let scores = result(&run).phase1.candidate_scores;
    assert!(scores.iter().all(Option::is_some), "the first limit failed no candidate: {scores:?}");
}
