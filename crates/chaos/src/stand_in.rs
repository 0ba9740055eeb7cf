//! A program in the place of `claude` that misbehaves by seed.
//!
//! It speaks the part of the control protocol that a call needs, and gets its answer over HTTP from
//! the server that stands in for the model, as the real one would. On the way something may go
//! wrong: the service refuses, the stream breaks off, the program hangs or dies. Whatever it was
//! charged for is noted in a ledger, whether or not anybody gets to see the answer.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8Path;
use fs_err as fs;
use serde_json::{Value, json};

use crate::random::Random;

/// What every answered call costs, in US dollars.
pub const PRICE: f64 = 0.01;

/// How the stand-in behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Temper {
    /// From which it follows which calls go wrong.
    pub seed: u64,
    /// How many in a hundred do.
    pub share: u64,
    /// What goes wrong, by its place in [`MISHAPS`]; [`ANY`] or [`STALL`].
    pub kind: usize,
    /// How many milliseconds it thinks before it asks: one that answers at once is hard to hit.
    pub thinks: u64,
}

/// A stand-in that does what it should.
pub const CALM: Temper = Temper { seed: 0, share: 0, kind: ANY, thinks: 0 };

/// Any of the [`MISHAPS`].
pub const ANY: usize = MISHAPS.len();
/// No answer, ever.
pub const STALL: usize = ANY + 1;

/// What can go wrong between a call and its answer.
pub const MISHAPS: [&str; 9] = [
    "429",
    "500",
    "529",
    "hang",
    "garbage frames",
    "truncated frame",
    "death before the answer",
    "death after the answer",
    "noise",
];

/// Appends a line to the ledger of a place.
fn note(ledger: &Utf8Path, line: &str) -> io::Result<usize> {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(ledger)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    Ok(fs::read_to_string(ledger)?.lines().count())
}

/// Plays the program. `arguments` are those of `claude`.
pub fn play(ledger: &Utf8Path, temper: Temper, arguments: &[String]) -> ExitCode {
    if arguments.iter().any(|it| it == "--version") {
        writeln!(io::stdout(), "2.1.325 (Claude Code)").ok();
        return ExitCode::SUCCESS;
    }
    match converse(ledger, temper, arguments) {
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::from(99), // nobody listens any more
    }
}

fn converse(ledger: &Utf8Path, temper: Temper, arguments: &[String]) -> io::Result<u8> {
    let session = arguments.iter().find_map(|it| it.strip_prefix("--session-id="));
    let session = session.unwrap_or_default();
    let number = note(ledger, &format!("begun {session}"))?;
    let mut random =
        Random::of(temper.seed.wrapping_add(u64::try_from(number).unwrap_or_default() << 20));
    let mishap = match random.percent(temper.share) {
        true if temper.kind == STALL => Some("stall"),
        true => MISHAPS.get(temper.kind).or_else(|| random.pick(&MISHAPS)).copied(),
        false => None,
    };
    let mut wants_structure = false;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        match message.get("type").and_then(Value::as_str) {
            Some("control_request") => {
                let request = message.get("request").cloned().unwrap_or_default();
                wants_structure |= request.get("jsonSchema").is_some();
                say(&json!({ "type": "control_response", "response": {
                    "subtype": "success",
                    "request_id": message.get("request_id"),
                    "response": { "hook_on_failure_supported": true, "hooks_applied": true,
                                  "claude_code_version": "2.1.325" },
                }}))?;
            }
            Some("user") => {
                if let Some(mishap) = mishap {
                    note(ledger, &format!("mishap {mishap}"))?;
                }
                std::thread::sleep(Duration::from_millis(temper.thinks));
                if mishap == Some("death before the answer") {
                    return Ok(137);
                }
                if let Some(status) = mishap.and_then(|it| it.parse::<u16>().ok()) {
                    say(&json!({ "type": "result", "subtype": "success", "is_error": true,
                        "result": format!("API Error: {status}"), "api_error_status": status,
                        "total_cost_usd": 0.0, "num_turns": 1, "session_id": session }))?;
                    continue;
                }
                if mishap == Some("stall") {
                    std::thread::sleep(Duration::from_secs(3600));
                }
                let answer = ask(session, &message)?;
                note(ledger, &format!("paid {session}"))?;
                match mishap {
                    Some("hang") => {
                        std::thread::sleep(Duration::from_millis(1500));
                        return Ok(137);
                    }
                    Some("death after the answer") => return Ok(137),
                    Some("garbage frames") => {
                        say_raw("{\"type\": \"assistant\", \"message\": }{\n")?;
                    }
                    Some("truncated frame") => {
                        say_raw("{\"type\":\"assistant\",\"message\":{\"con")?;
                        return Ok(137);
                    }
                    Some("noise") => {
                        say_raw("a note of the program\n\n")?;
                        say(&json!({ "type": "newspeak", "plus": [1, 2, { "good": null }] }))?;
                        say(&json!({ "no": "type" }))?;
                    }
                    _ => {}
                }
                reply(session, &answer, wants_structure)?;
            }
            _ => {}
        }
    }
    Ok(0)
}

/// Asks the server that stands in for the model.
fn ask(session: &str, message: &Value) -> io::Result<Value> {
    let url = std::env::var("ANTHROPIC_BASE_URL").unwrap_or_default();
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let body = json!({
        "model": "m", "max_tokens": 1, "stream": false,
        "messages": [{ "role": "user", "content": message.pointer("/message/content") }],
        "metadata": { "user_id": json!({ "session_id": session }).to_string() },
    })
    .to_string();
    let mut stream = TcpStream::connect(&address)?;
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let body = match head.to_lowercase().contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_owned(),
    };
    Ok(serde_json::from_str(&body)?)
}

/// The body of a chunked reply.
fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|it| !it.is_empty()) else { break };
        body.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    body
}

/// Says what the model said, as the program would.
fn reply(session: &str, answer: &Value, wants_structure: bool) -> io::Result<()> {
    let blocks = answer.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let text: String =
        blocks.iter().filter_map(|it| it.get("text").and_then(Value::as_str)).collect();
    let structured = blocks.iter().find_map(|it| it.get("input").cloned());
    say(&json!({ "type": "assistant", "session_id": session,
        "message": { "id": "m1", "model": "m", "role": "assistant", "content": blocks } }))?;
    let failed = wants_structure && structured.is_none();
    let subtype = if failed { "error_max_structured_output_retries" } else { "success" };
    say(&json!({
        "type": "result", "subtype": subtype, "is_error": failed, "result": text,
        "structured_output": structured, "total_cost_usd": PRICE, "num_turns": 1,
        "session_id": session, "stop_reason": answer.get("stop_reason"),
    }))
}

fn say(message: &Value) -> io::Result<()> {
    say_raw(&format!("{message}\n"))
}

fn say_raw(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
