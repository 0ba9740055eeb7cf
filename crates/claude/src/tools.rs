//! Tools that live in this process.
//!
//! The model sees a tool `parse` of the server `score` as `mcp__score__parse`. The program speaks
//! the Model Context Protocol with a server through the same lines as everything else; as much of
//! the protocol as tools need is spoken here.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// The version of the protocol that is spoken if the program names none.
const PROTOCOL: &str = "2025-06-18";

/// A set of tools under a name.
#[derive(Debug, Clone)]
pub struct ToolServer {
    pub(crate) name: String,
    pub(crate) tools: Vec<Tool>,
}

/// A tool that lives in this process.
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    schema: Value,
    call: Arc<Callback>,
}

type Callback = dyn Fn(Value) -> BoxFuture<'static, Result<String, String>> + Send + Sync;

impl ToolServer {
    /// A server with these tools. Its name consists of letters, digits, `_` and `-`.
    pub fn new(name: impl Into<String>, tools: impl IntoIterator<Item = Tool>) -> Self {
        Self { name: name.into(), tools: tools.into_iter().collect() }
    }

    /// Answers one message of the protocol.
    pub(crate) fn answer(&self, message: &Value) -> BoxFuture<'static, Value> {
        let Some(id) = message.get("id").filter(|id| !id.is_null()).cloned() else {
            // A notification; the request that brought it wants an answer all the same.
            return ready(json!({ "jsonrpc": "2.0", "result": {} }));
        };
        let params = message.get("params").cloned().unwrap_or_default();
        let result = match message.get("method").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": params.get("protocolVersion").unwrap_or(&json!(PROTOCOL)),
                "capabilities": { "tools": {} },
                "serverInfo": { "name": self.name, "version": env!("CARGO_PKG_VERSION") },
            }),
            "ping" => json!({}),
            "tools/list" => {
                json!({ "tools": self.tools.iter().map(Tool::listed).collect::<Vec<_>>() })
            }
            "tools/call" => {
                let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
                let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
                    return ready(error(&id, -32602, &format!("there is no tool `{name}`")));
                };
                let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
                let called = (tool.call)(arguments);
                return async move {
                    let (text, is_error) = match called.await {
                        Ok(text) => (text, false),
                        Err(text) => (text, true),
                    };
                    let content = json!([{ "type": "text", "text": text }]);
                    let result = json!({ "content": content, "isError": is_error });
                    json!({ "jsonrpc": "2.0", "id": id, "result": result })
                }
                .boxed();
            }
            method => return ready(error(&id, -32601, &format!("there is no method `{method}`"))),
        };
        ready(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }
}

impl Tool {
    /// A tool that `call` carries out. `schema` is the JSON Schema of its arguments; an error is
    /// told to the model.
    pub fn new<F>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        call: impl Fn(Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self {
            name: name.into(),
            description: description.into(),
            schema,
            call: Arc::new(move |arguments| call(arguments).boxed()),
        }
    }

    fn listed(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.schema,
            // Else the model is not shown what arguments there are.
            "_meta": { "anthropic/alwaysLoad": true },
        })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The answer for a server that there is not.
pub(crate) fn no_server(message: &Value, name: &str) -> Value {
    let id = message.get("id").cloned().unwrap_or_default();
    error(&id, -32601, &format!("there is no server `{name}`"))
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn ready(value: Value) -> BoxFuture<'static, Value> {
    futures::future::ready(value).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_speaks_as_much_of_the_protocol_as_tools_need() {
        let double =
            Tool::new("double", "Doubles.", json!({ "type": "object" }), |input| async move {
                let number = input["n"].as_i64().ok_or_else(|| "n is no number".to_owned())?;
                Ok((2 * number).to_string())
            });
        let server = ToolServer::new("sums", [double]);
        let ask = |message| server.answer(&message);
        let call = |n: Value| json!({ "id": 3, "method": "tools/call", "params": { "name": "double", "arguments": { "n": n } } });

        let hello =
            ask(json!({ "id": 1, "method": "initialize", "params": { "protocolVersion": "x" } }))
                .await;
        assert_eq!(hello["result"]["protocolVersion"], "x");
        let tools = ask(json!({ "id": 2, "method": "tools/list" })).await;
        assert_eq!(tools["result"]["tools"][0]["name"], "double");
        let told = |text: &str, is_error: bool| json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
        assert_eq!(ask(call(json!(21))).await["result"], told("42", false));
        assert_eq!(ask(call(json!("x"))).await["result"], told("n is no number", true));
        let unknown =
            ask(json!({ "id": 4, "method": "tools/call", "params": { "name": "x" } })).await;
        assert_eq!(unknown["error"]["code"], -32602);
        assert_eq!(ask(json!({ "id": 5, "method": "x" })).await["error"]["code"], -32601);
        let silent = ask(json!({ "method": "notifications/initialized" })).await;
        assert_eq!(silent, json!({ "jsonrpc": "2.0", "result": {} }));
    }
}
