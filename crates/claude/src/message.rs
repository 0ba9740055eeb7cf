//! What the program says, typed as far as anybody needs it.
//!
//! The program learns to say new things with every version. What is not known is kept as it came
//! ([`Message::Other`]), and what is known is read leniently: a field that is missing or of another
//! type is as good as absent. Only the end of a turn must say whether it failed.

use serde_json::Value;

use crate::answer::Usage;

/// One message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// The model says or does something.
    Assistant(Assistant),
    /// Tools have given results.
    ToolResults(Vec<ToolResult>),
    /// A request failed and is made again.
    Retry(RetryMessage),
    /// The turn is over.
    Result(Box<ResultMessage>),
    /// Anything else, as it came.
    Other(Value),
}

/// Something that the model says or does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Assistant {
    /// The message that this is a part of.
    pub id: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What it says and does.
    pub blocks: Vec<Block>,
    /// Set if it is said to another agent, which called this one as a tool.
    pub parent_tool_use_id: Option<String>,
    /// What the program calls an error that it has made into a message.
    pub error: Option<String>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Block {
    /// Text for whoever asked.
    Text(String),
    /// The use of a tool.
    ToolUse {
        /// Which use.
        id: String,
        /// Which tool.
        name: String,
        /// What for.
        input: Value,
    },
    /// Anything else, as it came.
    Other(Value),
}

/// What a tool gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Which use of a tool.
    pub tool_use_id: String,
    /// Whether it failed.
    pub is_error: bool,
    /// What it gave.
    pub content: Value,
}

/// A request that failed and is made again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryMessage {
    /// The how manieth repetition.
    pub attempt: u64,
    /// How many there can be.
    pub max_retries: u64,
    /// How long until it is made.
    pub delay_ms: u64,
    /// The status of the one that failed.
    pub status: Option<u16>,
    /// What the program calls the failure.
    pub error: Option<String>,
}

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultMessage {
    /// How the program calls this kind of end.
    pub subtype: String,
    /// Whether it failed. Says more than the kind: failures of the service are a `success`.
    pub is_error: bool,
    /// The last text, or what went wrong.
    pub text: String,
    /// What went wrong.
    pub errors: Vec<String>,
    /// The structured reply.
    pub structured_output: Option<Value>,
    /// What the process, or the session before it, has cost so far.
    pub total_cost_usd: Option<f64>,
    /// What this turn has cost, where the program says so.
    pub turn_cost_usd: Option<f64>,
    /// The tokens of this turn.
    pub usage: Usage,
    /// How many turns were taken.
    pub turns: u32,
    /// The session.
    pub session_id: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// Why the program stopped.
    pub terminal_reason: Option<String>,
    /// The status with which the service refused.
    pub api_error_status: Option<u16>,
}

impl Assistant {
    /// Whether the program made this up, to say that something went wrong.
    pub fn is_made_up(&self) -> bool {
        self.model.as_deref() == Some("<synthetic>")
    }
}

impl Message {
    /// Types what was said. `None` if it is the end of a turn that does not say whether it failed.
    pub(crate) fn of(value: Value) -> Option<Self> {
        let kind = text(&value, "type").unwrap_or_default();
        let subtype = text(&value, "subtype").unwrap_or_default();
        match (kind.as_str(), subtype.as_str()) {
            ("assistant", _) => Some(Self::Assistant(assistant(value))),
            ("user", _) => Some(match tool_results(&value) {
                results if results.is_empty() => Self::Other(value),
                results => Self::ToolResults(results),
            }),
            ("system", "api_retry") => Some(Self::Retry(RetryMessage {
                attempt: number(&value, "attempt"),
                max_retries: number(&value, "max_retries"),
                delay_ms: number(&value, "retry_delay_ms"),
                status: status(&value, "error_status"),
                error: text(&value, "error"),
            })),
            ("result", _) => Some(Self::Result(Box::new(result(value, subtype)?))),
            _ => Some(Self::Other(value)),
        }
    }
}

fn assistant(mut value: Value) -> Assistant {
    let parent_tool_use_id = text(&value, "parent_tool_use_id");
    let error = text(&value, "error");
    let mut message = value.get_mut("message").map(Value::take).unwrap_or_default();
    let (id, model) = (text(&message, "id"), text(&message, "model"));
    let blocks = match message.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks.into_iter().map(block).collect(),
        Some(Value::String(text)) => vec![Block::Text(text)],
        _ => Vec::new(),
    };
    Assistant { id, model, blocks, parent_tool_use_id, error }
}

fn block(mut value: Value) -> Block {
    match (value.get("type").and_then(Value::as_str), text(&value, "text"), text(&value, "name")) {
        (Some("text"), Some(text), _) => Block::Text(text),
        (Some("tool_use"), _, Some(name)) => Block::ToolUse {
            id: text(&value, "id").unwrap_or_default(),
            name,
            input: value.get_mut("input").map(Value::take).unwrap_or_default(),
        },
        _ => Block::Other(value),
    }
}

fn tool_results(value: &Value) -> Vec<ToolResult> {
    let content = value.pointer("/message/content").and_then(Value::as_array);
    let results = content.into_iter().flatten().filter(|it| it["type"] == "tool_result");
    results
        .map(|it| ToolResult {
            tool_use_id: text(it, "tool_use_id").unwrap_or_default(),
            is_error: it["is_error"] == true,
            content: it.get("content").cloned().unwrap_or_default(),
        })
        .collect()
}

fn result(mut value: Value, subtype: String) -> Option<ResultMessage> {
    let is_error = value.get("is_error")?.as_bool()?;
    let usage = value.get("usage").cloned().unwrap_or_default();
    let errors = value.get("errors").and_then(Value::as_array).into_iter().flatten();
    let of_models = value.get("model_usage_since_last_result").and_then(Value::as_object);
    Some(ResultMessage {
        subtype,
        is_error,
        errors: errors.filter_map(|it| it.as_str().map(str::to_owned)).collect(),
        text: text(&value, "result").unwrap_or_default(),
        total_cost_usd: money(value.get("total_cost_usd")),
        turn_cost_usd: of_models
            .map(|models| models.values().filter_map(|model| money(model.get("costUSD"))).sum()),
        usage: Usage {
            input_tokens: number(&usage, "input_tokens"),
            output_tokens: number(&usage, "output_tokens"),
            cache_creation_input_tokens: number(&usage, "cache_creation_input_tokens"),
            cache_read_input_tokens: number(&usage, "cache_read_input_tokens"),
        },
        turns: u32::try_from(number(&value, "num_turns")).unwrap_or(u32::MAX),
        session_id: text(&value, "session_id"),
        stop_reason: text(&value, "stop_reason"),
        terminal_reason: text(&value, "terminal_reason"),
        api_error_status: status(&value, "api_error_status"),
        structured_output: value
            .get_mut("structured_output")
            .map(Value::take)
            .filter(|output| !output.is_null()),
    })
}

/// A sum that can be added to others.
fn money(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64).filter(|cost| cost.is_finite() && *cost >= 0.0)
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn status(value: &Value, name: &str) -> Option<u16> {
    value.get(name)?.as_u64().and_then(|status| u16::try_from(status).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Any JSON, often with the names that mean something here.
    fn value() -> impl Strategy<Value = Value> {
        let names = proptest::sample::select(vec![
            "type",
            "subtype",
            "message",
            "content",
            "text",
            "name",
            "input",
            "is_error",
            "result",
            "usage",
            "errors",
            "model_usage_since_last_result",
            "costUSD",
            "total_cost_usd",
            "input_tokens",
            "num_turns",
            "api_error_status",
            "structured_output",
            "attempt",
            "id",
        ]);
        let words = proptest::sample::select(vec![
            "assistant",
            "user",
            "system",
            "result",
            "api_retry",
            "text",
            "tool_use",
            "tool_result",
            "success",
            "refusal",
            "\u{0}",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            words.prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 8, move |inner| {
            let pairs = proptest::collection::btree_map(names.clone(), inner.clone(), 0..8);
            prop_oneof![
                proptest::collection::vec(inner, 0..6).prop_map(Value::from),
                pairs.prop_map(|pairs| {
                    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn frames_of_any_kind_are_typed_and_their_sums_can_be_added(mut frame in value(), kind in 0..4) {
            let kinds = ["assistant", "user", "result", "system"];
            if let Some(frame) = frame.as_object_mut() {
                frame.insert("type".to_owned(), json!(kinds[kind as usize]));
            }
            if let Some(Message::Result(result)) = Message::of(frame) {
                for cost in [result.total_cost_usd, result.turn_cost_usd].into_iter().flatten() {
                    prop_assert!(cost >= 0.0 && !cost.is_nan());
                }
            }
        }
    }
}
