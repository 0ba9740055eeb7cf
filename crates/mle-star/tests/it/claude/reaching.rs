//! The way to the model, and who decides on the way.

use std::process::Command;
use std::sync::mpsc;

use camino::Utf8Path;
use mle_star::models::ConfigLayer;
use mle_star::permission::{Granted, Permission, ToolCall};
use mle_star::task_file::{TaskOptions, read_task};
use mle_star::{Agents, Pipeline};
use mle_star_wire::{Answer, Request, Server};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::{claude, output, run, said, wanted};
use crate::shop::Shop;

#[tokio::test]
async fn a_proxy_stands_between_the_forwarder_and_the_model_but_not_before_the_forwarder() {
    let Some(claude) = claude() else { return };
    // A server that is asked for the address of another is a proxy.
    let proxy = Server::start(|_: &Request| Answer::error(401, "authentication_error", "enough"));
    let proxy = proxy.await.unwrap();
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let before = proxy.requests().len();
        let shop = Shop::new();
        let mut command = run(&shop, &claude, "claude");
        command
            .env("ANTHROPIC_API_KEY", "sk-ant-0123456789")
            .env("ANTHROPIC_BASE_URL", "http://model.invalid")
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .env(variable, proxy.url());
        let output = output(command).await;
        let said = said(&output);
        assert!(said.contains("the agent refused our credentials"), "{variable}: {said}");
        let requests = proxy.requests();
        let asked = requests.get(before).unwrap();
        assert_eq!(asked.header("host"), Some("model.invalid"), "{variable}");
        assert_eq!(asked.header("x-api-key"), Some("sk-ant-0123456789"), "{variable}");
    }
}

/// The first line and the headers of what is sent to a port, each time anew.
async fn overheard(port: tokio::net::TcpListener) -> String {
    let (mut connection, _) = port.accept().await.unwrap();
    let mut heard = Vec::new();
    while !heard.windows(4).any(|it| it == b"\r\n\r\n") {
        if connection.read_buf(&mut heard).await.unwrap() == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&heard).into_owned()
}

#[tokio::test]
async fn where_requests_are_signed_the_program_gets_the_proxy_and_goes_by_itself() {
    let Some(claude) = claude() else { return };
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", port.local_addr().unwrap());
    let shop = Shop::new();
    let mut command = run(&shop, &claude, "claude");
    command
        .env("CLAUDE_CODE_USE_BEDROCK", "1")
        .env("AWS_ACCESS_KEY_ID", "id")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-central-1")
        .env("ANTHROPIC_BEDROCK_BASE_URL", "http://bedrock.invalid")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .env("HTTP_PROXY", &proxy)
        .env("HTTPS_PROXY", &proxy);
    let mut child = shop.start(&command, std::process::Stdio::null());
    let heard = tokio::time::timeout(std::time::Duration::from_secs(100), overheard(port)).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let heard = heard.unwrap();
    let first = heard.lines().next().unwrap_or_default();
    assert!(first.contains("bedrock.invalid"), "{heard}");
}

/// Set in the process that runs the library: its agents are reached through variables.
const INSIDE: &str = "PERMISSION_OF_A_LIBRARY";

/// REQ-OR-009
#[tokio::test]
async fn a_caller_of_the_library_decides_on_the_use_of_tools() {
    let Some(claude) = claude() else { return };
    if let Ok(folder) = std::env::var(INSIDE) {
        return ask_for_permission(Utf8Path::new(&folder), &claude).await;
    }
    let models = json!({ "models": [{ "model_name": "ridge", "example_code": "fit()" }] });
    let respond = move |request: &Request| {
        if wanted(request).is_some() {
            return Answer::tool_use("StructuredOutput", models.clone());
        }
        let done = request.messages.iter().filter(|it| it["role"] == "assistant").count();
        let bash = |command: &str| Answer::tool_use("Bash", json!({ "command": command }));
        match done {
            0 => bash("touch denied"),
            1 => bash("touch allowed"),
            2 => bash("rm -rf ../../.."), // for the policy, not for the caller
            3 => bash("ls"),
            _ => Answer::error(401, "authentication_error", "enough"),
        }
    };
    let server = Server::start(respond).await.unwrap();
    let shop = Shop::new();
    let test = "claude::reaching::a_caller_of_the_library_decides_on_the_use_of_tools";
    let mut inside = Command::new(std::env::current_exe().unwrap());
    inside
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, shop.path())
        .env("ANTHROPIC_API_KEY", "sk-ant-0123456789")
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
    let inside = tokio::task::spawn_blocking(move || inside.output().unwrap()).await.unwrap();
    assert!(inside.status.success(), "{}", said(&inside));
    let requests = server.requests();
    let results: Vec<_> = requests.iter().flat_map(|request| request.tool_results()).collect();
    let failed: Vec<bool> = results.iter().map(|it| it.is_error).collect();
    assert_eq!(failed, [true, false, true, false], "{results:?}");
    assert!(results[0].text.contains("not this file"), "{results:?}");
    assert!(results[3].text.starts_with("allowed"), "{results:?}");
}

/// What the caller of a library does, in a process of its own.
async fn ask_for_permission(folder: &Utf8Path, claude: &Utf8Path) {
    let (asked, questions) = mpsc::channel();
    let permission = Permission::new(move |call: ToolCall| {
        let command = call.input.get("command").and_then(|it| it.as_str()).unwrap().to_owned();
        asked.send(command.clone()).unwrap();
        async move {
            match command.contains("allowed") {
                true => Ok::<_, &str>(Granted::Allow),
                false => Ok(Granted::Deny { reason: "not this file".to_owned() }),
            }
        }
    });
    let pairs = ["M=1", "tool_profile=wide", "web_search=off"];
    let settings = ConfigLayer {
        claude_path: Some(claude.to_owned()),
        ..ConfigLayer::from_pairs(pairs).unwrap()
    };
    let task = read_task(&folder.join("shop"), &TaskOptions::default()).unwrap();
    let ended = Pipeline::new(task)
        .python(Some("python3".into()))
        .supervisor(env!("CARGO_BIN_EXE_mle-star"))
        .settings(settings)
        .agents(Agents::Claude)
        .runs(folder.join("runs"))
        .permission(permission)
        .run()
        .await;
    assert!(ended.unwrap_err().to_string().contains("has no result"));
    assert_eq!(questions.iter().collect::<Vec<_>>(), ["touch denied", "touch allowed"]);
}
