//! A program that says what it is told to say, to see what the client makes of it.
//!
//! The variable `FAKE` holds a list of steps as JSON; see [`step`]. A benchmark elsewhere has this
//! program inside.

use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let own = arguments.next().unwrap_or_default();
    if arguments.any(|argument| argument == "--version") {
        // A file name such as `claude-2.1.197` is a version.
        let named = own.rsplit('/').next().and_then(|name| name.strip_prefix("claude-"));
        let version = named.filter(|it| it.starts_with(char::is_numeric)).unwrap_or("2.1.325");
        return match writeln!(io::stdout(), "{version} (Claude Code)") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let steps = std::env::var("FAKE").unwrap_or_default();
    let steps: Vec<Value> = serde_json::from_str(&steps).unwrap_or_default();
    let mut heard = Vec::new();
    for it in &steps {
        match step(it, &mut heard) {
            Ok(None) => {}
            Ok(Some(code)) => return ExitCode::from(code),
            Err(_) => return ExitCode::from(99), // nobody listens any more
        }
    }
    while let Ok(Some(_)) = hear() {}
    ExitCode::SUCCESS
}

/// Does one step. A number is the code to exit with.
fn step(it: &Value, heard: &mut Vec<Value>) -> io::Result<Option<u8>> {
    let number = |name: &str| it.get(name).and_then(Value::as_u64);
    let text = |name: &str| it.get(name).and_then(Value::as_str);
    let times = || number("times").unwrap_or(1);
    if let Some(count) = number("hear") {
        for _ in 0..count {
            heard.extend(hear()?);
        }
    } else if let Some(response) = it.get("greet") {
        let hello = hear()?.unwrap_or_default();
        let id = hello.get("request_id").cloned().unwrap_or_default();
        let response = json!({ "subtype": "success", "request_id": id, "response": response });
        say(&json!({ "type": "control_response", "response": response }))?;
    } else if let Some(message) = it.get("say") {
        for _ in 0..times() {
            say(message)?;
        }
    } else if let Some(raw) = text("raw") {
        for _ in 0..times() {
            io::stdout().write_all(raw.as_bytes())?;
        }
        io::stdout().flush()?;
    } else if let Some(complaint) = text("complain") {
        for _ in 0..times() {
            io::stderr().write_all(complaint.as_bytes())?;
        }
    } else if it.get("tell").is_some() {
        let told = Value::Array(std::mem::take(heard)).to_string();
        say(&json!({ "type": "result", "subtype": "success", "is_error": false, "result": told }))?;
    } else if let Some(milliseconds) = number("sleep") {
        std::thread::sleep(Duration::from_millis(milliseconds));
    } else if let Some(mark) = text("child") {
        // As the real program does it: in a session of its own, where no signal to us reaches it.
        Command::new("setsid")
            .args(["sleep", mark])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
    } else if let Some(code) = number("exit") {
        return Ok(Some(u8::try_from(code).unwrap_or(98)));
    }
    Ok(None)
}

fn hear() -> io::Result<Option<Value>> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_str(&line).unwrap_or_default())),
    }
}

fn say(message: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}
