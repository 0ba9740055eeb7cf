//! A program that is not there, hangs, lies, floods or ends when it should not.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mle_star_claude::error::Retry;
use mle_star_claude::{Answer, Cli, Conversation, Error, Message, Options, Reason, Usage, Version};
use serde_json::{Value, json};

use crate::bench::{FAKE, greeted, options, result, says, start, talk};

/// Asks something of a program that takes these steps after the prompt.
async fn ask(steps: Value) -> Result<Answer, Error> {
    let mut all = vec![json!({ "hear": 1 })];
    all.extend(steps.as_array().cloned().unwrap());
    talk(Value::Array(all)).await.ask("a question").await
}

fn reason(answer: Result<Answer, Error>) -> Reason {
    answer.unwrap_err().reason().unwrap().clone()
}

#[tokio::test]
async fn an_answer_is_put_together_from_all_blocks_and_what_is_unknown_is_kept() {
    let steps = json!([
        { "hear": 1 },
        { "raw": "[SandboxDebug] a note among the messages\n\n" },
        { "say": { "type": "system", "subtype": "from_the_future", "x": 1 } },
        { "say": { "no": "type" } },
        says("m1", "first "),
        says("m1", "and second part"),
        { "say": { "type": "assistant", "parent_tool_use_id": "t", "message": {
            "id": "m2", "model": "claude-x", "content": [{ "type": "text", "text": "to another" }] } } },
        says("m3", "another message"),
        result(json!({
            "session_id": "s", "num_turns": 2, "total_cost_usd": 0.5,
            "usage": { "input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 7 },
        })),
    ]);
    let mut conversation = talk(steps).await;
    let mut seen = Vec::new();
    let answer = conversation.ask_watched("a question", |it| seen.push(it.clone())).await;

    assert_eq!(
        answer.unwrap(),
        Answer {
            text: "first and second part\n\nanother message".to_owned(),
            structured: None,
            cost_usd: Some(0.5),
            usage: Usage {
                input_tokens: 10,
                output_tokens: 2,
                cache_creation_input_tokens: 0,
                cache_read_input_tokens: 7,
            },
            turns: 2,
            session_id: Some("s".to_owned()),
        }
    );
    let unknown = json!({ "type": "system", "subtype": "from_the_future", "x": 1 });
    assert_eq!(seen.len(), 7);
    assert_eq!(seen.first(), Some(&Message::Other(unknown)));
    assert_eq!(conversation.stop().await.unwrap().code, Some(0));
}

#[tokio::test]
async fn each_turn_costs_the_difference_to_the_last() {
    let steps = json!([
        { "hear": 1 }, result(json!({ "total_cost_usd": 0.25 })),
        { "hear": 1 }, result(json!({ "total_cost_usd": 1.0 })),
        { "hear": 1 }, result(json!({ "total_cost_usd": 9.0,
            "model_usage_since_last_result": { "a": { "costUSD": 0.5 }, "b": { "costUSD": 0.25 } } })),
    ]);
    let mut conversation = talk(steps).await;
    for cost in [0.25, 0.75, 0.75] {
        assert_eq!(conversation.ask("more").await.unwrap().cost_usd, Some(cost));
    }
}

/// REQ-OR-054
#[tokio::test]
async fn a_program_that_is_missing_too_old_or_another_one_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("claude-2.1.197");
    fs_err::copy(FAKE, &old).unwrap();
    let absent = folder.path().join("absent");

    let error = Cli::find(Some(&old)).await.unwrap_err();
    let Error::TooOld { version, oldest, .. } = &error else { panic!("{error}") };
    assert_eq!((*version, *oldest), (Version(2, 1, 197), Version::OLDEST));
    assert!(error.remedy().unwrap().contains("claude update"));

    let error = Cli::find(Some(&absent)).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert!(error.remedy().unwrap().contains("install"));

    let error = Cli::find(Some(Path::new("/bin/echo"))).await.unwrap_err();
    assert!(matches!(error, Error::NotClaude { .. }), "{error}");
    let error = Cli::find(Some(Path::new("/bin/false"))).await.unwrap_err();
    assert!(matches!(error, Error::Exited { code: Some(1), .. }), "{error}");
    assert_eq!(error.retry(), Retry::Pointless);
}

/// What is in the way passes; a run that is resumed at that moment must not fail for it.
#[tokio::test]
async fn a_program_that_there_is_no_room_for_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let starved_once = folder.path().join("claude");
    let script = format!(
        "#!/bin/sh\nmkdir \"$0.1\" 2>/dev/null || exec {FAKE} \"$@\"\n\
         echo 'sh: fork: Resource temporarily unavailable' >&2\nexit 2\n"
    );
    fs_err::write(&starved_once, script).unwrap();
    fs_err::set_permissions(&starved_once, PermissionsExt::from_mode(0o755)).unwrap();
    let cli = Cli::find(Some(&starved_once)).await.unwrap();
    assert_eq!(cli.path(), starved_once);
    assert!(folder.path().join("claude.1").exists(), "there was room at once");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let folder = Some(PathBuf::from("/nonexistent/folder"));
    let error = start(Options { folder, ..options(&json!([])) }).await.unwrap_err();
    assert_eq!(error.to_string(), "`/nonexistent/folder` cannot be started");
}

#[tokio::test]
async fn a_program_that_ends_at_its_start_is_quoted() {
    let steps = json!([{ "complain": "no such option\n" }, { "exit": 7 }]);
    let error = start(options(&steps)).await.unwrap_err();
    assert_eq!(error.to_string(), "claude ended at its start (exit code 7): no such option");

    let no_session = result(json!({ "is_error": true, "result": "No conversation found" }));
    let steps = json!([no_session, { "exit": 1 }]);
    let error = start(options(&steps)).await.unwrap_err();
    assert_eq!(error.to_string(), "claude ended at its start (exit code 1): No conversation found");
}

#[tokio::test]
async fn a_program_that_says_nothing_is_not_waited_for_for_ever() {
    let begun = Instant::now();
    let mut quick = options(&json!([{ "sleep": 60_000 }]));
    quick.limits.start = Duration::from_millis(300);
    let error = start(quick).await.unwrap_err();
    assert!(matches!(error, Error::Hung { doing: "starting", .. }), "{error}");

    let mut quick = options(&greeted(json!([{ "sleep": 60_000 }])));
    quick.limits.silence = Duration::from_millis(300);
    let error = start(quick).await.unwrap().ask("a question").await.unwrap_err();
    assert!(matches!(error, Error::Hung { doing: "answering", .. }), "{error}");
    assert_eq!(error.retry(), Retry::Later);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn nonsense_is_quoted() {
    let error = ask(json!([{ "raw": "{\"type\": \"assist\n" }])).await.unwrap_err();
    assert_eq!(error.to_string(), "claude said what makes no sense: {\"type\": \"assist");
    let error = ask(json!([{ "raw": "{\"\u{fffd}".to_owned() + "\n" }])).await.unwrap_err();
    assert!(matches!(error, Error::Garbage { .. }), "{error}");
    let deep = "{\"a\":".repeat(10_000) + "\n";
    let error = ask(json!([{ "raw": deep }])).await.unwrap_err();
    assert!(matches!(error, Error::Garbage { .. }), "{error}");
    // An end that does not say whether it is one in success.
    let steps = json!([{ "say": { "type": "result", "subtype": "success", "result": "hm" } }]);
    let error = ask(steps).await.unwrap_err();
    assert!(matches!(error, Error::Garbage { .. }), "{error}");
}

#[tokio::test]
async fn a_program_that_ends_in_the_middle_is_quoted() {
    let steps = json!([says("m", "well"), { "complain": "out of memory\n" }, { "exit": 3 }]);
    let error = ask(steps).await.unwrap_err();
    let told = "claude ended in the middle of a conversation (exit code 3): out of memory";
    assert_eq!(error.to_string(), told);
    assert_eq!(error.retry(), Retry::Later);
}

#[tokio::test]
async fn long_lines_are_read_and_endless_ones_are_not() {
    let long = "x".repeat(3_000_000);
    let line =
        json!({ "type": "assistant", "message": { "id": "m", "model": "c", "content": long } });
    let head = "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"model\":\"c\",\"content\":\"";
    assert!(line.to_string().starts_with(head));
    let steps = json!([
        { "raw": head }, { "raw": "x".repeat(1000), "times": 3000 }, { "raw": "\"}}\n" }, result(json!({})),
    ]);
    assert!(ask(steps).await.unwrap().text == long);

    let endless = |text: &str| json!([{ "raw": text.repeat(1000), "times": 1_000_000 }]);
    let flooded = |answer: Result<Answer, Error>| {
        let error = answer.unwrap_err();
        if let Error::Flooded { what, .. } = error { what } else { panic!("{error}") }
    };
    assert_eq!(flooded(ask(endless("{")).await), "in one line");
    assert_eq!(flooded(ask(endless("a note\n")).await), "that are no messages");
    let chatter = says("m", &"blah ".repeat(10_000));
    let chatter = json!([{ "say": chatter["say"], "times": 1_000_000 }]);
    assert_eq!(flooded(ask(chatter).await), "in one answer");
}

#[tokio::test]
async fn a_flood_of_messages_ends_with_the_time_for_the_answer() {
    let unknown = json!({ "say": { "type": "x", "y": "z".repeat(1000) }, "times": 100_000_000 });
    let mut quick = options(&greeted(json!([{ "hear": 1 }, unknown])));
    quick.limits.answer = Duration::from_millis(500);
    let begun = Instant::now();
    let answer = start(quick).await.unwrap().ask("a question").await;
    assert_eq!(reason(answer), Reason::OutOfTime);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn neither_side_gets_stuck_when_both_have_much_to_say() {
    // The program complains and talks before it reads; the prompt is larger than any pipe.
    let steps = json!([
        { "complain": "c".repeat(1000), "times": 1000 },
        { "say": { "type": "x", "y": "z".repeat(1000) }, "times": 2000 },
        { "hear": 1 },
        result(json!({ "result": "read" })),
    ]);
    let answer = talk(steps).await.ask(&"p".repeat(3_000_000)).await.unwrap();
    assert_eq!(answer.text, "read");
}

/// REQ-OR-027
#[tokio::test]
async fn every_failure_has_a_reason_and_keeps_its_cost() {
    let failed = |status: Value, more: Value| {
        let made_up =
            json!({ "model": "<synthetic>", "content": [{ "type": "text", "text": "!" }] });
        let error = more.get("error").cloned().unwrap_or_default();
        let mut end = json!({
            "is_error": true, "result": "API Error", "api_error_status": status,
            "terminal_reason": "api_error", "total_cost_usd": 0.25,
        });
        end.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        json!([{ "say": { "type": "assistant", "error": error, "message": made_up } }, result(end)])
    };
    let subtype = |name: &str| json!({ "subtype": name, "terminal_reason": name });
    let none = Value::Null;
    let cases = [
        (failed(json!(401), json!({})), Reason::Unauthenticated, Retry::Pointless),
        (
            failed(none.clone(), json!({ "error": "authentication_failed" })),
            Reason::Unauthenticated,
            Retry::Pointless,
        ),
        (failed(json!(403), json!({})), Reason::Forbidden, Retry::Pointless),
        (failed(json!(404), json!({})), Reason::NoSuchModel, Retry::Pointless),
        (failed(json!(400), json!({})), Reason::BadRequest(400), Retry::Pointless),
        (
            failed(json!(400), json!({ "result": "Prompt is too long" })),
            Reason::PromptTooLong,
            Retry::Pointless,
        ),
        (
            failed(
                json!(400),
                json!({ "result": "You have reached your specified API usage limits" }),
            ),
            Reason::Unpaid,
            Retry::Pointless,
        ),
        (failed(json!(400), json!({ "error": "billing_error" })), Reason::Unpaid, Retry::Pointless),
        (
            failed(json!(400), json!({ "result": "Output blocked by content filtering policy" })),
            Reason::Declined,
            Retry::Pointless,
        ),
        (failed(json!(413), json!({})), Reason::PromptTooLong, Retry::Pointless),
        (failed(json!(429), json!({})), Reason::RateLimited, Retry::Later),
        (failed(json!(500), json!({})), Reason::Service(500), Retry::Later),
        (failed(json!(529), json!({})), Reason::Overloaded, Retry::Later),
        (failed(none.clone(), json!({ "error": "unknown" })), Reason::Connection, Retry::Later),
        (
            failed(none.clone(), json!({ "stop_reason": "refusal" })),
            Reason::Declined,
            Retry::Pointless,
        ),
        (failed(none.clone(), subtype("error_max_turns")), Reason::MaxTurns, Retry::Pointless),
        (failed(none.clone(), subtype("error_max_budget_usd")), Reason::Budget, Retry::Pointless),
        (
            failed(none.clone(), subtype("error_max_structured_output_retries")),
            Reason::Unstructured,
            Retry::Pointless,
        ),
        (
            failed(none, subtype("error_from_the_future")),
            Reason::Other("error_from_the_future".to_owned()),
            Retry::Pointless,
        ),
    ];
    for (steps, expected, retry) in cases {
        let error = ask(steps).await.unwrap_err();
        assert_eq!(error.reason(), Some(&expected), "{error}");
        assert_eq!((error.retry(), error.cost_usd()), (retry, Some(0.25)), "{error}");
    }
}

#[tokio::test]
async fn a_reply_without_the_structure_that_was_asked_for_is_a_failure() {
    let schema = Some(json!({ "type": "object" }));
    let steps = greeted(json!([
        { "hear": 1 }, result(json!({ "result": "prose", "total_cost_usd": 0.5 })),
        { "hear": 1 }, result(json!({ "structured_output": { "a": 1 } })),
    ]));
    let mut conversation = start(Options { schema, ..options(&steps) }).await.unwrap();
    let error = conversation.ask("a question").await.unwrap_err();
    assert_eq!((error.reason(), error.cost_usd()), (Some(&Reason::Unstructured), Some(0.5)));
    let answer = conversation.ask("again").await.unwrap();
    assert_eq!(answer.structured, Some(json!({ "a": 1 })));
}

#[tokio::test]
async fn a_prompt_is_sent_as_it_is() {
    let prompt = "/help @file \u{0} \u{1f980}\nnext";
    let mut conversation: Conversation = talk(json!([{ "hear": 1 }, { "tell": true }])).await;
    let told = conversation.ask(prompt).await.unwrap().text;
    let heard: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        heard,
        json!([{
            "type": "user",
            "session_id": "",
            "message": { "role": "user", "content": prompt },
            "parent_tool_use_id": null,
            "client_composed": true,
        }])
    );
}
