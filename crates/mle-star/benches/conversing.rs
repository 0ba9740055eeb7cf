//! What a call to the `claude` program costs beyond the program:
//! `cargo bench -p mle-star --bench conversing`.
//!
//! The program of the client's tests stands in for the real one. It says at once what it is told to
//! say: a greeting, a hook to answer, some text and a result. Each call through the client is timed
//! beside one with the same program, the same lines and nothing else: a process is started, lines
//! are written and read, and its end is waited for. What is beyond that is ours. All take turns, so
//! that whatever else the machine does befalls each of them.
//!
//! Between the client and the program stands nothing; or a keeper, which leaves nothing behind; or
//! `mle-star __hold`, which also holds the program in a sandbox, as it does in every run. What stands
//! in between is started before the call, as runs do it while the call before waits for the model;
//! and, to compare, with the call.
//!
//! This program is all of them but the last: the client, the stand-in and the keeper.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints or fails")]

#[path = "../../claude/tests/fake/main.rs"]
mod fake;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_claude::{
    Cli, Conversation, Environment, Hook, Launch, Options, ToolCall, ToolDecision,
};
use mle_star_exec::limits::Limits;
use mle_star_exec::sandbox::{Network, Tier, Wish};
use mle_star_exec::slots::{Slots, our_cores};
use mle_star_exec::{Setup, Supervisor, machine};
use serde_json::{Value, json};

/// Tells this program to be the keeper.
const KEEP: &str = "__keep";
/// The program that holds others.
const HOLDER: &str = env!("CARGO_BIN_EXE_mle-star");

/// The calls of each kind.
const CALLS: usize = 200;
/// The calls before anything is measured.
const WARM_UP: usize = 20;
/// How long before a call what stands in between is started.
const READY: Duration = Duration::from_millis(10);

/// A call as runs make them: some thousand characters go in and come out.
const PROMPT_CHARS: usize = 20_000;
const ANSWER_CHARS: usize = 8_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == KEEP) {
        return mle_star_claude::keep(arguments);
    }
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    if has("--version") || std::env::var_os("FAKE").is_some() {
        return fake::main();
    }
    // `cargo test --benches` only wants to know that it starts.
    if !has("--test") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        measure(&runtime.unwrap());
    }
    ExitCode::SUCCESS
}

fn measure(runtime: &tokio::runtime::Runtime) {
    let cli = runtime.block_on(Cli::find(Some(&this_program()))).unwrap();
    // A server that nobody talks to, to have a port that can be reached.
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Network::Port(server.local_addr().unwrap().port());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();

    let mut ways = vec![
        Way::new("client", cli.clone(), Vec::new()),
        Way::new("client and keeper", cli.clone(), vec![this_program().into(), KEEP.into()]),
    ];
    for (tier, network) in [
        (Tier::Off, port),
        (Tier::Limits, port),
        (Tier::Fallback, port),
        (Tier::Strong, port),
        (Tier::Strong, Network::Allow),
    ] {
        let of_network = if network == Network::Allow { ", network of the machine" } else { "" };
        let name = format!("client and sandbox `{tier}`{of_network}");
        match runtime.block_on(held(tier, network, &folder.join(ways.len().to_string()))) {
            Some(words) => ways.push(Way::new(&name, cli.clone(), words)),
            None => println!("{name}: not measured, it does not work here"),
        }
    }

    let mut bare = Vec::new();
    let call = |cli: &Cli| runtime.block_on(converse(cli));
    let _in_runtime = runtime.enter();
    for _ in 0..WARM_UP {
        converse_bare();
        ways.iter().for_each(|way| call(&way.through()));
        ways.iter().for_each(|way| call(&way.ahead()));
    }
    let before = resident_kib();
    for _ in 0..CALLS {
        for way in &mut ways {
            for (cli, costs) in [way.ahead(), way.through()].iter().zip(&mut way.costs) {
                let alone = measured(converse_bare);
                bare.push(alone);
                costs.push(Cost::beyond(measured(|| call(cli)), alone));
            }
        }
    }
    let grown = resident_kib().cast_signed() - before.cast_signed();

    println!(
        "| beyond the program | wall, median | CPU, median | CPU of processes between, mean | wall, nothing started before |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for way in &ways {
        let between = mean_of_children(|| call(&way.ahead())) - mean_of_children(converse_bare);
        let Way { name, costs: [ahead, through], .. } = way;
        let (wall, cpu) = (median_wall(ahead), median_cpu(ahead));
        println!("| {name} | {wall} | {cpu} | {between:.2} ms | {} |", median_wall(through));
    }
    println!("| the program itself | {} | {} | | |", median_wall(&bare), median_cpu(&bare));
    let calls = bare.len();
    println!("| memory of the client after {calls} more calls | {grown:+} KiB | | | |");
}

/// A way to start the program.
struct Way {
    name: String,
    cli: Cli,
    /// What stands in between, and its arguments, if anything does.
    words: Vec<OsString>,
    /// Of calls for which it was started before, and with the call.
    costs: [Vec<Cost>; 2],
}

impl Way {
    fn new(name: &str, cli: Cli, words: Vec<OsString>) -> Self {
        Self { name: name.to_owned(), cli, words, costs: [Vec::new(), Vec::new()] }
    }

    fn through(&self) -> Cli {
        let launch = match self.words.split_first() {
            Some((program, arguments)) => Launch::through(program, arguments),
            None => Launch::direct(),
        };
        self.cli.clone().launched(launch)
    }

    /// The same, ready and waiting.
    fn ahead(&self) -> Cli {
        let Some((program, arguments)) = self.words.split_first() else { return self.through() };
        let launch = Launch::ahead(program, arguments).unwrap();
        std::thread::sleep(READY);
        self.cli.clone().launched(launch)
    }
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// What holds the program as runs do, if that works here.
async fn held(tier: Tier, network: Network, folder: &Utf8Path) -> Option<Vec<OsString>> {
    let supervisor = Supervisor { program: HOLDER.into(), arguments: vec!["__shim".to_owned()] };
    let setup = Setup {
        python: machine::detect(None).await.unwrap().python.into(),
        supervisor,
        wish: Wish::Exactly(tier),
        network: Network::Deny,
        readable: Vec::new(),
        devices: Vec::new(),
        limits: Limits::of_this_machine(folder, 1, 1),
        slots: Slots::new(1, &our_cores(), &[]),
    };
    let local = setup.try_out().await.ok()?;
    for name in ["tmp", "home", "work"] {
        fs_err::create_dir_all(folder.join(name)).unwrap();
    }
    let hold = local
        .hold()
        .keeping_temporary_files_in(folder.join("tmp"))
        .writing(folder.join("home"))
        .writing(folder.join("work"))
        .reading([Utf8PathBuf::from_path_buf(this_program()).unwrap()])
        .reaching(network);
    let file = folder.join("hold.json");
    hold.write(&file).unwrap();
    Some([HOLDER, "__hold", file.as_str()].map(OsString::from).into())
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

fn median(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> String {
    let mut costs: Vec<f64> = costs.iter().map(of).collect();
    costs.sort_by(f64::total_cmp);
    let median = costs.get(costs.len() / 2).copied().unwrap_or_default();
    format!("{median:.2} ms")
}

fn median_wall(costs: &[Cost]) -> String {
    median(costs, |cost| cost.wall)
}

fn median_cpu(costs: &[Cost]) -> String {
    median(costs, |cost| cost.cpu)
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
    // The one folder that is there in every sandbox.
    let folder = Some(PathBuf::from("/"));
    let options = Options { environment, hooks, folder, ..Options::default() };
    let mut conversation = Conversation::start(cli, options).await.unwrap();
    let answer = conversation.ask(&"x".repeat(PROMPT_CHARS)).await.unwrap();
    assert_eq!(answer.text.len(), ANSWER_CHARS);
    assert_eq!(conversation.stop().await.unwrap().code, Some(0));
}

/// The same without the client: as little as has to be done.
fn converse_bare() {
    let mut child = Command::new(this_program())
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
