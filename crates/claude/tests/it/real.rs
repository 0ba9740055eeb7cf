//! The real program, talking to a server on loopback that says what the test wants.
//!
//! No key, no other address. Commands that do damage do it in a folder of the test.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mle_star_claude::error::Retry;
use mle_star_claude::hooks::Granted;
use mle_star_claude::{
    Answer, Cli, Conversation, Environment, Error, Hook, Limits, Message, Options, Permission,
    PermissionMode, Reason, Session, Tool, ToolCall, ToolDecision, ToolServer, Uuid,
};
use mle_star_wire::{self as wire, Request, Respond, Script, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::bench::{eventually, keeper, mark, processes_with};
use crate::binary::claude;

/// A place with the real program, a server, and a folder to work in.
struct Place {
    cli: Cli,
    server: Server,
    home: tempfile::TempDir,
    folder: tempfile::TempDir,
}

impl Place {
    /// `None` if the program cannot be had.
    async fn new(responder: impl Respond) -> Option<Self> {
        let program = claude(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
        Some(Self {
            cli: Cli::find(Some(&program)).await.unwrap().launched(keeper()),
            server: Server::start(responder).await.unwrap(),
            home: tempfile::tempdir().unwrap(),
            folder: tempfile::tempdir().unwrap(),
        })
    }

    fn options(&self) -> Options {
        let mut environment = Environment::default()
            .inherit(|name| name == "PATH")
            .with("HOME", self.home.path())
            .with("TMPDIR", self.home.path())
            .with("ANTHROPIC_API_KEY", "sk-ant-none")
            .with("ANTHROPIC_BASE_URL", self.server.url())
            .with("CLAUDE_CODE_MAX_RETRIES", "2");
        if rustix::process::geteuid().is_root() {
            environment = environment.with("IS_SANDBOX", "1"); // nothing here can do damage
        }
        Options {
            model: Some("sonnet".to_owned()),
            system_prompt: "You are a test.".to_owned(),
            permission_mode: PermissionMode::Bypass,
            folder: Some(self.folder.path().to_owned()),
            environment,
            limits: Limits { answer: Duration::from_secs(100), ..Limits::default() },
            ..Options::default()
        }
    }

    async fn start(&self, options: Options) -> Conversation {
        Conversation::start(&self.cli, options).await.unwrap()
    }

    /// One question, one answer.
    async fn ask(&self, options: Options) -> Result<Answer, Error> {
        let mut conversation = self.start(options).await;
        let answer = conversation.ask("a question").await;
        conversation.stop().await.unwrap();
        answer
    }

    fn is_there(&self, file: &str) -> bool {
        self.folder.path().join(file).exists()
    }
}

/// The names of all files below `folder`.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let names = entries.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path.display().to_string()],
    });
    names.collect()
}

fn usage(input: u64, output: u64) -> wire::Usage {
    wire::Usage { input, output, ..wire::Usage::default() }
}

fn bash(command: &str) -> wire::Answer {
    wire::Answer::tool_use("Bash", json!({ "command": command, "description": "a test" }))
}

/// What the last request says that tools gave.
fn last_results(server: &Server) -> Vec<wire::ToolResult> {
    server.requests().last().unwrap().tool_results()
}

/// REQ-OR-005, REQ-OR-007, REQ-OR-021, REQ-OR-027
#[tokio::test]
async fn a_question_is_answered_and_every_turn_has_its_own_cost() {
    let say = |text: &str| wire::Answer::text(text).with_usage(usage(1000, 100));
    let answers = [say("Forty-"), say("two.")];
    let Some(place) = Place::new(Script::new(answers)).await else { return };
    let id = Uuid::new_v4();
    let options = Options { session: Session::Named(id), ..place.options() };
    let mut conversation = place.start(options).await;
    let prompt = "/help me with @everything\n6 times 7?";
    let first = conversation.ask(prompt).await.unwrap();
    let second = conversation.ask("And?").await.unwrap();
    assert_eq!(conversation.stop().await.unwrap().code, Some(0));

    assert_eq!((first.text.as_str(), second.text.as_str()), ("Forty-", "two."));
    assert_eq!((first.usage.input_tokens, first.usage.output_tokens), (1000, 100));
    assert_eq!(first.session_id, Some(id.to_string()));
    // The same tokens cost the same, although the program counts on.
    let (cost, again) = (first.cost_usd.unwrap(), second.cost_usd.unwrap());
    assert!(cost > 0.0 && (cost - again).abs() < 1e-9, "{cost} {again}");
    let requests = place.server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].user_texts(), [prompt], "nothing is read into the prompt");
    assert!(requests[0].system.ends_with("You are a test."), "{}", requests[0].system);
    assert_eq!(requests[0].session, Some(id.to_string()));
    assert_eq!(requests[0].header("x-api-key"), Some("sk-ant-none"));
    let tools: Vec<&Value> = requests[0].tools.iter().map(|tool| &tool["name"]).collect();
    assert!(tools.is_empty(), "no tools were asked for: {tools:?}");
}

/// REQ-OR-052
#[tokio::test]
async fn a_session_goes_on_in_another_process_and_costs_only_what_is_new() {
    let say = |text: &str| wire::Answer::text(text).with_usage(usage(1000, 100));
    let Some(place) = Place::new(Script::new([say("one"), say("two"), say("three")])).await else {
        return;
    };
    let id = Uuid::new_v4();
    let first =
        place.ask(Options { session: Session::Named(id), ..place.options() }).await.unwrap();
    let second =
        place.ask(Options { session: Session::Resume(id), ..place.options() }).await.unwrap();
    assert_eq!((first.text.as_str(), second.text.as_str()), ("one", "two"));
    let (cost, again) = (first.cost_usd.unwrap(), second.cost_usd.unwrap());
    assert!((cost - again).abs() < 1e-9, "{cost} {again}");
    assert_eq!(place.server.requests()[1].user_texts().len(), 2, "it remembers");

    let unrecorded = Uuid::new_v4();
    let session = Session::Unrecorded(unrecorded);
    place.ask(Options { session, ..place.options() }).await.unwrap();
    let records = |id: Uuid| files(place.home.path()).iter().any(|it| it.contains(&id.to_string()));
    assert!(records(id) && !records(unrecorded));

    let unknown = Options { session: Session::Resume(Uuid::new_v4()), ..place.options() };
    let error = Conversation::start(&place.cli, unknown).await.unwrap_err();
    assert!(matches!(error, Error::Exited { code: Some(1), .. }), "{error}");
    assert!(error.to_string().contains("No conversation found"), "{error}");
}

/// REQ-OR-021, REQ-OR-028
#[tokio::test]
async fn a_copy_of_a_session_has_its_own_id_and_budget_and_leaves_the_session_as_it_was() {
    let say = |text: &str| wire::Answer::text(text).with_usage(usage(1000, 100));
    let answers = ["one", "two", "three", "four"].map(say);
    let Some(place) = Place::new(Script::new(answers)).await else { return };
    let [first, second, third, other] = [(); 4].map(|()| Uuid::new_v4());
    let ask = async |session: Session, prompt: &str, max_budget_usd: Option<f64>| {
        let system_prompt = format!("You are told {prompt}.");
        let options = Options { session, system_prompt, max_budget_usd, ..place.options() };
        place.ask(options).await.unwrap()
    };
    let cost = ask(Session::Named(first), "one", None).await.cost_usd.unwrap();
    ask(Session::Fork { from: first, to: second }, "two", None).await;
    // More was spent on the session than this one may cost, but not by this one.
    let session = Session::Fork { from: second, to: third };
    let answer = ask(session, "three", Some(1.5 * cost)).await;
    assert_eq!(answer.session_id, Some(third.to_string()));
    assert!((answer.cost_usd.unwrap() - cost).abs() < 1e-9, "{answer:?}");
    ask(Session::Fork { from: first, to: other }, "four", None).await;

    let requests = place.server.requests();
    let turns: Vec<usize> = requests.iter().map(|request| request.user_texts().len()).collect();
    assert_eq!(turns, [1, 2, 3, 2]);
    let ids: Vec<_> = requests.iter().map(|request| request.session.clone().unwrap()).collect();
    assert_eq!(ids, [first, second, third, other].map(|id| id.to_string()));
    assert!(requests[3].system.ends_with("You are told four."), "{}", requests[3].system);
}

#[tokio::test]
async fn structure_comes_from_the_schema_and_prose_is_a_failure() {
    let structured = wire::Answer::text("Well, ")
        .and_tool_use("StructuredOutput", json!({ "models": [{ "name": "ridge" }] }));
    let prose = || wire::Answer::text("I would use ridge.");
    let script = Script::new([structured, prose(), prose()]);
    let Some(place) = Place::new(script).await else { return };
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "models": { "type": "array", "items": { "$ref": "#/$defs/model" } } },
        "required": ["models"],
        "$defs": { "model": { "type": "object", "properties": { "name": { "type": "string" } } } },
    });
    let options = || Options { schema: Some(schema.clone()), ..place.options() };
    let answer = place.ask(options()).await.unwrap();
    assert_eq!(answer.structured, Some(json!({ "models": [{ "name": "ridge" }] })));
    assert_eq!(answer.text, "Well, ");
    let error = place.ask(options()).await.unwrap_err();
    assert_eq!(error.reason(), Some(&Reason::Unstructured), "{error}");
    assert!(error.cost_usd().unwrap() > 0.0);
}

/// REQ-OR-033
#[tokio::test]
async fn a_denied_command_does_not_run_and_an_allowed_one_does() {
    let script = Script::new([
        bash("touch denied"),
        bash("touch failed"),
        bash("touch allowed && cat secret"),
        wire::Answer::text("done"),
    ]);
    let Some(place) = Place::new(script).await else { return };
    fs_err::write(place.folder.path().join("secret"), "a well kept secret").unwrap();
    let calls: Arc<Mutex<Vec<ToolCall>>> = Arc::default();
    let seen = Arc::clone(&calls);
    let policy = Hook::before_tool(Some("Bash"), move |call: ToolCall| {
        seen.lock().unwrap().push(call.clone());
        async move {
            let command = call.input["command"].as_str().unwrap_or_default().to_owned();
            match command.split_whitespace().nth(1) {
                Some("allowed") => Ok(ToolDecision::Pass),
                Some("denied") => Ok(ToolDecision::Deny { reason: "not allowed here".to_owned() }),
                _ => Err("the policy is broken"),
            }
        }
    });
    let done: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&done);
    let watch = Hook::after_tool(None, move |tool| {
        heard.lock().unwrap().push(format!("{} {:?}", tool.tool, tool.error.is_some()));
        async {}
    });
    let hooks = [policy].into_iter().chain(watch).collect();
    let tools = vec!["Bash".to_owned()];
    let mut results = Vec::new();
    let mut conversation = place.start(Options { hooks, tools, ..place.options() }).await;
    let answer = conversation
        .ask_watched("do it", |message| {
            if let Message::ToolResults(of_tools) = message {
                results.extend(of_tools.clone());
            }
        })
        .await
        .unwrap();
    assert_eq!((answer.text.as_str(), answer.turns), ("done", 4));
    assert_eq!(["denied", "failed", "allowed"].map(|it| place.is_there(it)), [false, false, true]);
    assert_eq!(results.iter().map(|it| it.is_error).collect::<Vec<_>>(), [true, true, false]);
    assert!(results[0].content.to_string().contains("not allowed here"), "{results:?}");
    assert!(last_results(&place.server)[0].text.contains("a well kept secret"));
    assert_eq!(calls.lock().unwrap().len(), 3);
    let folder = calls.lock().unwrap()[0].folder.clone();
    assert_eq!(folder, place.folder.path().to_str().unwrap());
    assert_eq!(*done.lock().unwrap(), ["Bash false"]);
    conversation.stop().await.unwrap();
}

/// REQ-OR-009
#[tokio::test]
async fn permission_is_asked_for_where_the_program_would_ask_a_person() {
    let write = |place: &Path, name: &str| {
        let file = place.join(name).display().to_string();
        wire::Answer::tool_use("Write", json!({ "file_path": file, "content": name }))
    };
    let folder = tempfile::tempdir().unwrap();
    let answers = ["denied", "allowed", "instead"].map(|name| write(folder.path(), name));
    let script = Script::new(answers.into_iter().chain([wire::Answer::text("done")]));
    let Some(place) = Place::new(script).await else { return };
    let permission = Permission::new(|call: ToolCall| async move {
        let file = call.input["file_path"].as_str().unwrap_or_default().to_owned();
        match file.rsplit('/').next() {
            Some("allowed") => Ok(Granted::Allow),
            Some("instead") => {
                let other = json!({ "file_path": file, "content": "something else" });
                Ok(Granted::AllowInstead(other))
            }
            Some("denied") => Ok(Granted::Deny { reason: "not this file".to_owned() }),
            _ => Err("what is that?"),
        }
    });
    let options = Options {
        permission: Some(permission),
        permission_mode: PermissionMode::Ask,
        tools: vec!["Write".to_owned()],
        folder: Some(folder.path().to_owned()),
        ..place.options()
    };
    assert_eq!(place.ask(options).await.unwrap().text, "done");
    let content = |name: &str| fs_err::read_to_string(folder.path().join(name)).ok();
    assert_eq!(content("denied"), None);
    assert_eq!(content("allowed").as_deref(), Some("allowed"));
    assert_eq!(content("instead").as_deref(), Some("something else"));
    let told = |at: usize| place.server.requests()[at].tool_results()[0].text.clone();
    assert!(told(1).contains("not this file"), "{}", told(1));
}

/// REQ-OR-035
#[tokio::test]
async fn a_tool_that_fails_is_told_as_a_failure() {
    let script = Script::new([bash("echo broken >&2; exit 3"), wire::Answer::text("oh")]);
    let Some(place) = Place::new(script).await else { return };
    let failures: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&failures);
    let watch = Hook::after_tool(None, move |done| {
        heard.lock().unwrap().extend(done.error);
        async {}
    });
    let tools = vec!["Bash".to_owned()];
    place.ask(Options { hooks: watch.into(), tools, ..place.options() }).await.unwrap();
    let failures = failures.lock().unwrap();
    assert!(matches!(failures.as_slice(), [one] if one.contains("broken")), "{failures:?}");
}

/// REQ-OR-010
#[tokio::test]
async fn a_tool_of_this_process_is_offered_with_its_schema_and_called() {
    let call = wire::Answer::tool_use("mcp__mle__parse_score", json!({ "output": "score: 0.5" }));
    let Some(place) = Place::new(Script::new([call, wire::Answer::text("half")])).await else {
        return;
    };
    let schema = json!({ "type": "object", "properties": { "output": { "type": "string" } },
        "required": ["output"] });
    let parse = Tool::new("parse_score", "Finds the score.", schema, |input| async move {
        let output = input["output"].as_str().ok_or("no output")?;
        Ok(output.trim_start_matches("score: ").to_owned())
    });
    let servers = vec![ToolServer::new("mle", [parse])];
    // Also where not everything is allowed.
    let permission_mode = PermissionMode::Ask;
    let answer = place.ask(Options { servers, permission_mode, ..place.options() }).await.unwrap();
    assert_eq!(answer.text, "half");
    let offered = &place.server.requests()[0].tools;
    let tool = offered.iter().find(|tool| tool["name"] == "mcp__mle__parse_score").unwrap();
    assert_eq!(tool["input_schema"]["required"], json!(["output"]));
    assert_eq!(last_results(&place.server)[0].text, "0.5");
}

/// REQ-OR-052
#[tokio::test]
async fn requests_that_fail_for_a_while_are_made_again_and_that_is_told() {
    let script = Script::new([
        wire::Answer::error(529, "overloaded_error", "Overloaded"),
        wire::Answer::error(429, "rate_limit_error", "slow down").with_header("retry-after", "1"),
        wire::Answer::text("at last"),
    ]);
    let Some(place) = Place::new(script).await else { return };
    let mut conversation = place.start(place.options()).await;
    let mut statuses = Vec::new();
    let answer = conversation
        .ask_watched("a question", |message| {
            if let Message::Retry(retry) = message {
                statuses.push(retry.status);
            }
        })
        .await;
    assert_eq!(answer.unwrap().text, "at last");
    assert_eq!(statuses, [Some(529), Some(429)]);
}

#[tokio::test]
async fn every_failure_of_the_service_has_a_reason() {
    let cases = [
        (401, "authentication_error", "invalid x-api-key", Reason::Unauthenticated),
        (403, "permission_error", "not for you", Reason::Forbidden),
        (404, "not_found_error", "model: sonnet", Reason::NoSuchModel),
        (400, "invalid_request_error", "prompt is too long: 9 > 8 maximum", Reason::PromptTooLong),
        (400, "invalid_request_error", "something else", Reason::BadRequest(400)),
        (400, "invalid_request_error", "Your credit balance is too low", Reason::Unpaid),
        (429, "rate_limit_error", "slow down", Reason::RateLimited),
        (500, "api_error", "Internal server error", Reason::Service(500)),
        (529, "overloaded_error", "Overloaded", Reason::Overloaded),
    ];
    for (status, kind, message, reason) in cases {
        let script = Script::new([wire::Answer::error(status, kind, message)]).repeating_last();
        let Some(place) = Place::new(script).await else { return };
        let mut options = place.options();
        options.environment = options.environment.with("CLAUDE_CODE_MAX_RETRIES", "0");
        let error = place.ask(options).await.unwrap_err();
        assert_eq!(error.reason(), Some(&reason), "{status} {kind} {message}: {error}");
        assert!(!error.to_string().is_empty() && error.remedy().is_some(), "{error}");
    }
}

/// REQ-OR-046
#[tokio::test]
async fn credentials_that_are_refused_again_and_again_are_given_up() {
    let refused = wire::Answer::error(401, "authentication_error", "invalid x-api-key");
    let Some(place) = Place::new(Script::new([refused]).repeating_last()).await else { return };
    let mut options = place.options();
    options.environment = options.environment.with("CLAUDE_CODE_MAX_RETRIES", "10");
    let error = place.ask(options).await.unwrap_err();
    assert_eq!(error.reason(), Some(&Reason::Unauthenticated), "{error}");
    assert!(place.server.requests().len() < 6, "{}", place.server.requests().len());
}

/// REQ-OR-046
#[tokio::test]
async fn without_a_key_the_credentials_are_refused() {
    let Some(place) = Place::new(Script::new([wire::Answer::text("never")])).await else { return };
    let environment = Environment::default()
        .inherit(|name| name == "PATH")
        .with("HOME", place.home.path())
        .with("ANTHROPIC_BASE_URL", place.server.url())
        .with("IS_SANDBOX", "1");
    let error = place.ask(Options { environment, ..place.options() }).await.unwrap_err();
    assert_eq!(error.reason(), Some(&Reason::Unauthenticated), "{error}");
    assert_eq!(place.server.requests().len(), 0);
}

#[tokio::test]
async fn a_stream_that_drops_is_asked_for_again_and_a_connection_that_never_stands_is_lost() {
    let text = "a text that is long enough for several events";
    let dropped = || wire::Answer::text(text).in_pieces_of(5).dropped_after(4);
    let script = Script::new([dropped(), wire::Answer::text(text)]);
    let Some(place) = Place::new(script).await else { return };
    assert_eq!(place.ask(place.options()).await.unwrap().text, text);

    let script = Script::new([wire::Answer::refusal_to_answer()]).repeating_last();
    let Some(place) = Place::new(script).await else { return };
    let mut options = place.options();
    options.environment = options.environment.with("CLAUDE_CODE_MAX_RETRIES", "1");
    let error = place.ask(options).await.unwrap_err();
    assert_eq!(
        (error.reason(), error.retry()),
        (Some(&Reason::Connection), Retry::Later),
        "{error}"
    );
}

#[tokio::test]
async fn a_model_that_declines_has_given_no_answer() {
    let declined = wire::Answer::empty().with_stop_reason("refusal");
    let Some(place) = Place::new(Script::new([declined]).repeating_last()).await else { return };
    let error = place.ask(place.options()).await.unwrap_err();
    assert_eq!(error.reason(), Some(&Reason::Declined), "{error}");
}

/// REQ-OR-028, REQ-OR-029
#[tokio::test]
async fn turns_and_money_have_limits() {
    let script = Script::new([bash("true").with_usage(usage(100_000, 1000))]).repeating_last();
    let Some(place) = Place::new(script).await else { return };
    let tools = vec!["Bash".to_owned()];
    let options = || Options { tools: tools.clone(), ..place.options() };
    let error = place.ask(Options { max_turns: Some(2), ..options() }).await.unwrap_err();
    assert_eq!(error.reason(), Some(&Reason::MaxTurns), "{error}");
    let error = place.ask(Options { max_budget_usd: Some(0.01), ..options() }).await.unwrap_err();
    assert_eq!(error.reason(), Some(&Reason::Budget), "{error}");
    assert!(error.cost_usd().unwrap() > 0.01, "what was spent is known");
}

/// REQ-OR-030, REQ-OR-034
#[tokio::test]
async fn a_deadline_interrupts_and_so_does_whoever_wants_to() {
    let script = Script::new([
        bash("sleep 1000").with_usage(usage(1000, 100)),
        wire::Answer::silence(),
        wire::Answer::text("there again"),
    ]);
    let Some(place) = Place::new(script).await else { return };
    let mut options = Options { tools: vec!["Bash".to_owned()], ..place.options() };
    options.limits.answer = Duration::from_secs(4);
    let mut conversation = place.start(options).await;
    let begun = Instant::now();
    let error = conversation.ask("a question").await.unwrap_err();
    assert_eq!(error.reason(), Some(&Reason::OutOfTime), "{error}");
    assert!(error.cost_usd().unwrap() > 0.0, "what was spent is known");

    let interrupter = conversation.interrupter();
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        interrupter.interrupt();
    };
    let (answer, ()) = tokio::join!(conversation.ask("another"), later);
    assert_eq!(answer.unwrap_err().reason(), Some(&Reason::Interrupted));
    assert_eq!(conversation.ask("and now?").await.unwrap().text, "there again");
    assert!(begun.elapsed() < Duration::from_secs(30));
    conversation.stop().await.unwrap();
}

/// REQ-OR-011
#[tokio::test]
async fn nothing_is_left_when_the_program_is_killed_in_the_middle_of_a_command() {
    let mark = mark();
    let script = Script::new([bash(&format!("sleep {mark}"))]);
    let Some(place) = Place::new(script).await else { return };
    let options = Options { tools: vec!["Bash".to_owned()], ..place.options() };
    let mut conversation = place.start(options).await;
    let keeper = conversation.process_id().unwrap();
    let kill = async {
        eventually("a command", || !processes_with(&mark).is_empty()).await;
        let children = format!("/proc/{keeper}/task/{keeper}/children");
        let program = fs_err::read_to_string(children).unwrap();
        let program: i32 = program.split_whitespace().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(program).unwrap(), Signal::KILL).unwrap();
    };
    let (answer, ()) = tokio::join!(conversation.ask("a question"), kill);
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Closed { code: Some(137), .. }), "{error}");
    assert_eq!(error.retry(), Retry::Later);
    eventually("no command", || processes_with(&mark).is_empty()).await;
}

/// REQ-OR-011
#[tokio::test]
async fn nothing_is_left_when_we_are_killed() {
    const MARK: &str = "KILLED_WITH";
    let mark = std::env::var(MARK).unwrap_or_else(|_| mark());
    let script = Script::new([bash(&format!("sleep {mark}"))]);
    let Some(place) = Place::new(script).await else { return };
    if std::env::var_os(MARK).is_some() {
        let options = Options { tools: vec!["Bash".to_owned()], ..place.options() };
        place.start(options).await.ask("a question").await.unwrap_err(); // never comes back
        return;
    }
    let test = "real::nothing_is_left_when_we_are_killed";
    let mut we = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(MARK, &mark)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("a command", || !processes_with(&mark).is_empty()).await;
    we.kill().unwrap();
    we.wait().unwrap();
    eventually("no command", || processes_with(&mark).is_empty()).await;
}

/// REQ-OR-011, REQ-OR-056
#[tokio::test]
async fn five_conversations_at_once_do_not_mix() {
    let echo = |request: &Request| wire::Answer::text(request.last_user_text());
    let Some(place) = Place::new(echo).await else { return };
    let ask = async |number: usize| {
        let mut conversation = place.start(place.options()).await;
        let answer = conversation.ask(&format!("question {number}")).await.unwrap();
        conversation.stop().await.unwrap();
        answer.text
    };
    let answers = tokio::join!(ask(0), ask(1), ask(2), ask(3), ask(4));
    let answers: [String; 5] = answers.into();
    assert_eq!(answers, [0, 1, 2, 3, 4].map(|number| format!("question {number}")));
}
