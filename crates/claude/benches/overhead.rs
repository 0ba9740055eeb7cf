//! What the client itself costs, beyond the program: `cargo bench -p mle-star-claude`.
//!
//! The program of the tests stands in for the real one. It says at once what it is told to say: a
//! greeting, a hook to answer, some text and a result. Each call through the client is timed beside
//! one with the same program, the same lines and nothing else: a process is started, lines are
//! written and read, and its end is waited for. What is beyond that is ours. The two take turns, so
//! that whatever else the machine does befalls both.
//!
//! With a keeper between us and the program, as in every run, a second process is started for each
//! call. It is part of what is ours.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints or fails")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mle_star_claude::{
    Cli, Conversation, Environment, Hook, Launch, Options, ToolCall, ToolDecision,
};
use serde_json::{Value, json};

/// The calls of each kind.
const CALLS: usize = 200;
/// The calls before anything is measured.
const WARM_UP: usize = 20;

/// A call as runs make them: some thousand characters go in and come out.
const PROMPT_CHARS: usize = 20_000;
const ANSWER_CHARS: usize = 8_000;

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fake = env!("CARGO_BIN_EXE_claude-fake");
    let cli = runtime.block_on(Cli::find(Some(&PathBuf::from(fake)))).unwrap();
    let keeper = Launch::through(env!("CARGO_BIN_EXE_claude-keeper"), [] as [&str; 0]);
    println!("| what | wall, median | CPU, mean |\n| --- | --- | --- |");
    for (how, cli) in [("alone", cli.clone()), ("with its keeper", cli.launched(keeper))] {
        let client = || runtime.block_on(converse(&cli));
        for _ in 0..WARM_UP {
            client();
            converse_bare();
        }
        let before = resident_kib();
        let (mut ours, mut bare, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..CALLS {
            ours.push(measured(client));
            bare.push(measured(converse_bare));
            let pair = ours.last().zip(bare.last());
            let beyond_bare = pair.map(|(ours, bare)| Cost::beyond(*ours, *bare));
            beyond.extend(beyond_bare);
        }
        row(&format!("a call through the client, {how}"), &ours);
        row("the same program and lines without it", &bare);
        row("**beyond the program**", &beyond);
        let children = mean_of_children(client) - mean_of_children(converse_bare);
        println!("| CPU of other processes beyond the program, mean | | {children:.2} ms |");
        let grown = resident_kib().cast_signed() - before.cast_signed();
        println!("| memory of the client after {CALLS} more calls | {grown:+} KiB | |");
    }
}

/// What something took, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

impl Cost {
    fn beyond(ours: Self, bare: Self) -> Self {
        Self { wall: ours.wall - bare.wall, cpu: ours.cpu - bare.cpu }
    }
}

fn measured(work: impl FnOnce()) -> Cost {
    let (cpu, begun) = (cpu_time(), Instant::now());
    work();
    let wall = begun.elapsed();
    Cost { wall: millis(wall), cpu: millis(cpu_time().saturating_sub(cpu)) }
}

fn row(what: &str, costs: &[Cost]) {
    let mut walls: Vec<f64> = costs.iter().map(|cost| cost.wall).collect();
    walls.sort_by(f64::total_cmp);
    let median = walls.get(walls.len() / 2).copied().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let mean = costs.iter().map(|cost| cost.cpu).sum::<f64>() / costs.len() as f64;
    println!("| {what} | {median:.2} ms | {mean:.2} ms |");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// What this thread, which does everything, has computed for so far.
fn cpu_time() -> Duration {
    let times = std::fs::read("/proc/thread-self/schedstat").unwrap();
    let times = String::from_utf8(times).unwrap();
    Duration::from_nanos(times.split_whitespace().next().unwrap().parse().unwrap())
}

/// What the processes that a call starts compute for, in milliseconds. The system counts that in
/// hundredths of a second, which is too coarse for a single call.
fn mean_of_children(call: impl Fn()) -> f64 {
    let before = ticks_of_children();
    (0..CALLS).for_each(|_| call());
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let (ticks, calls) = ((ticks_of_children() - before) as f64, CALLS as f64);
    ticks * 10.0 / calls
}

fn ticks_of_children() -> u64 {
    let stat = std::fs::read("/proc/self/stat").unwrap();
    let stat = String::from_utf8(stat).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // The first field here is the third of the line; those of children are the 16th and 17th.
    fields.split_whitespace().skip(13).take(2).map(|it| it.parse::<u64>().unwrap()).sum()
}

fn resident_kib() -> usize {
    let sizes = std::fs::read("/proc/self/status").unwrap();
    let sizes = String::from_utf8(sizes).unwrap();
    let line = sizes.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What the program is told to do.
fn steps() -> String {
    let hook = json!({ "type": "control_request", "request_id": "hook", "request": {
        "subtype": "hook_callback", "callback_id": "hook_0", "tool_use_id": "t", "input": {
            "hook_event_name": "PreToolUse", "tool_name": "Read", "cwd": "/",
            "tool_input": { "file_path": "input/train.csv" } } } });
    let content = json!([{ "type": "text", "text": "x".repeat(ANSWER_CHARS) }]);
    let assistant = json!({ "type": "assistant", "parent_tool_use_id": null, "message": {
        "id": "m", "model": "claude-x", "role": "assistant", "content": content } });
    let result = json!({ "type": "result", "subtype": "success", "is_error": false,
        "result": "done", "num_turns": 2, "total_cost_usd": 0.01 });
    let greeting = json!({ "claude_code_version": "2.1.325", "hooks_applied": true,
        "hook_on_failure_supported": true });
    let steps = [
        json!({ "greet": greeting }),
        json!({ "hear": 1 }),
        json!({ "say": hook }),
        json!({ "hear": 1 }),
        json!({ "say": assistant }),
        json!({ "say": result }),
    ];
    json!(steps).to_string()
}

async fn converse(cli: &Cli) {
    let environment = Environment::default().with("FAKE", steps());
    let pass = Hook::before_tool(None, |_: ToolCall| async { Ok::<_, String>(ToolDecision::Pass) });
    let hooks = vec![pass];
    let options = Options { environment, hooks, ..Options::default() };
    let mut conversation = Conversation::start(cli, options).await.unwrap();
    let answer = conversation.ask(&"x".repeat(PROMPT_CHARS)).await.unwrap();
    assert_eq!(answer.text.len(), ANSWER_CHARS);
    assert_eq!(conversation.stop().await.unwrap().code, Some(0));
}

/// The same without the client: as little as has to be done.
fn converse_bare() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_claude-fake"))
        .env_clear()
        .env("FAKE", steps())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut say = |line: Value| writeln!(input, "{line}").unwrap();
    let mut hear = || lines.next().unwrap().unwrap();
    say(json!({ "type": "control_request", "request_id": "req_1", "request": {} }));
    hear();
    say(json!({ "type": "user", "message": { "content": "x".repeat(PROMPT_CHARS) } }));
    hear();
    say(json!({ "type": "control_response", "response": { "request_id": "hook" } }));
    assert!(hear().contains("assistant") && hear().contains("result"));
    drop(input);
    assert!(child.wait().unwrap().success());
}
