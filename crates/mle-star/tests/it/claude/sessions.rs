//! `session=path`: calls that go on with the conversation of their path.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use assert_cmd::Command;
use camino::Utf8Path;
use mle_star_search::event::Output;
use mle_star_wire::{Answer, Request, Server, Usage};
use serde_json::json;

use super::{claude, output, run, said, wanted};
use crate::playbook::warnings;
use crate::shop::{Shop, records};

const USAGE: Usage = Usage { input: 1000, output: 100, cache_creation: 0, cache_read: 0 };

const SCRIPT: &str = "```python\ngain = 0.0\nprint(f\"Final Validation Performance: {gain}\")\n```";
const STUDY: &str = "```python\nprint(\"baseline 0.6, without the gain 0.5\")\n```";

/// Who asks, as far as this test goes.
fn role(request: &Request) -> &'static str {
    let text = request.last_user_text();
    match wanted(request).as_deref() {
        Some("models") => "retriever",
        Some("plans") => "extractor",
        Some(_) => "leakage",
        None if text.contains("# Model to use") => "init",
        None if text.contains("no previous ablation study") => "ablation",
        None if text.contains("# Code of the ablation study") => "summarize",
        None if text.contains("# Improvement plan") => "coder",
        None => "data",
    }
}

fn answer(role: &str) -> Answer {
    let structured = |value| Answer::tool_use("StructuredOutput", value);
    let models = json!({ "models": [{ "model_name": "ridge", "example_code": "fit()" }] });
    let none = json!({ "answers": [{ "leakage_status": "No Data Leakage", "code_block": "x" }] });
    let plans = json!({ "plans": [{ "code_block": "gain = 0.0", "plan": "raise the gain" }] });
    match role {
        "retriever" => structured(models),
        "leakage" => structured(none),
        "extractor" => structured(plans),
        "init" => Answer::text(SCRIPT),
        "ablation" => Answer::text(STUDY),
        "summarize" => Answer::text("The gain matters most."),
        "data" => Answer::text("All the provided information is used."),
        _ => Answer::error(401, "authentication_error", "enough"),
    }
    .with_usage(USAGE)
}

/// What the newest request of `role` says that people and agents have said so far.
fn talk(server: &Server, of: &str) -> Vec<String> {
    let requests = server.requests();
    let newest = requests.iter().rfind(|request| role(request) == of).unwrap();
    newest.user_texts().into_iter().filter(|text| !text.is_empty()).collect()
}

/// What each call cost.
fn costs(run: &Utf8Path) -> Vec<(String, f64)> {
    let records = records(run);
    let asked = records.iter().filter_map(|record| match record.finished()? {
        (key, Output::Asked { reply, .. }) => Some((key.to_string(), reply.cost_usd.unwrap())),
        _ => None,
    });
    asked.collect()
}

/// Runs `command` until somebody asks as `role`, who is never answered, and kills it then.
async fn kill_at(
    shop: &Shop,
    command: &Command,
    server: &Server,
    held: &Arc<Mutex<&'static str>>,
    of: &'static str,
) {
    *held.lock().unwrap() = of;
    let mut child = shop.start(command, Stdio::null());
    let begun = std::time::Instant::now();
    while !server.requests().iter().any(|request| role(request) == of) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(100), "nobody asks as {of}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    *held.lock().unwrap() = "";
}

/// REQ-OR-021, REQ-OR-027
#[tokio::test]
async fn calls_of_a_path_go_on_with_its_conversation_even_after_a_kill() {
    let Some(claude) = claude() else { return };
    let held: Arc<Mutex<&'static str>> = Arc::default();
    let holding = Arc::clone(&held);
    let respond = move |request: &Request| match role(request) {
        role if role == *holding.lock().unwrap() => Answer::silence(),
        role => answer(role),
    };
    let server = Server::start(respond).await.unwrap();
    let shop = Shop::new();
    let with_key = |command: &mut Command| {
        command
            .env("ANTHROPIC_API_KEY", "sk-ant-0123456789")
            .env("ANTHROPIC_BASE_URL", server.url())
            .env("CLAUDE_CODE_MAX_RETRIES", "0");
    };
    let mut command = run(&shop, &claude, "claude");
    for setting in ["M=1", "session=path", "early_submission=false", "web_search=off"] {
        command.args(["-s", setting]);
    }
    with_key(&mut command);
    kill_at(&shop, &command, &server, &held, "summarize").await;
    let run = shop.only_run();
    let resume = || {
        let mut command = shop.command();
        command.args(["resume", run.as_str()]);
        with_key(&mut command);
        command
    };

    // What was asked before the kill is not there a second time.
    kill_at(&shop, &resume(), &server, &held, "extractor").await;
    let summarize = talk(&server, "summarize");
    assert_eq!(summarize.len(), 2, "{summarize:#?}");
    assert!(summarize[0].contains("no previous ablation study"), "{}", summarize[0]);
    let requests = server.requests();
    let newest = requests.iter().rfind(|it| role(it) == "summarize").unwrap();
    assert!(json!(newest.messages).to_string().contains("baseline 0.6, without the gain"));
    assert_eq!(talk(&server, "extractor").len(), 3);

    // Conversations that are lost are not missed for long.
    fs_err::rename(run.join("sessions"), shop.path().join("lost")).unwrap();
    let output = output(resume()).await;
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(talk(&server, "extractor").len(), 1);
    let lost: Vec<_> = warnings(&run).into_iter().filter(|it| it.contains("fresh")).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    let expected = "began a fresh conversation: that of its path cannot go on: claude ended";
    assert!(lost[0].starts_with(expected), "{lost:?}");
    assert_eq!(talk(&server, "coder").len(), 2, "and the next goes on with the fresh one");

    // Outside of paths, every call is a conversation of its own; and none pays for another.
    assert_eq!(talk(&server, "data").len(), 1);
    let costs = costs(&run);
    assert!(costs.len() >= 6, "{costs:?}");
    for (step, cost) in &costs {
        assert!((cost - costs[0].1).abs() < 1e-9, "{step} cost {cost}: {costs:?}");
    }
}
