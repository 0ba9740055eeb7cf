//! However it ends, nothing is left behind.

use std::time::{Duration, Instant};

use mle_star_claude::{Cli, Conversation, Error, Launch, Reason};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bench::{
    cli, eventually, greeted, keeper, keeper_ahead, mark, options, processes_with, result, start,
    talk,
};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn an_interrupted_conversation_can_go_on() {
    let interrupted = result(json!({ "subtype": "error_during_execution", "is_error": true,
        "total_cost_usd": 0.5 }));
    let steps = json!([
        { "hear": 1 }, { "hear": 1 }, interrupted, // the prompt, the interrupt
        { "hear": 1 }, result(json!({ "result": "again", "total_cost_usd": 0.75 })),
    ]);
    let mut conversation = talk(steps).await;
    let interrupter = conversation.interrupter();
    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        interrupter.interrupt();
    };
    let (answer, ()) = tokio::join!(conversation.ask("a question"), later);
    let error = answer.unwrap_err();
    assert_eq!((error.reason(), error.cost_usd()), (Some(&Reason::Interrupted), Some(0.5)));
    let answer = conversation.ask("another").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.cost_usd), ("again", Some(0.25)));
}

/// REQ-OR-034
#[tokio::test]
async fn an_answer_that_takes_too_long_is_interrupted_and_its_cost_is_known() {
    let interrupted = result(json!({ "is_error": true, "total_cost_usd": 0.5 }));
    let mut quick = options(&greeted(json!([{ "hear": 2 }, interrupted])));
    quick.limits.answer = Duration::from_millis(200);
    let error = start(quick).await.unwrap().ask("a question").await.unwrap_err();
    assert_eq!((error.reason(), error.cost_usd()), (Some(&Reason::OutOfTime), Some(0.5)));
}

#[tokio::test]
async fn one_that_does_not_listen_is_given_up() {
    let mut quick = options(&greeted(json!([{ "sleep": 60_000 }])));
    quick.limits.answer = Duration::from_millis(200);
    let begun = Instant::now();
    let mut conversation = start(quick).await.unwrap();
    let error = conversation.ask("a question").await.unwrap_err();
    assert_eq!((error.reason(), error.cost_usd()), (Some(&Reason::OutOfTime), None));
    conversation.stop().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_question_whose_answer_nobody_waited_for_is_interrupted_before_the_next() {
    let steps = json!([
        { "hear": 1 }, { "hear": 1 }, result(json!({ "is_error": true, "total_cost_usd": 0.5 })),
        { "hear": 1 }, result(json!({ "result": "the second", "total_cost_usd": 0.75 })),
    ]);
    let mut conversation = talk(steps).await;
    let first = tokio::time::timeout(Duration::from_millis(100), conversation.ask("first")).await;
    first.unwrap_err();
    let answer = conversation.ask("second").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.cost_usd), ("the second", Some(0.25)));
}

/// REQ-OR-011
#[tokio::test]
async fn stopping_ends_one_that_neither_reads_nor_obeys_with_all_its_children() {
    for launch in [stubborn(&[]), stubborn(&[env!("CARGO_BIN_EXE_claude-keeper")])] {
        let mark = mark();
        let conversation = with_child(launch, &mark).await;
        let begun = Instant::now();
        conversation.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(15));
        eventually("no child", || processes_with(&mark).is_empty()).await;
    }
}

/// REQ-OR-011
#[tokio::test]
async fn dropping_ends_it_with_all_its_children() {
    for launch in [Launch::direct(), keeper(), keeper_ahead()] {
        let mark = mark();
        let conversation = with_child(launch, &mark).await;
        let id = conversation.process_id().unwrap();
        drop(conversation);
        eventually("no child", || processes_with(&mark).is_empty()).await;
        let cmdline = format!("/proc/{id}/cmdline");
        let gone = || fs_err::read(&cmdline).unwrap_or_default().is_empty();
        eventually("no process", gone).await;
    }
}

#[tokio::test]
async fn the_keeper_ends_the_children_of_a_program_that_was_killed() {
    let mark = mark();
    let mut conversation = with_child(keeper(), &mark).await;
    let keeper = conversation.process_id().unwrap();
    let program = processes_with(crate::bench::FAKE).into_iter().find(|pid| {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|it| it.split(' ').nth(1)) == Some(&keeper.to_string())
    });
    kill(program.unwrap());
    let error = conversation.ask("anybody there?").await.unwrap_err();
    assert!(matches!(error, Error::Closed { code: Some(137), .. }), "{error}");
    eventually("no child", || processes_with(&mark).is_empty()).await;
}

#[tokio::test]
async fn the_keeper_ends_everything_when_its_input_ends() {
    // As if we had been killed: the pipe is closed and nobody sends a signal.
    let mark = mark();
    let steps = json!([{ "child": mark }, { "sleep": 100_000_000 }]).to_string();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_claude-keeper"))
        .arg(crate::bench::FAKE)
        .env("FAKE", steps)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("a child", || processes_with(&mark).len() == 1).await;
    drop(child.stdin.take());
    eventually("no child", || processes_with(&mark).is_empty()).await;
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn the_keeper_hands_the_exit_code_through_and_says_what_it_cannot_start() {
    let keep = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_claude-keeper"));
        let output = command.args(words).stdin(std::process::Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(keep(&["sh", "-c", "exit 7"]), (Some(7), String::new()));
    assert_eq!(keep(&["sh", "-c", "kill -9 $$"]), (Some(137), String::new()));
    assert_eq!(keep(&[]), (Some(127), "nothing to start\n".to_owned()));
    let (code, said) = keep(&["/nonexistent/program"]);
    assert_eq!(code, Some(127));
    assert!(said.starts_with("cannot start /nonexistent/program: "), "{said}");
}

#[tokio::test]
async fn a_keeper_that_waits_is_used_once_if_it_lives_and_ends_if_it_is_not_used() {
    let launch = keeper_ahead();
    let waiting = launch.waiting_process().unwrap();
    let cli = cli().await.launched(launch);
    let first = Conversation::start(&cli, options(&greeted(json!([])))).await.unwrap();
    let second = Conversation::start(&cli, options(&greeted(json!([])))).await.unwrap();
    assert_eq!(first.process_id(), Some(waiting));
    assert_ne!(second.process_id(), Some(waiting));

    let launch = keeper_ahead();
    let killed = launch.waiting_process().unwrap();
    kill(killed);
    eventually("its end", || launch.waiting_process().is_none()).await;
    let cli = cli.launched(launch);
    let other = Conversation::start(&cli, options(&greeted(json!([])))).await.unwrap();
    assert_ne!(other.process_id(), Some(killed));

    let unused = keeper_ahead();
    let waiting = unused.waiting_process().unwrap();
    drop(unused);
    let is_gone =
        |pid: u32| fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().is_empty();
    eventually("its end", || is_gone(waiting)).await;
}

/// A conversation with a program that has started a process in a session of its own.
async fn with_child(launch: Launch, mark: &str) -> Conversation {
    let cli: Cli = cli().await.launched(launch);
    let steps = greeted(json!([{ "child": mark }, { "sleep": 100_000_000 }]));
    let conversation = Conversation::start(&cli, options(&steps)).await.unwrap();
    eventually("a child", || processes_with(mark).len() == 1).await;
    conversation
}

/// Starts a program that cannot be told to end.
fn stubborn(before: &[&str]) -> Launch {
    let trap = "trap '' TERM INT HUP; exec \"$@\"";
    let words: Vec<&str> = before.iter().copied().chain(["sh", "-c", trap, "sh"]).collect();
    let (first, rest) = words.split_first().unwrap();
    Launch::through(*first, rest.iter().copied())
}
