//! One conversation: a process, and what goes back and forth on its standard streams.
//!
//! `Conversation::hear` is where everything happens. It waits for the next line of the program
//! and meanwhile writes what is to be written, reads what the program complains about, runs the
//! callbacks that it asked for, and looks at the clock. All else is built on it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::answer::{Answer, Draft, Form, Usage};
use crate::cli::Cli;
use crate::control::Control;
use crate::error::{Error, Reason, Unanswered};
use crate::lines::NoLine;
use crate::message::{Message, ResultMessage, RetryMessage};
use crate::options::{Limits, Options, Session};
use crate::process::{Ended, Process};

/// How much of nonsense is shown.
const SHOWN: usize = 200;
/// How long a process that closed its output may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// A conversation. Dropping it ends the program and everything it started.
#[derive(Debug)]
pub struct Conversation {
    process: Process,
    control: Control,
    limits: Limits,
    form: Form,
    /// What the program said it has spent, when it last said so.
    spent_usd: Option<f64>,
    /// Whether a prompt was sent whose turn has not ended.
    is_answering: bool,
    interrupter: Interrupter,
    last_heard: Instant,
    ignored_bytes: usize,
    requests: u64,
}

/// Interrupts a conversation from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Interrupter {
    notify: Arc<Notify>,
}

/// Something that happened.
#[derive(Debug)]
enum Heard {
    Message(Message),
    /// The answer to a request of ours.
    Response {
        id: String,
        reply: Result<Value, String>,
    },
    /// Somebody interrupts.
    Interrupted,
    /// The time is over.
    Late,
}

impl Conversation {
    /// Starts the program and makes sure that it does what is asked of it.
    pub async fn start(cli: &Cli, options: Options) -> Result<Self, Error> {
        let Limits { start, line_bytes, .. } = options.limits;
        let folder = match &options.folder {
            Some(folder) => folder.clone(),
            None => std::env::current_dir()
                .map_err(|source| Error::NotStarted { path: ".".into(), source })?,
        };
        let environment = options.environment.pairs();
        let process = Process::start(cli, &options.arguments(), &environment, &folder, line_bytes)?;
        let mut conversation = Self {
            process,
            control: Control::new(&options),
            limits: options.limits,
            form: options.form(),
            spent_usd: match options.session {
                Session::New | Session::Named(_) | Session::Unrecorded(_) => Some(0.0),
                Session::Resume(_) | Session::Fork { .. } => None, // the figure goes on, too
            },
            is_answering: false,
            interrupter: Interrupter::default(),
            last_heard: Instant::now(),
            ignored_bytes: 0,
            requests: 0,
        };
        let told = conversation.initialize(&options, Instant::now() + start).await?;
        let is = |name: &str| told.get(name).and_then(Value::as_bool) == Some(true);
        let fails_closed = is("hook_on_failure_supported") && is("hooks_applied");
        if !options.hooks.is_empty() && !fails_closed {
            let version = told.get("claude_code_version").and_then(Value::as_str);
            let version = version.unwrap_or("of an unknown version").to_owned();
            return Err(Error::HooksFailOpen { version });
        }
        Ok(conversation)
    }

    async fn initialize(&mut self, options: &Options, until: Instant) -> Result<Value, Error> {
        let own = self.request(&options.initialize());
        let mut said = String::new();
        loop {
            match self.hear("starting", until).await {
                Ok(Heard::Response { id, reply }) if id == own => {
                    return reply
                        .map_err(|reason| Error::Refused { request: "initialize", reason });
                }
                Ok(Heard::Late) => {
                    return Err(Error::Hung { doing: "starting", after: options.limits.start });
                }
                // A session that cannot be resumed ends before it begins.
                Ok(Heard::Message(Message::Result(result))) if result.is_error => {
                    said = [result.errors.join("; "), result.text].join(" ").trim().to_owned();
                }
                Ok(Heard::Message(_) | Heard::Response { .. } | Heard::Interrupted) => {}
                Err(Error::Closed { code, said: complaint }) => {
                    let said = if said.is_empty() { complaint } else { said };
                    return Err(Error::Exited { code, said });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a prompt and waits for the answer.
    pub async fn ask(&mut self, prompt: &str) -> Result<Answer, Error> {
        self.ask_watched(prompt, |_| ()).await
    }

    /// The same, with somebody who sees every message on the way.
    pub async fn ask_watched(
        &mut self,
        prompt: &str,
        mut watch: impl FnMut(&Message),
    ) -> Result<Answer, Error> {
        if self.is_answering {
            self.abandon().await?;
        }
        self.process.input.queue(&json!({
            "type": "user",
            "session_id": "",
            "message": { "role": "user", "content": prompt },
            "parent_tool_use_id": null,
            "client_composed": true, // `/` and `@` in it mean nothing special
        }));
        self.is_answering = true;
        self.last_heard = Instant::now();
        let mut until = Instant::now() + self.limits.answer;
        let mut draft = Draft::new(self.limits.kept_bytes);
        let mut stopped = None;
        loop {
            match self.hear("answering", until).await? {
                Heard::Message(Message::Result(result)) => {
                    self.is_answering = false;
                    watch(&Message::Result(result.clone()));
                    let cost = self.cost_of(&result);
                    return draft.finish(*result, cost, self.form, stopped);
                }
                Heard::Message(message) => {
                    watch(&message);
                    if stopped.is_none() && is_refused_for_good(&message) {
                        stopped = Some(Reason::Unauthenticated);
                        until = self.interrupt();
                    }
                    draft.add(&message)?;
                }
                Heard::Response { .. } => {}
                Heard::Interrupted if stopped.is_none() => {
                    stopped = Some(Reason::Interrupted);
                    until = self.interrupt();
                }
                Heard::Interrupted => {}
                Heard::Late => match stopped {
                    None => {
                        stopped = Some(Reason::OutOfTime);
                        until = self.interrupt();
                    }
                    Some(reason) => return Err(lost(reason)), // it did not listen
                },
            }
        }
    }

    /// Something that interrupts this conversation while somebody waits for an answer.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// The process that was started, as long as it lives: the program, or what starts it.
    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Ends the program: interrupts it, lets it write its session down, tells it to end, and kills
    /// it with all it started. Each step has its time. What an answer has cost that is still being
    /// written is lost.
    pub async fn stop(mut self) -> Option<Ended> {
        if self.is_answering {
            self.abandon().await.ok(); // the next steps do not ask
        }
        self.process.stop(self.limits.stop).await
    }

    /// Ends a turn whose answer nobody waits for any more.
    async fn abandon(&mut self) -> Result<(), Error> {
        let until = self.interrupt();
        loop {
            match self.hear("being interrupted", until).await? {
                Heard::Message(Message::Result(result)) => {
                    self.cost_of(&result);
                    self.is_answering = false;
                    return Ok(());
                }
                Heard::Message(_) | Heard::Response { .. } | Heard::Interrupted => {}
                Heard::Late => {
                    let after = 2 * self.limits.stop;
                    return Err(Error::Hung { doing: "being interrupted", after });
                }
            }
        }
    }

    /// Tells the program to end the turn. Gives the time by which it should have.
    fn interrupt(&mut self) -> Instant {
        self.request(&json!({ "subtype": "interrupt" }));
        Instant::now() + 2 * self.limits.stop
    }

    /// Sends a request of ours and gives its id.
    fn request(&mut self, request: &Value) -> String {
        self.requests += 1;
        let id = format!("req_{}", self.requests);
        self.process
            .input
            .queue(&json!({ "type": "control_request", "request_id": id, "request": request }));
        id
    }

    /// What a turn has cost: the figure that the program gives is that of all turns.
    fn cost_of(&mut self, result: &ResultMessage) -> Option<f64> {
        let before = std::mem::replace(&mut self.spent_usd, result.total_cost_usd);
        let difference = || Some((result.total_cost_usd? - before?).max(0.0));
        result.turn_cost_usd.or_else(difference)
    }

    /// Waits until something happens that whoever waits must know. Nothing is lost when the future
    /// is dropped.
    async fn hear(&mut self, doing: &'static str, until: Instant) -> Result<Heard, Error> {
        loop {
            let silent = self.last_heard + self.limits.silence;
            let Process { input, lines, complaints, .. } = &mut self.process;
            let line = tokio::select! {
                line = lines.next() => line,
                () = complaints.listen() => continue,
                () = input.write() => continue,
                answer = self.control.finished() => {
                    input.queue(&answer);
                    if input.waiting_bytes() > self.limits.kept_bytes {
                        let limit = self.limits.kept_bytes;
                        return Err(Error::Flooded { what: "of requests unheard", limit });
                    }
                    continue;
                }
                () = self.interrupter.notify.notified() => return Ok(Heard::Interrupted),
                () = sleep_until(until) => return Ok(Heard::Late),
                () = sleep_until(silent) => {
                    return Err(Error::Hung { doing, after: self.limits.silence });
                }
            };
            self.last_heard = Instant::now();
            match line {
                Ok(line) => {
                    if let Some(heard) = self.understand(&line)? {
                        return Ok(heard);
                    }
                }
                Err(NoLine::TooLong) => {
                    let limit = self.limits.line_bytes;
                    return Err(Error::Flooded { what: "in one line", limit });
                }
                Err(reason @ (NoLine::Ended | NoLine::Unreadable(_))) => {
                    let ended = self.process.ended(ENDING).await;
                    let said = match reason {
                        NoLine::Unreadable(error) => error.to_string(),
                        NoLine::Ended | NoLine::TooLong => self.process.complaints.text(),
                    };
                    return Err(Error::Closed { code: ended.and_then(|it| it.code), said });
                }
            }
        }
    }

    fn understand(&mut self, line: &[u8]) -> Result<Option<Heard>, Error> {
        if !line.starts_with(b"{") {
            // Some builds print notes among the messages.
            self.ignored_bytes += line.len();
            let limit = self.limits.kept_bytes;
            return match self.ignored_bytes > limit {
                true => Err(Error::Flooded { what: "that are no messages", limit }),
                false => Ok(None),
            };
        }
        let garbage = || {
            let what = String::from_utf8_lossy(line);
            Error::Garbage { what: what.chars().take(SHOWN).collect() }
        };
        let mut value: Value = serde_json::from_slice(line).map_err(|_| garbage())?;
        let id = |value: &Value| value.get("request_id")?.as_str().map(str::to_owned);
        match value.get("type").and_then(Value::as_str) {
            Some("control_response") => {
                let response = value.get_mut("response").map(Value::take).unwrap_or_default();
                let Some(id) = id(&response) else { return Ok(None) };
                let part = |name: &str| response.get(name).cloned().unwrap_or_default();
                let reply = match response.get("subtype").and_then(Value::as_str) {
                    Some("success") => Ok(part("response")),
                    _ => Err(part("error").as_str().unwrap_or("for no reason").to_owned()),
                };
                Ok(Some(Heard::Response { id, reply }))
            }
            Some("control_request") => {
                if let (Some(id), Some(request)) = (id(&value), value.get("request")) {
                    self.control.begin(id, request);
                }
                Ok(None)
            }
            Some("control_cancel_request") => {
                if let Some(id) = id(&value) {
                    self.control.cancel(&id);
                }
                Ok(None)
            }
            Some(_) => Ok(Some(Heard::Message(Message::of(value).ok_or_else(garbage)?))),
            None => Ok(Some(Heard::Message(Message::Other(value)))),
        }
    }
}

impl Interrupter {
    /// Interrupts the answer that somebody waits for, or the next one if nobody does.
    pub fn interrupt(&self) {
        self.notify.notify_one();
    }
}

/// Whether credentials were refused so often that they are not just being renewed. The program
/// itself goes on for minutes.
fn is_refused_for_good(message: &Message) -> bool {
    matches!(message, Message::Retry(RetryMessage { status: Some(401), attempt: 3.., .. }))
}

/// An answer that was stopped, and of which nothing more is known.
fn lost(reason: Reason) -> Error {
    Error::Unanswered(Box::new(Unanswered {
        reason,
        message: "claude did not stop when it was told to".to_owned(),
        cost_usd: None,
        usage: Usage::default(),
        session_id: None,
    }))
}
