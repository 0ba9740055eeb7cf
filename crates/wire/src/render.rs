//! An answer as a head, bytes and pauses: all that can be said about it without a connection.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::answer::{Block, Content, End};
use crate::{Answer, Request, Usage};

/// A reply that is ready to be sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    pub(crate) steps: Vec<Step>,
    /// What the reply says it has cost.
    pub(crate) usage: Usage,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Send(Bytes),
    Wait(Duration),
    Drop,
    Hang,
}

/// Says the answer to the request. The number tells ids apart.
pub(crate) fn render(answer: Answer, request: &Request, number: u64) -> Reply {
    let Answer { content, headers: extra, delay, pause, end } = answer;
    let mut usage = Usage::default();
    let streamed = matches!(&content, Content::Message { .. }) && request.stream;
    let (status, content_type, pieces) = match content {
        Content::Message { blocks, stop_reason, usage: figures, piece } => {
            usage = figures.unwrap_or_else(|| estimate(request, &blocks));
            let message = Message { request, number, blocks, stop_reason, usage, piece };
            if request.stream {
                (200, request.framing.content_type().to_owned(), message.events())
            } else {
                (200, "application/json".to_owned(), halves(message.whole().to_string().into()))
            }
        }
        Content::Error { status, kind, message } => {
            (status, "application/json".to_owned(), vec![error_body(&kind, &message)])
        }
        Content::Raw { status, content_type, body } => (status, content_type, vec![body.into()]),
        Content::Nothing => (200, "application/json".to_owned(), Vec::new()),
    };

    let (kept, last) = match end {
        End::Whole => (pieces.len(), None),
        End::Drop { after } => (after, Some(Step::Drop)),
        End::Hang { after } => (after, Some(Step::Hang)),
        End::Error { after, kind, message } if streamed => {
            (after, Some(Step::Send(request.framing.event("error", &error(&kind, &message)))))
        }
        End::Error { after, .. } => (after, Some(Step::Drop)),
    };
    let sends = pieces.into_iter().take(kept).map(Step::Send);
    let mut steps = Vec::new();
    for step in sends.chain(last) {
        if !pause.is_zero() && !steps.is_empty() {
            steps.push(Step::Wait(pause));
        }
        steps.push(step);
    }

    let mut headers = vec![
        ("content-type".to_owned(), content_type),
        ("request-id".to_owned(), format!("req_wire_{number:06}")),
    ];
    headers.extend(extra);
    Reply { status, headers, delay, steps, usage }
}

/// An error as the API writes it.
pub(crate) fn error_body(kind: &str, message: &str) -> Bytes {
    error(kind, message).to_string().into()
}

/// A guess at the tokens of some bytes.
pub(crate) fn estimate_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// A plain body in two pieces, so that it can be cut between them.
fn halves(body: Bytes) -> Vec<Bytes> {
    let mut first = body;
    let second = first.split_off(first.len() / 2);
    vec![first, second]
}

fn estimate(request: &Request, blocks: &[Block]) -> Usage {
    let written = blocks.iter().map(|block| match block {
        Block::Text(text) | Block::Thinking(text) => text.len(),
        Block::ToolUse { name, input } => name.len() + input.to_string().len(),
        Block::Other(block) => block.to_string().len(),
    });
    Usage {
        input: estimate_tokens(request.body.to_string().len()),
        output: estimate_tokens(written.sum()),
        ..Usage::default()
    }
}

struct Message<'a> {
    request: &'a Request,
    number: u64,
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    usage: Usage,
    piece: usize,
}

impl Message<'_> {
    fn whole(&self) -> Value {
        let content: Vec<_> =
            self.blocks.iter().enumerate().map(|(i, it)| self.full(i, it)).collect();
        json!({
            "id": self.id(),
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": content,
            "stop_reason": self.stop_reason(),
            "stop_sequence": null,
            "usage": self.usage(self.usage.output),
        })
    }

    fn events(&self) -> Vec<Bytes> {
        let event = |name: &str, data: &Value| self.request.framing.event(name, data);
        let start = json!({"type": "message_start", "message": {
            "id": self.id(),
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": self.usage(self.usage.output.min(1)),
        }});
        let mut events =
            vec![event("message_start", &start), event("ping", &json!({"type": "ping"}))];
        for (index, block) in self.blocks.iter().enumerate() {
            let begin = json!({"type": "content_block_start", "index": index,
                "content_block": self.begun(index, block)});
            events.push(event("content_block_start", &begin));
            for delta in self.deltas(block) {
                let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
                events.push(event("content_block_delta", &delta));
            }
            let end = json!({"type": "content_block_stop", "index": index});
            events.push(event("content_block_stop", &end));
        }
        let delta = json!({"type": "message_delta",
            "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
            "usage": self.usage(self.usage.output)});
        events.push(event("message_delta", &delta));
        events.push(event("message_stop", &json!({"type": "message_stop"})));
        events
    }

    fn id(&self) -> String {
        format!("msg_wire_{:06}", self.number)
    }

    fn stop_reason(&self) -> &str {
        let uses_tools = || self.blocks.iter().any(|it| matches!(it, Block::ToolUse { .. }));
        match &self.stop_reason {
            Some(reason) => reason,
            None if uses_tools() => "tool_use",
            None => "end_turn",
        }
    }

    fn usage(&self, output: u64) -> Value {
        json!({
            "input_tokens": self.usage.input,
            "cache_creation_input_tokens": self.usage.cache_creation,
            "cache_read_input_tokens": self.usage.cache_read,
            "output_tokens": output,
        })
    }

    fn full(&self, index: usize, block: &Block) -> Value {
        match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Thinking(text) => {
                json!({"type": "thinking", "thinking": text, "signature": SIGNATURE})
            }
            Block::ToolUse { name, input } => {
                json!({"type": "tool_use", "id": self.tool_id(index), "name": name, "input": input})
            }
            Block::Other(block) => block.clone(),
        }
    }

    fn begun(&self, index: usize, block: &Block) -> Value {
        match block {
            Block::Text(_) => json!({"type": "text", "text": ""}),
            Block::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Block::ToolUse { name, .. } => {
                json!({"type": "tool_use", "id": self.tool_id(index), "name": name, "input": {}})
            }
            Block::Other(block) => block.clone(),
        }
    }

    fn deltas(&self, block: &Block) -> Vec<Value> {
        match block {
            Block::Text(text) => self
                .pieces(text)
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect(),
            Block::Thinking(text) => self
                .pieces(text)
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .chain([json!({"type": "signature_delta", "signature": SIGNATURE})])
                .collect(),
            Block::ToolUse { input, .. } => self
                .pieces(&input.to_string())
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
            Block::Other(_) => Vec::new(),
        }
    }

    fn pieces(&self, text: &str) -> impl Iterator<Item = String> {
        let characters: Vec<char> = text.chars().collect();
        let pieces: Vec<String> =
            characters.chunks(self.piece).map(|piece| piece.iter().collect()).collect();
        pieces.into_iter()
    }

    fn tool_id(&self, index: usize) -> String {
        format!("toolu_wire_{:06}_{index}", self.number)
    }
}

/// Thinking is signed; nobody but the API can check it.
const SIGNATURE: &str = "d2lyZQ==";
