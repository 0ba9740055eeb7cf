//! A conversation with a program that says what the test wants.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use mle_star_claude::{Cli, Conversation, Environment, Error, Launch, Limits, Options};
use serde_json::{Value, json};

/// The program in `tests/fake`.
pub(crate) const FAKE: &str = env!("CARGO_BIN_EXE_claude-fake");

/// The keeper that comes with the crate.
pub(crate) fn keeper() -> Launch {
    Launch::through(env!("CARGO_BIN_EXE_claude-keeper"), [] as [&str; 0])
}

/// The same, started before it is needed.
pub(crate) fn keeper_ahead() -> Launch {
    Launch::ahead(env!("CARGO_BIN_EXE_claude-keeper"), [] as [&str; 0]).unwrap()
}

/// Options with short limits, for a program that takes these steps.
pub(crate) fn options(steps: &Value) -> Options {
    let limits = Limits {
        start: Duration::from_secs(10),
        answer: Duration::from_secs(20),
        silence: Duration::from_secs(10),
        callback: Duration::from_secs(2),
        stop: Duration::from_millis(500),
        line_bytes: 8 << 20,
        kept_bytes: 4 << 20,
    };
    let environment =
        Environment::default().inherit(|name| name == "PATH").with("FAKE", steps.to_string());
    Options { environment, limits, ..Options::default() }
}

pub(crate) async fn cli() -> Cli {
    Cli::find(Some(&PathBuf::from(FAKE))).await.unwrap()
}

/// A conversation with a program that takes these steps after it has greeted.
pub(crate) async fn talk(steps: Value) -> Conversation {
    start(options(&greeted(steps))).await.unwrap()
}

pub(crate) async fn start(options: Options) -> Result<Conversation, Error> {
    Conversation::start(&cli().await, options).await
}

/// The steps with a greeting before them.
pub(crate) fn greeted(steps: Value) -> Value {
    let mut all = vec![json!({ "greet": {
        "claude_code_version": "2.1.325", "hooks_applied": true, "hook_on_failure_supported": true,
    } })];
    all.extend(steps.as_array().cloned().unwrap());
    Value::Array(all)
}

/// The end of a turn.
pub(crate) fn result(more: Value) -> Value {
    let mut result = json!({
        "type": "result", "subtype": "success", "is_error": false, "result": "done", "num_turns": 1,
    });
    result.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    json!({ "say": result })
}

/// Some text of the model.
pub(crate) fn says(id: &str, text: &str) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    let message = json!({ "id": id, "model": "claude-x", "role": "assistant", "content": content });
    json!({ "say": { "type": "assistant", "message": message, "parent_tool_use_id": null } })
}

/// A number of seconds to sleep by which a process of this test can be recognised.
pub(crate) fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}", 100_000_000 + u64::from(std::process::id()) * 100 + u64::from(number))
}

/// The processes that have `word` among their arguments.
pub(crate) fn processes_with(word: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        words.split(|&byte| byte == 0).any(|it| it == word.as_bytes()).then_some(pid)
    });
    found.collect()
}

/// Waits for something that takes a moment. Too long a moment is a failure of the test.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
