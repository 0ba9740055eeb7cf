//! How services other than the API itself take requests and give answers: Vertex AI has the model in
//! the path, and Bedrock that and frames of its own instead of server-sent events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Value, json};

/// What the path of a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    /// The model, if it is not in the body.
    model: Option<String>,
    /// Whether the answer is to be streamed, if it is not in the body.
    stream: Option<bool>,
    /// Whether only the tokens are to be counted.
    pub(crate) counts: bool,
    pub(crate) framing: Framing,
}

/// How the events of a streamed answer are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// As server-sent events.
    Lines,
    /// As frames with lengths and checksums.
    Amazon,
}

impl Path {
    /// What a path says, if it is one of the API in any form.
    pub(crate) fn read(path: &str) -> Option<Self> {
        let plain = Self { model: None, stream: None, counts: false, framing: Framing::Lines };
        if let Some(call) = path.strip_prefix("/model/") {
            let (model, call) = call.split_once('/')?;
            let stream = match call {
                "invoke" => false,
                "invoke-with-response-stream" => true,
                _ => return None,
            };
            let model = model.replace("%3A", ":").replace("%2F", "/");
            let framing = Framing::Amazon;
            return Some(Self { model: Some(model), stream: Some(stream), framing, ..plain });
        }
        if path.starts_with("/projects/") {
            let (model, call) = path.rsplit_once('/')?.1.rsplit_once(':')?;
            let is_known = matches!(call, "rawPredict" | "streamRawPredict");
            let counts = model == "count-tokens";
            return is_known.then(|| Self { model: Some(model.to_owned()), counts, ..plain });
        }
        match path {
            "/v1/messages" => Some(plain),
            "/v1/messages/count_tokens" => Some(Self { counts: true, ..plain }),
            _ => None,
        }
    }

    /// Puts into a body what other services have elsewhere.
    pub(crate) fn complete(&self, body: &mut serde_json::Map<String, Value>) {
        if let Some(model) = &self.model {
            body.insert("model".to_owned(), model.as_str().into());
        }
        if let Some(stream) = self.stream {
            body.insert("stream".to_owned(), stream.into());
        }
    }
}

impl Framing {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Lines => "text/event-stream; charset=utf-8",
            Self::Amazon => "application/vnd.amazon.eventstream",
        }
    }

    /// One event.
    pub(crate) fn event(self, name: &str, data: &Value) -> Bytes {
        match self {
            Self::Lines => format!("event: {name}\ndata: {data}\n\n").into(),
            Self::Amazon => frame(&json!({ "bytes": STANDARD.encode(data.to_string()) })),
        }
    }
}

/// A frame: two lengths and their checksum, headers, the payload, and a checksum of all of it.
fn frame(payload: &Value) -> Bytes {
    const TEXT: u8 = 7;
    const AROUND: usize = 16; // lengths and checksums
    let mut headers = BytesMut::new();
    for (name, value) in [
        (":event-type", "chunk"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ] {
        headers.put_u8(u8::try_from(name.len()).unwrap_or_default());
        headers.put_slice(name.as_bytes());
        headers.put_u8(TEXT);
        headers.put_u16(u16::try_from(value.len()).unwrap_or_default());
        headers.put_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let mut frame = BytesMut::new();
    frame.put_u32(length(AROUND + headers.len() + payload.len()));
    frame.put_u32(length(headers.len()));
    frame.put_u32(crc32fast::hash(&frame));
    frame.put(headers);
    frame.put_slice(payload.as_bytes());
    frame.put_u32(crc32fast::hash(&frame));
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_says_what_the_body_does_not() {
        let said = |path: &str| {
            let mut body = serde_json::Map::new();
            let path = Path::read(path)?;
            path.complete(&mut body);
            Some((Value::Object(body), path.counts, path.framing))
        };
        assert_eq!(said("/v1/messages"), Some((json!({}), false, Framing::Lines)));
        assert_eq!(said("/v1/messages/count_tokens"), Some((json!({}), true, Framing::Lines)));
        let vertex = "/projects/p/locations/l/publishers/anthropic/models";
        assert_eq!(
            said(&format!("{vertex}/sonnet@1:streamRawPredict")),
            Some((json!({ "model": "sonnet@1" }), false, Framing::Lines))
        );
        let counts = said(&format!("{vertex}/count-tokens:rawPredict")).unwrap();
        assert!(counts.1);
        assert_eq!(
            said("/model/arn%3Aa%2Fsonnet/invoke-with-response-stream"),
            Some((json!({ "model": "arn:a/sonnet", "stream": true }), false, Framing::Amazon))
        );
        assert_eq!(
            said("/model/sonnet/invoke"),
            Some((json!({ "model": "sonnet", "stream": false }), false, Framing::Amazon))
        );
        for path in ["/", "/v1/models", "/model/x/converse", "/projects/p/models/x:predict"] {
            assert_eq!(said(path), None, "{path}");
        }
    }

    #[test]
    fn a_frame_has_the_form_that_others_write_it_in() {
        let frame = frame(&json!({}));
        let number = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        assert_eq!(number(0) as usize, frame.len());
        assert_eq!(number(8), crc32fast::hash(&frame[..8]));
        let end = frame.len() - 4;
        assert_eq!(number(end), crc32fast::hash(&frame[..end]));
        assert_eq!(&frame[12 + number(4) as usize..end], b"{}");
        assert_eq!(&frame[12..24], b"\x0b:event-type");
        assert_eq!(&frame[24..32], b"\x07\x00\x05chunk");
    }
}
