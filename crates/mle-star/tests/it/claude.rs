//! Runs through the real `claude` program, with a server on loopback in the place of the model.

mod reaching;
mod sessions;
mod web;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Output, Stdio};

use assert_cmd::Command;
use camino::{Utf8Path, Utf8PathBuf};
use mle_star_search::event;
use mle_star_wire::{Answer, Request, Server};
use serde_json::{Value, json};

use crate::binary;
use crate::shop::{Shop, records, steps};

/// Two models, one refinement on one path, one ensemble.
const SMALL: &str = "M=2 T=1 K=1 L=1 R=1";

/// The real program.
fn claude() -> Option<Utf8PathBuf> {
    let program = binary::claude(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    Some(Utf8PathBuf::from_path_buf(program).unwrap())
}

/// `mle-star run shop` through `claude`, with `agents` and [`SMALL`] settings.
fn run(shop: &Shop, claude: &Utf8Path, agents: &str) -> Command {
    let mut command = shop.command();
    command.args(["run", "shop", "--agents", agents, "--claude-path", claude.as_str()]);
    for setting in SMALL.split_whitespace() {
        command.args(["-s", setting]);
    }
    command.timeout(std::time::Duration::from_secs(1000));
    command
}

/// How often each role was asked, and what all of it cost.
fn calls(run: &Utf8Path) -> (BTreeMap<String, usize>, f64) {
    let mut roles = BTreeMap::new();
    let mut cost = 0.0;
    for record in records(run) {
        if let Some((key, event::Output::Asked { reply, no_answer })) = record.finished() {
            assert_eq!(*no_answer, None, "{key}");
            let role = key.to_string().rsplit('/').next().unwrap().to_owned();
            *roles.entry(role).or_default() += 1;
            cost += reply.cost_usd.unwrap_or_default();
        }
    }
    (roles, cost)
}

fn result(run: &Utf8Path) -> Value {
    serde_json::from_slice(&fs_err::read(run.join("result.json")).unwrap()).unwrap()
}

/// Runs `command` against a server of the test, which is at work meanwhile.
async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// The name of what a structured reply to `request` must have: `models`, `plans` or `answers`.
fn wanted(request: &Request) -> Option<String> {
    let is_it = |tool: &&Value| tool.get("name") == Some(&"StructuredOutput".into());
    let tool = request.tools.iter().find(is_it)?;
    tool.pointer("/input_schema/properties")?.as_object()?.keys().next().cloned()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The fields of the lines in the log of a run that say `message`.
fn logged(run: &Utf8Path, message: &str) -> Vec<Value> {
    let log = fs_err::read_to_string(run.join("log.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines = lines.filter(|line| line.get("message") == Some(&message.into()));
    lines.map(|line| line.get("fields").unwrap().clone()).collect()
}

/// REQ-OR-005, REQ-OR-011, REQ-OR-027, REQ-OR-032
#[test]
fn a_whole_run_through_the_real_program_is_the_run_without_it_and_has_a_cost() {
    let Some(claude) = claude() else { return };
    let through = Shop::new();
    run(&through, &claude, "claude-over-scripted:replies.yaml").assert().success();
    let without = Shop::new();
    without.run(SMALL).assert().success();

    let (through, without) = (through.only_run(), without.only_run());
    assert_eq!(
        steps(&through).into_iter().collect::<BTreeSet<_>>(),
        steps(&without).into_iter().collect::<BTreeSet<_>>()
    );
    let (roles, cost) = calls(&through);
    assert_eq!(roles, calls(&without).0);
    assert_eq!(roles.get("retriever"), Some(&1));
    assert_eq!(roles.get("init"), Some(&2));
    let solution = |run: &Utf8Path| result(run)["final_solution"]["content"].clone();
    assert_eq!(solution(&through), solution(&without));
    // The program's own sums, from the tokens that the server gives.
    assert!(cost > 0.001, "{cost}");
    let total = result(&through)["total_cost_usd"].as_f64().unwrap();
    assert!((total - cost).abs() < 1e-9, "{total} {cost}");
}

/// REQ-OR-007, REQ-OR-008, REQ-OR-021, REQ-OR-046
#[tokio::test]
async fn each_call_is_a_conversation_of_its_own_with_the_means_of_its_role() {
    let Some(claude) = claude() else { return };
    // The models are found; whoever is asked after that is told that the key is not valid.
    let models = json!({ "models": [
        { "model_name": "ridge", "example_code": "fit()" },
        { "model_name": "trees", "example_code": "fit()" },
    ] });
    let server =
        Server::start(move |request: &Request| match request.has_tool("StructuredOutput") {
            true => Answer::tool_use("StructuredOutput", models.clone()),
            false => Answer::error(401, "authentication_error", "invalid x-api-key"),
        });
    let server = server.await.unwrap();
    let shop = Shop::new();
    let mut command = run(&shop, &claude, "claude");
    command
        .args(["--model", "opus", "-s", "agent_models={\"retriever\": \"haiku\"}"])
        .env("ANTHROPIC_API_KEY", "sk-ant-0123456789")
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();

    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the agent refused our credentials"), "{said}");
    assert!(said.contains("hint: when that is mended: mle-star resume"), "{said}");
    assert!(!said.contains("sk-ant-0123456789"), "{said}");
    let failed = records(&shop.only_run()).iter().filter(|it| it.finished().is_some()).count();
    assert_eq!(failed, 1, "only the retriever's step is finished");

    let requests = server.requests();
    let (first, later) = requests.split_first().unwrap();
    assert!(first.model.contains("haiku"), "{}", first.model);
    assert!(first.has_tool("WebSearch") && first.has_tool("WebFetch") && !first.has_tool("Bash"));
    assert!(!later.is_empty());
    for request in later {
        assert!(request.model.contains("opus"), "{}", request.model);
        assert!(request.has_tool("Read"));
        for other in ["Bash", "Edit", "Write", "WebSearch", "WebFetch", "Agent", "Task"] {
            assert!(!request.has_tool(other), "{other}");
        }
    }
    for request in &requests {
        assert!(request.system.contains("You are a Kaggle grandmaster"), "{}", request.system);
        assert!(request.system.contains("Predict y from x."), "{}", request.system);
        assert_eq!(request.header("x-api-key"), Some("sk-ant-0123456789"));
    }
    let sessions: BTreeSet<_> = requests.iter().map(|it| it.session.clone().unwrap()).collect();
    assert_eq!(sessions.len(), requests.len());
}

/// REQ-OR-010, REQ-OR-031, REQ-OR-033, REQ-OR-035
#[tokio::test]
async fn agents_with_tools_work_in_a_folder_of_their_own_and_change_nothing_else() {
    let Some(claude) = claude() else { return };
    let shop = Shop::new();
    shop.write("victim/file", "precious");
    let victim = shop.path().join("victim");
    let models = json!({ "models": [{ "model_name": "ridge", "example_code": "fit()" }] });
    let bash = |command: String| Answer::tool_use("Bash", json!({ "command": command }));
    let commands = [
        format!("rm -rf {victim}"),
        format!("cd {victim} && echo gone > file"),
        "wc -l input/train.csv".to_owned(),
        "head -1 input/train.csv && echo x > inside && cat inside; echo key $ANTHROPIC_API_KEY"
            .to_owned(),
        "ls nothing".to_owned(),
        "ls nothing_else".to_owned(),
    ];
    let respond = move |request: &Request| {
        if request.has_tool("StructuredOutput") {
            return Answer::tool_use("StructuredOutput", models.clone());
        }
        let done = request.messages.iter().filter(|it| it["role"] == "assistant").count();
        let score = json!({ "output": "Final Validation Performance: 0.25" });
        match commands.get(done) {
            Some(command) => bash(command.clone()),
            None if done == commands.len() => Answer::tool_use("mcp__mle_star__parse_score", score)
                .and_tool_use("mcp__mle_star__list_files", json!({})),
            None => Answer::error(401, "authentication_error", "enough"),
        }
    };
    let server = Server::start(respond).await.unwrap();
    let mut command = run(&shop, &claude, "claude");
    command
        .args(["-s", "tool_profile=wide", "-s", "M=1", "-s", "denied_commands=[\"wc\"]"])
        .env("ANTHROPIC_API_KEY", "sk-ant-0123456789")
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();

    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(fs_err::read_to_string(victim.join("file")).unwrap(), "precious");
    let requests = server.requests();
    let results: Vec<_> = requests.iter().flat_map(|request| request.tool_results()).collect();
    let failed: Vec<bool> = results.iter().map(|it| it.is_error).collect();
    assert_eq!(failed, [true, true, true, false, true, true, false, false], "{results:?}");
    assert!(results[2].text.contains("not allowed"), "{results:?}");
    // The service gets the key, and no tool can ask for it.
    assert!(requests.iter().all(|it| it.header("x-api-key") == Some("sk-ant-0123456789")));
    let key = results[3].text.strip_prefix("id,x,y\nx\nkey ").unwrap();
    assert!(!key.is_empty() && !key.contains("0123456789"), "{key}");
    assert_eq!(results[6].text, "0.25");
    assert_eq!(results[7].text, "input/test.csv\t9\ninput/train.csv\t19");
    // What is denied has not failed: it has not run.
    let told = |message| logged(&shop.only_run(), message);
    let of = |fields: &Value, name: &str| fields.get(name).unwrap().clone();
    let denied: Vec<Value> = told("tool denied").iter().map(|it| of(it, "tool")).collect();
    assert_eq!(denied, ["Bash"; 3]);
    let failed: Vec<_> =
        told("tool failed").iter().map(|it| (of(it, "role"), of(it, "in_a_row"))).collect();
    assert_eq!(failed, [1, 2].map(|count| (json!("init"), json!(count))));
}

#[tokio::test]
async fn an_account_without_credit_stops_the_run_and_no_step_is_done_without_an_answer() {
    let Some(claude) = claude() else { return };
    let models = json!({ "models": [{ "model_name": "ridge", "example_code": "fit()" }] });
    let respond = move |request: &Request| match request.has_tool("StructuredOutput") {
        true => Answer::tool_use("StructuredOutput", models.clone()),
        false => Answer::error(400, "invalid_request_error", "Your credit balance is too low"),
    };
    let server = Server::start(respond).await.unwrap();
    let shop = Shop::new();
    let mut command = run(&shop, &claude, "claude");
    command.env("ANTHROPIC_API_KEY", "sk-ant-0").env("ANTHROPIC_BASE_URL", server.url());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the account cannot pay for the request"), "{said}");
    assert!(said.contains("hint: when that is mended: mle-star resume"), "{said}");
    let done = records(&shop.only_run()).iter().filter(|it| it.finished().is_some()).count();
    assert_eq!(done, 1, "the retriever's");
}

#[tokio::test]
async fn a_model_that_does_not_exist_stops_the_run_and_says_what_to_do() {
    let Some(claude) = claude() else { return };
    let nothing = |_: &Request| Answer::error(404, "not_found_error", "model: gpt");
    let server = Server::start(nothing).await.unwrap();
    let shop = Shop::new();
    let mut command = run(&shop, &claude, "claude");
    command
        .args(["--model", "gpt"])
        .env("ANTHROPIC_AUTH_TOKEN", "a token instead of a key")
        .env("ANTHROPIC_BASE_URL", server.url());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the agent cannot be used: the model or the address"), "{said}");
    assert!(said.contains("(name another model; check ANTHROPIC_BASE_URL)"), "{said}");
}

/// REQ-OR-054
#[test]
fn a_program_that_cannot_be_used_is_named_before_anything_is_begun() {
    let shop = Shop::new();
    for (program, error) in [
        ("/no/such/claude", "error: the `claude` program cannot be used: there is no"),
        ("/bin/echo", "error: the `claude` program cannot be used: `/bin/echo` does not say"),
    ] {
        let mut command = run(&shop, Utf8Path::new(program), "claude");
        let output = command.env("ANTHROPIC_API_KEY", "sk-ant-none").output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(error), "{said}");
        assert!(said.contains("--claude-path names the program"), "{said}");
    }
    assert!(!shop.path().join("runs").exists());
}

/// REQ-OR-011
#[test]
fn a_run_that_is_killed_leaves_no_program_behind_and_goes_on() {
    let Some(claude) = claude() else { return };
    let shop = Shop::new();
    // A program of a name that only this test has.
    let own = shop.path().join("claude-of-this-test");
    std::os::unix::fs::symlink(&claude, &own).unwrap();
    let mut command = run(&shop, &own, "claude-over-scripted:replies.yaml");
    let mut child = shop.start(&command, Stdio::null());
    wait_until("a conversation", || !processes(&own).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no conversation", || processes(&own).is_empty());

    command = shop.command();
    command.args(["resume", shop.only_run().as_str()]).assert().success();
    assert_eq!(calls(&shop.only_run()).0.get("init"), Some(&2));
    assert!(processes(&own).is_empty());
}

#[test]
fn doctor_shows_the_program_and_the_key() {
    let Some(claude) = claude() else { return };
    let shop = Shop::new();
    let check = |key: &str, claude: &str| {
        let mut command = shop.command();
        command.args(["doctor", "--json"]).env("ANTHROPIC_API_KEY", key);
        command.env("MLE_STAR_CLAUDE_PATH", claude);
        let output = command.output().unwrap();
        let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let find = |name: &str| checks.iter().find(|it| it["name"] == name).unwrap().clone();
        (find("claude"), find("key"))
    };
    let (program, key) = check("sk-ant-none", claude.as_str());
    let found = format!("2.1.325 at {claude}");
    assert_eq!(program, json!({ "name": "claude", "state": "ok", "found": found }));
    let found = "ANTHROPIC_API_KEY is set";
    assert_eq!(key, json!({ "name": "key", "state": "ok", "found": found }));
    let (program, key) = check("", "/no/such/claude");
    assert_eq!((&program["state"], &key["state"]), (&json!("weak"), &json!("weak")));
    assert_eq!(program["found"], "there is no program at `/no/such/claude`");
}

/// What is said to be used is what is used.
#[test]
fn doctor_names_the_credentials_of_the_service_that_is_chosen() {
    let shop = Shop::new();
    let key = |variables: &[(&str, &str)]| {
        let mut command = shop.command();
        command.args(["doctor", "--json"]).envs(variables.iter().copied());
        command.env("MLE_STAR_CLAUDE_PATH", "/no/such/claude");
        let checks: Vec<Value> = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        checks.iter().find(|it| it["name"] == "key").unwrap()["found"].as_str().unwrap().to_owned()
    };
    let anthropic = ("ANTHROPIC_API_KEY", "x");
    let bedrock = |value| ("CLAUDE_CODE_USE_BEDROCK", value);
    assert_eq!(key(&[bedrock("0")]), "no key for Claude's agents");
    assert_eq!(key(&[bedrock("0"), anthropic]), "ANTHROPIC_API_KEY is set");
    assert_eq!(key(&[bedrock("1"), anthropic]), "CLAUDE_CODE_USE_BEDROCK is set");
    let own = ("AWS_BEARER_TOKEN_BEDROCK", "x");
    assert_eq!(key(&[bedrock("1"), own]), "AWS_BEARER_TOKEN_BEDROCK is set");
    assert_eq!(key(&[("CLAUDE_CODE_USE_VERTEX", "1")]), "CLAUDE_CODE_USE_VERTEX is set");
}

/// The conversations with `program`.
fn processes(program: &Utf8Path) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        let mut words = words.split(|&byte| byte == 0);
        let is_program = words.next()? == program.as_str().as_bytes();
        (is_program && words.any(|word| word == b"--verbose")).then_some(pid)
    });
    found.collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "not in a minute: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
