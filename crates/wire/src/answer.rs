//! What the server may say to one request.

use std::time::Duration;

use serde_json::Value;

/// An answer: a message, an error, raw bytes, or nothing, and what befalls it on the way.
///
/// ```
/// use mle_star_wire::{Answer, Usage};
/// use serde_json::json;
///
/// let answer = Answer::text("I shall look.")
///     .and_tool_use("Bash", json!({"command": "ls"}))
///     .with_usage(Usage { input: 1200, output: 30, ..Usage::default() });
/// ```
#[derive(Debug, Clone)]
pub struct Answer {
    pub(crate) content: Content,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    pub(crate) pause: Duration,
    pub(crate) end: End,
}

/// Tokens, as the API reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read, without those of the cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens put into the cache.
    pub cache_creation: u64,
    /// Tokens taken from the cache.
    pub cache_read: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Message { blocks: Vec<Block>, stop_reason: Option<String>, usage: Option<Usage>, piece: usize },
    Error { status: u16, kind: String, message: String },
    Raw { status: u16, content_type: String, body: Vec<u8> },
    Nothing,
}

#[derive(Debug, Clone)]
pub(crate) enum Block {
    Text(String),
    Thinking(String),
    ToolUse { name: String, input: Value },
    Other(Value),
}

/// How a reply ends. The numbers are events of a stream, or pieces of a plain body.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Whole,
    Drop { after: usize },
    Hang { after: usize },
    Error { after: usize, kind: String, message: String },
}

/// Characters of a text that go into one event, unless told otherwise.
const PIECE: usize = 400;

impl Answer {
    /// A message of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::message(vec![Block::Text(text.into())])
    }

    /// A message that uses one tool.
    pub fn tool_use(name: impl Into<String>, input: Value) -> Self {
        Self::message(vec![Block::ToolUse { name: name.into(), input }])
    }

    /// A message that thinks before it says more.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::message(vec![Block::Thinking(text.into())])
    }

    /// A message without content.
    pub fn empty() -> Self {
        Self::message(Vec::new())
    }

    /// An error in the API's form, such as `(529, "overloaded_error", "Overloaded")`.
    pub fn error(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Content::Error { status, kind: kind.into(), message: message.into() })
    }

    /// Bytes that need not be an answer of the API at all.
    pub fn raw(status: u16, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self::new(Content::Raw { status, content_type: content_type.into(), body: body.into() })
    }

    /// The connection is closed without a byte.
    pub fn refusal_to_answer() -> Self {
        Self { end: End::Drop { after: 0 }, ..Self::new(Content::Nothing) }
    }

    /// Nothing ever comes, and the connection stays open.
    pub fn silence() -> Self {
        Self { end: End::Hang { after: 0 }, ..Self::new(Content::Nothing) }
    }

    /// A further text in the same message. Has no effect on what is not a message, as all
    /// `and_…` methods.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Block::Text(text.into()))
    }

    /// A further use of a tool in the same message.
    pub fn and_tool_use(self, name: impl Into<String>, input: Value) -> Self {
        self.and(Block::ToolUse { name: name.into(), input })
    }

    /// A further block of any kind in the same message, such as what a search of the service's own
    /// has found. It is sent whole.
    pub fn and_block(self, block: Value) -> Self {
        self.and(Block::Other(block))
    }

    /// The tokens that this message is said to have taken. Without this they are estimated.
    pub fn with_usage(mut self, figures: Usage) -> Self {
        if let Content::Message { usage, .. } = &mut self.content {
            *usage = Some(figures);
        }
        self
    }

    /// Why the message ends, such as `max_tokens` or `refusal`. Without this it is `tool_use` for
    /// a message that uses a tool, else `end_turn`.
    pub fn with_stop_reason(mut self, reason: impl Into<String>) -> Self {
        if let Content::Message { stop_reason, .. } = &mut self.content {
            *stop_reason = Some(reason.into());
        }
        self
    }

    /// A header of the reply, such as `retry-after`. A header that HTTP does not allow is left out.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// How many characters of a text go into one event.
    pub fn in_pieces_of(mut self, characters: usize) -> Self {
        if let Content::Message { piece, .. } = &mut self.content {
            *piece = characters.max(1);
        }
        self
    }

    /// Waits before the first byte.
    pub fn delayed_by(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits between one event and the next.
    pub fn pausing_for(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The connection is closed after so many events.
    pub fn dropped_after(self, events: usize) -> Self {
        Self { end: End::Drop { after: events }, ..self }
    }

    /// Nothing more comes after so many events, and the connection stays open.
    pub fn hanging_after(self, events: usize) -> Self {
        Self { end: End::Hang { after: events }, ..self }
    }

    /// The stream ends with an `error` event after so many events. An answer that is not streamed
    /// is dropped there instead, because its status has been sent.
    pub fn failing_after(
        self,
        events: usize,
        kind: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let end = End::Error { after: events, kind: kind.into(), message: message.into() };
        Self { end, ..self }
    }

    fn message(blocks: Vec<Block>) -> Self {
        Self::new(Content::Message { blocks, stop_reason: None, usage: None, piece: PIECE })
    }

    fn new(content: Content) -> Self {
        Self {
            content,
            headers: Vec::new(),
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            end: End::Whole,
        }
    }

    fn and(mut self, block: Block) -> Self {
        if let Content::Message { blocks, .. } = &mut self.content {
            blocks.push(block);
        }
        self
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_creation = self.cache_creation.saturating_add(other.cache_creation);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
    }
}
