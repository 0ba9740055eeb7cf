//! One request as the server understood it.

use hyper::HeaderMap;
use serde_json::Value;

use crate::dialect::Framing;

/// A request to `/v1/messages`, or to the same of another service.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model that was asked for.
    pub model: String,
    /// The system prompt; its blocks are separated by blank lines.
    pub system: String,
    /// The conversation, as it was sent. Roles other than `user` and `assistant` occur.
    pub messages: Vec<Value>,
    /// The tools the model may use, as they were sent.
    pub tools: Vec<Value>,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// The UUID of the conversation, where the client names one in `metadata.user_id`.
    pub session: Option<String>,
    /// The whole body, with what other services have in the path.
    pub body: Value,
    pub(crate) framing: Framing,
    headers: HeaderMap,
}

/// What a tool gave back, as it stands in the last message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the use that this is the result of.
    pub tool_use_id: String,
    /// Its text blocks, joined by line breaks.
    pub text: String,
    /// Whether the tool failed or was refused.
    pub is_error: bool,
}

impl Request {
    pub(crate) fn new(body: Value, headers: HeaderMap, framing: Framing) -> Self {
        Self {
            framing,
            model: text_at(&body, "model"),
            system: body.get("system").map(|system| joined(system, "\n\n")).unwrap_or_default(),
            messages: list_at(&body, "messages"),
            tools: list_at(&body, "tools"),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            session: body
                .pointer("/metadata/user_id")
                .and_then(Value::as_str)
                .and_then(session_in_user_id),
            body,
            headers,
        }
    }

    /// A header's value, if it is there and is text. Names are compared without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The text of each message of the user, oldest first, without the blocks of reminders that
    /// the CLI puts before it. Messages that hold only results of tools count, as empty texts.
    pub fn user_texts(&self) -> Vec<String> {
        self.messages
            .iter()
            .filter(|message| is_user(message))
            .map(|message| message.get("content").map(|it| joined(it, "\n")).unwrap_or_default())
            .collect()
    }

    /// The text of the newest message of the user that has any.
    pub fn last_user_text(&self) -> String {
        self.user_texts().into_iter().rfind(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Whether the model may use a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.get("name").and_then(Value::as_str) == Some(name))
    }

    /// The results of tools in the newest message of the user, in order; empty if it has none.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let Some(newest) = self.messages.iter().rfind(|message| is_user(message)) else {
            return Vec::new();
        };
        blocks_of(newest)
            .filter(|block| kind(block) == Some("tool_result"))
            .map(|block| ToolResult {
                tool_use_id: text_at(block, "tool_use_id"),
                text: block.get("content").map(|it| joined(it, "\n")).unwrap_or_default(),
                is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            })
            .collect()
    }
}

fn is_user(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("user")
}

fn kind(block: &Value) -> Option<&str> {
    block.get("type").and_then(Value::as_str)
}

fn blocks_of(message: &Value) -> impl Iterator<Item = &Value> {
    message.get("content").and_then(Value::as_array).into_iter().flatten()
}

fn text_at(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list_at(value: &Value, key: &str) -> Vec<Value> {
    value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Content is a string or a list of blocks, of which only those of text are of interest.
fn joined(content: &Value, separator: &str) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => content
            .as_array()
            .into_iter()
            .flatten()
            .filter(|block| kind(block) == Some("text"))
            .filter_map(|block| block.get("text").and_then(Value::as_str))
            .filter(|text| !is_reminder(text))
            .collect::<Vec<_>>()
            .join(separator),
    }
}

/// The CLI tells the model about its surroundings in blocks of their own.
fn is_reminder(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>")
}

/// The CLI writes a JSON object with `session_id` as text; older ones wrote
/// `user_…_account_…_session_UUID`.
fn session_in_user_id(user_id: &str) -> Option<String> {
    let session = match serde_json::from_str::<Value>(user_id) {
        Ok(object) => object.get("session_id")?.as_str()?.to_owned(),
        Err(_) => user_id.rsplit_once("session_")?.1.to_owned(),
    };
    (!session.is_empty()).then_some(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SESSION: &str = "6a1f5d0c-2b55-4d3c-9f5e-6a2f0d4f8f10";

    #[test]
    fn the_session_is_found_in_both_forms_of_the_user_id() {
        let object = format!(r#"{{"device_id":"ab","account_uuid":"","session_id":"{SESSION}"}}"#);
        assert_eq!(session_in_user_id(&object).as_deref(), Some(SESSION));
        let flat = format!("user_ab_account__session_{SESSION}");
        assert_eq!(session_in_user_id(&flat).as_deref(), Some(SESSION));
        assert_eq!(session_in_user_id("somebody"), None);
        assert_eq!(session_in_user_id("{}"), None);
    }

    #[test]
    fn texts_and_results_come_out_of_plain_strings_and_blocks() {
        let request = Request::new(
            json!({
                "model": "m",
                "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                "tools": [{"name": "Bash"}],
                "messages": [
                    {"role": "user", "content": [
                        {"type": "text", "text": "<system-reminder>\nx\n</system-reminder>\n"},
                        {"type": "text", "text": "first"},
                    ]},
                    {"role": "assistant", "content": "not mine"},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "is_error": true,
                         "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
                        {"type": "tool_result", "tool_use_id": "t2", "content": "z"},
                    ]},
                ],
            }),
            HeaderMap::new(),
            Framing::Lines,
        );
        assert_eq!(request.system, "a\n\nb");
        assert_eq!(request.user_texts(), ["first", ""]);
        assert_eq!(request.last_user_text(), "first");
        assert!(request.has_tool("Bash") && !request.has_tool("Edit"));
        assert_eq!(
            request.tool_results(),
            [
                ToolResult { tool_use_id: "t1".into(), text: "x\ny".into(), is_error: true },
                ToolResult { tool_use_id: "t2".into(), text: "z".into(), is_error: false },
            ]
        );
    }
}
