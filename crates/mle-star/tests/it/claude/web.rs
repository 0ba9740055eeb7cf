//! Endpoints that search the web, and endpoints that do not.

use camino::Utf8PathBuf;
use mle_star_search::event::Output;
use mle_star_wire::{Answer, Request, Server, Usage};
use serde_json::{Value, json};

use super::{claude, output, run, said, wanted};
use crate::playbook::warnings;
use crate::shop::{Shop, records};

/// What the endpoint does with a request to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Searches,
    Refuses,
    FindsNothing,
}

/// What the model does when it was told what its search has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Answers,
    GivesUpWithoutTheWeb,
    NeverSearches,
}

const USAGE: Usage = Usage { input: 1000, output: 100, cache_creation: 0, cache_read: 0 };

fn is_search(request: &Request) -> bool {
    let kinds = request.tools.iter().filter_map(|tool| tool["type"].as_str());
    kinds.into_iter().any(|kind| kind.starts_with("web_search"))
}

fn search(endpoint: Endpoint) -> Answer {
    let asked = json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": { "query": "models" } });
    let found = |pages: Value| {
        let found = json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
            "content": pages });
        Answer::empty().and_block(asked.clone()).and_block(found).and_text("That is all.")
    };
    match endpoint {
        Endpoint::Searches => found(json!([{ "type": "web_search_result", "title": "Ridge",
            "url": "https://example.org/ridge", "encrypted_content": "" }])),
        Endpoint::FindsNothing => found(json!([])),
        Endpoint::Refuses => {
            Answer::error(400, "invalid_request_error", "tools.0: unknown type web_search")
        }
    }
}

/// Runs until the models are found, and gives the run, the requests, and what was said.
async fn retrieve(
    endpoint: Endpoint,
    model: Model,
    settings: &[&str],
) -> Option<(Shop, Utf8PathBuf, Server, String)> {
    let claude = claude()?;
    let models = json!({ "models": [{ "model_name": "ridge", "example_code": "fit()" }] });
    let respond = move |request: &Request| {
        if is_search(request) {
            return search(endpoint);
        }
        if wanted(request).as_deref() != Some("models") {
            return Answer::error(401, "authentication_error", "enough");
        }
        let has_searched = request.messages.iter().any(|it| it["role"] == "assistant");
        match model {
            Model::NeverSearches => Answer::tool_use("StructuredOutput", models.clone()),
            _ if request.has_tool("WebSearch") && !has_searched => {
                Answer::tool_use("WebSearch", json!({ "query": "models" }))
            }
            Model::GivesUpWithoutTheWeb if request.has_tool("WebSearch") => {
                Answer::text("I cannot search the web.")
            }
            _ => Answer::tool_use("StructuredOutput", models.clone()),
        }
        .with_usage(USAGE)
    };
    let server = Server::start(respond).await.unwrap();
    let shop = Shop::new();
    let mut command = run(&shop, &claude, "claude");
    for setting in [&["M=1"], settings].concat() {
        command.args(["-s", setting]);
    }
    command
        .env("ANTHROPIC_API_KEY", "sk-ant-0123456789")
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
    let output = output(command).await;
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let run = shop.only_run();
    Some((shop, run, server, said))
}

/// The warnings of a run, which must be told wherever people look.
fn loud(run: &Utf8PathBuf, said: &str) -> Vec<String> {
    let warnings = warnings(run);
    let log = fs_err::read_to_string(run.join("log.jsonl")).unwrap();
    let report = fs_err::read_to_string(run.join("report.md")).unwrap();
    // Lines are cut in a terminal, and marked in a report.
    let plain =
        |text: &str| text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ");
    for warning in &warnings {
        assert!(log.contains(&format!("{}", json!(warning))), "{log}");
        let beginning: String = warning.chars().take(80).collect();
        assert!(plain(said).contains(&plain(&beginning)), "{said}");
        assert!(plain(&report).contains(&plain(warning)), "{report}");
    }
    warnings
}

fn retriever_cost(run: &Utf8PathBuf) -> f64 {
    let records = records(run);
    let mut asked = records.iter().filter_map(|record| match record.finished()? {
        (_, Output::Asked { reply, .. }) => reply.cost_usd,
        _ => None,
    });
    asked.next().unwrap()
}

#[tokio::test]
async fn models_found_on_the_web_need_no_warning() {
    let found = retrieve(Endpoint::Searches, Model::Answers, &[]).await;
    let Some((_shop, run, server, said)) = found else { return };
    assert_eq!(loud(&run, &said), [""; 0]);
    assert!(server.requests().iter().any(|request| is_search(request)));
}

/// REQ-P1-007
#[tokio::test]
async fn without_web_search_the_retriever_answers_from_its_own_knowledge_and_that_is_said() {
    let could_not = "could not be searched through this endpoint";
    for (endpoint, model, how) in [
        (
            Endpoint::Refuses,
            Model::Answers,
            format!("{could_not} (API Error: 400 tools.0: unknown type web_search)"),
        ),
        (Endpoint::FindsNothing, Model::Answers, format!("{could_not} (That is all.)")),
        (Endpoint::Searches, Model::NeverSearches, "was not searched".to_owned()),
    ] {
        let retrieved = retrieve(endpoint, model, &[]).await;
        let Some((_shop, run, _server, said)) = retrieved else { return };
        let expected = format!("answered from the model's own knowledge: the web {how}");
        assert_eq!(loud(&run, &said), [expected]);
    }
}

#[tokio::test]
async fn a_model_that_gives_up_without_the_web_is_asked_again_without_it() {
    let refused = retrieve(Endpoint::Refuses, Model::GivesUpWithoutTheWeb, &[]).await;
    let Some((_shop, run, server, said)) = refused else { return };
    let warnings = loud(&run, &said);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("answered from the model's own knowledge"), "{warnings:?}");
    let requests = server.requests();
    let last = requests.iter().rfind(|request| wanted(request).as_deref() == Some("models"));
    let last = last.unwrap();
    assert!(!last.has_tool("WebSearch") && !last.has_tool("WebFetch"));
    // Both conversations were paid for: with and without the web.
    let paid = requests.iter().filter(|it| wanted(it).is_some() && !is_search(it)).count();
    let one = 1000.0 * 2e-6 + 100.0 * 10e-6;
    let cost = retriever_cost(&run);
    assert!((cost - one * paid as f64).abs() < 1e-9, "{cost} for {paid} requests");
}

#[tokio::test]
async fn a_search_that_is_switched_off_is_not_tried_and_that_is_said() {
    let off = retrieve(Endpoint::Searches, Model::Answers, &["web_search=off"]).await;
    let Some((_shop, run, server, said)) = off else { return };
    let expected = "web_search is off: A_retriever names models from its own knowledge";
    assert_eq!(loud(&run, &said), [expected]);
    for request in server.requests() {
        assert!(!is_search(&request) && !request.has_tool("WebSearch"));
        assert!(!request.has_tool("WebFetch"));
    }
}
