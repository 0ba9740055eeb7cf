//! What the program asks of us while it works on an answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mle_star_claude::hooks::Granted;
use mle_star_claude::{
    Error, Hook, Options, Permission, StopDecision, Tool, ToolCall, ToolDecision, ToolDone,
    ToolServer,
};
use serde_json::{Value, json};

use crate::bench::{greeted, options, start};

fn hook_call(id: &str, callback: &str, input: Value) -> Value {
    let request = json!({ "subtype": "hook_callback", "callback_id": callback, "input": input });
    json!({ "say": { "type": "control_request", "request_id": id, "request": request } })
}

fn request(id: &str, request: Value) -> Value {
    json!({ "say": { "type": "control_request", "request_id": id, "request": request } })
}

/// What the program hears in answer to its requests, in the order in which it hears it.
async fn heard(options: Options, requests: Vec<Value>) -> Vec<Value> {
    let count = requests.len();
    let mut steps = vec![json!({ "hear": 1 })];
    steps.extend(requests);
    steps.extend([json!({ "hear": count }), json!({ "tell": true })]);
    let steps = greeted(Value::Array(steps));
    let environment = options.environment.clone().with("FAKE", steps.to_string());
    let mut conversation = start(Options { environment, ..options }).await.unwrap();
    let told = conversation.ask("a question").await.unwrap().text;
    let heard: Vec<Value> = serde_json::from_str(&told).unwrap();
    heard.into_iter().skip(1).filter_map(|line| line.get("response").cloned()).collect()
}

fn denied(id: &str, reason: &str) -> Value {
    json!({ "subtype": "success", "request_id": id, "response": { "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    } } })
}

fn passed(id: &str) -> Value {
    json!({ "subtype": "success", "request_id": id, "response": {} })
}

/// REQ-OR-033
#[tokio::test]
async fn a_hook_decides_and_one_that_fails_denies() {
    let policy = Hook::before_tool(Some("Bash"), |call: ToolCall| async move {
        match call.input["command"].as_str() {
            Some("ls") => Ok(ToolDecision::Pass),
            Some("rm") => Ok(ToolDecision::Deny { reason: "not this".to_owned() }),
            Some("panic") => panic!("in a hook"),
            Some("hang") => std::future::pending().await,
            _ => Err("what is that?"),
        }
    });
    let bash =
        |command: Value| json!({ "tool_name": "Bash", "tool_input": { "command": command } });
    let options = Options { hooks: vec![policy], ..options(&json!([])) };
    let requests = vec![
        hook_call("1", "hook_0", bash(json!("ls"))),
        hook_call("2", "hook_0", bash(json!("rm"))),
        hook_call("3", "hook_0", bash(json!("panic"))),
        hook_call("4", "hook_0", bash(json!("hang"))),
        hook_call("5", "hook_0", bash(json!(["not", "a", "text"]))),
        hook_call("6", "hook_9", bash(json!("ls"))),
    ];
    let mut heard = heard(options, requests).await;
    heard.sort_by_key(|it| it["request_id"].as_str().unwrap().to_owned());
    assert_eq!(
        heard,
        [
            passed("1"),
            denied("2", "not this"),
            denied("3", "the check of this tool failed: it panicked"),
            denied("4", "the check of this tool failed: it took too long"),
            denied("5", "the check of this tool failed: what is that?"),
            // The program blocks on an error, as it was told to.
            json!({ "subtype": "error", "request_id": "6", "error": "there is no such hook" }),
        ]
    );
}

#[tokio::test]
async fn hooks_work_side_by_side_and_one_that_is_cancelled_does_not_answer() {
    let slow = Hook::before_tool(None, |call: ToolCall| async move {
        let wait = call.input["wait"].as_u64().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(wait)).await;
        Ok::<_, Error>(ToolDecision::Pass)
    });
    let waits = |ms: u64| json!({ "tool_name": "x", "tool_input": { "wait": ms } });
    let mut steps = vec![json!({ "hear": 1 })];
    steps.extend([
        hook_call("slow", "hook_0", waits(600)),
        hook_call("cancelled", "hook_0", waits(300)),
        hook_call("quick", "hook_0", waits(0)),
        json!({ "say": { "type": "control_cancel_request", "request_id": "cancelled" } }),
        json!({ "say": { "type": "control_response", "response": { "request_id": "never asked" } } }),
        json!({ "hear": 2 }),
        json!({ "tell": true }),
    ]);
    let options = Options { hooks: vec![slow], ..options(&greeted(Value::Array(steps))) };
    let told = start(options).await.unwrap().ask("a question").await.unwrap().text;
    let heard: Vec<Value> = serde_json::from_str(&told).unwrap();
    let answers: Vec<Value> = heard.into_iter().skip(1).map(|it| it["response"].clone()).collect();
    assert_eq!(answers, [passed("quick"), passed("slow")]);
}

/// REQ-OR-031, REQ-OR-035
#[tokio::test]
async fn what_tools_did_is_told_afterwards_and_a_stop_can_be_refused() {
    let seen: Arc<Mutex<Vec<ToolDone>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let watch = Hook::after_tool(None, move |done| {
        notes.lock().unwrap().push(done);
        async {}
    });
    let go_on = Hook::at_stop(|| async { StopDecision::GoOn { reason: "not yet".to_owned() } });
    let stop = Hook::at_subagent_stop(|| async { StopDecision::Stop });
    let hooks = watch.into_iter().chain([go_on, stop]).collect();
    let worked = json!({
        "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_response": "a b",
        "duration_ms": 1500, "agent_id": "inner",
    });
    let failed = json!({ "tool_name": "Read", "tool_input": {}, "error": "no such file" });
    let requests = vec![
        hook_call("1", "hook_0", worked),
        hook_call("2", "hook_1", failed),
        hook_call("3", "hook_2", json!({})),
        hook_call("4", "hook_3", json!({})),
    ];
    let mut heard = heard(Options { hooks, ..options(&json!([])) }, requests).await;
    heard.sort_by_key(|it| it["request_id"].as_str().unwrap().to_owned());
    let refused = json!({ "decision": "block", "reason": "not yet" });
    let refused = json!({ "subtype": "success", "request_id": "3", "response": refused });
    assert_eq!(heard, [passed("1"), passed("2"), refused, passed("4")]);
    let worked = ToolDone {
        tool: "Bash".to_owned(),
        input: json!({ "command": "ls" }),
        response: json!("a b"),
        error: None,
        duration: Some(Duration::from_millis(1500)),
        agent_id: Some("inner".to_owned()),
    };
    let failed = ToolDone {
        tool: "Read".to_owned(),
        input: json!({}),
        response: Value::Null,
        error: Some("no such file".to_owned()),
        duration: None,
        agent_id: None,
    };
    assert_eq!(*seen.lock().unwrap(), [worked, failed]);
}

/// REQ-OR-009
#[tokio::test]
async fn permission_is_asked_for_and_nobody_there_means_no() {
    let ask = |id: &str, tool: &str| {
        request(id, json!({ "subtype": "can_use_tool", "tool_name": tool, "input": { "x": 1 } }))
    };
    let permission = Permission::new(|call: ToolCall| async move {
        match call.tool.as_str() {
            "Read" => Ok(Granted::Allow),
            "Write" => Ok(Granted::AllowInstead(json!({ "x": 2 }))),
            "Bash" => Ok(Granted::Deny { reason: "no shell".to_owned() }),
            _ => Err("unheard of"),
        }
    });
    let requests = ["Read", "Write", "Bash", "Other"].map(|tool| ask(tool, tool)).into();
    let with = Options { permission: Some(permission), ..options(&json!([])) };
    let mut heard_with = heard(with, requests).await;
    heard_with.sort_by_key(|it| it["request_id"].as_str().unwrap().to_owned());
    let answers: Vec<&Value> = heard_with.iter().map(|it| &it["response"]).collect();
    let no_check = "the check of this tool failed: unheard of";
    assert_eq!(
        answers,
        [
            &json!({ "behavior": "deny", "message": "no shell" }),
            &json!({ "behavior": "deny", "message": no_check }),
            &json!({ "behavior": "allow", "updatedInput": { "x": 1 } }),
            &json!({ "behavior": "allow", "updatedInput": { "x": 2 } }),
        ]
    );
    let heard_without = heard(options(&json!([])), vec![ask("1", "Read")]).await;
    assert_eq!(heard_without[0]["subtype"], "error");
}

/// REQ-OR-010
#[tokio::test]
async fn tools_of_this_process_are_called_and_strange_requests_are_refused() {
    let greet = Tool::new("greet", "Greets.", json!({ "type": "object" }), |input| async move {
        Ok(format!("hello {}", input["name"].as_str().unwrap_or_default()))
    });
    let servers = vec![ToolServer::new("mle", [greet])];
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "greet", "arguments": { "name": "you" } } });
    let to =
        |server: &str| json!({ "subtype": "mcp_message", "server_name": server, "message": call });
    let requests = vec![
        request("1", to("mle")),
        request("2", to("other")),
        request("3", json!({ "subtype": "from_the_future" })),
    ];
    let mut heard = heard(Options { servers, ..options(&json!([])) }, requests).await;
    heard.sort_by_key(|it| it["request_id"].as_str().unwrap().to_owned());
    let content = json!([{ "type": "text", "text": "hello you" }]);
    assert_eq!(
        heard[0]["response"]["mcp_response"]["result"],
        json!({ "content": content, "isError": false })
    );
    assert_eq!(heard[1]["response"]["mcp_response"]["error"]["code"], -32601);
    assert_eq!(heard[2]["subtype"], "error");
}

#[tokio::test]
async fn a_program_that_would_run_tools_whose_hooks_fail_is_not_used() {
    let hook = || Hook::before_tool(None, |_| async { Ok::<_, Error>(ToolDecision::Pass) });
    for told in [
        json!({ "claude_code_version": "2.1.197", "hooks_applied": true }),
        json!({ "claude_code_version": "2.1.325", "hook_on_failure_supported": true }),
    ] {
        let without = options(&json!([{ "greet": told }]));
        let with = Options { hooks: vec![hook()], ..without.clone() };
        let error = start(with).await.unwrap_err();
        assert!(matches!(error, Error::HooksFailOpen { .. }), "{error}");
        assert!(error.remedy().unwrap().contains("claude update"));
        start(without).await.unwrap();
    }
}
