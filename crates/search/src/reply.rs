//! Reading what agents write: code between fences, JSON in its many disguises.

use mle_star_agent::Reply;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The code in a reply: what stands between fences, the longest if there are several, else the
/// whole reply.
pub fn extract_code_block(reply: &str) -> String {
    match longest_fenced(reply) {
        Some(code) => code.to_owned(),
        None => reply.trim().to_owned(),
    }
}

/// The code in a reply, if there is any: a reply without fences counts only if it is a program.
pub fn try_extract_code(reply: &str) -> Option<String> {
    let code = match longest_fenced(reply) {
        Some(code) => code.to_owned(),
        None if mle_star_python::is_plausible_program(reply) => {
            mle_star_python::dedent(reply.trim_end())
        }
        None => return None,
    };
    (!code.trim().is_empty()).then_some(code)
}

/// Reads a structured reply. `wrapper` is the key that a bare list may have lost.
pub fn parse_structured<T: DeserializeOwned>(reply: &Reply, wrapper: Option<&str>) -> Option<T> {
    let read = |value: Value| -> Option<T> {
        let value = match (value, wrapper) {
            (list @ Value::Array(_), Some(key)) => {
                Value::Object([(key.to_owned(), list)].into_iter().collect())
            }
            (value, _) => value,
        };
        serde_json::from_value(value).ok()
    };
    reply.structured.clone().and_then(read).or_else(|| json_values(&reply.text).find_map(read))
}

/// Everything in `text` that is JSON: all of it, then each fenced part, then each balanced part.
pub fn json_values(text: &str) -> impl Iterator<Item = Value> + '_ {
    std::iter::once(text)
        .chain(fenced(text))
        .filter_map(|part| serde_json::from_str(part.trim()).ok())
        .chain(embedded(text))
}

/// Objects and arrays that stand within other text, outermost ones only.
fn embedded(text: &str) -> impl Iterator<Item = Value> + '_ {
    tries(text).flatten()
}

/// What is read from each bracket that may open a value: the value, or nothing.
fn tries(text: &str) -> impl Iterator<Item = Option<Value>> + '_ {
    // Prose full of braces must not make this quadratic for long, and brackets that are never closed
    // must not have a reply of megabytes read again from each of them.
    const TRIES: usize = 200;
    const MOST_BYTES: usize = 8 << 20;
    let mut from = 0;
    let mut in_vain = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(['{', '['])?;
        let rest = text.get(start..).filter(|_| in_vain < MOST_BYTES)?;
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let read = stream.next()?;
        match &read {
            Ok(_) => from = start + stream.byte_offset(),
            Err(error) => {
                from = start + 1;
                in_vain += bytes_before(rest, error);
            }
        }
        Some(read.ok())
    })
    .take(TRIES)
}

/// How much of a text was read when it turned out to be no JSON.
fn bytes_before(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column()
}

fn longest_fenced(text: &str) -> Option<&str> {
    // The last of equals, as `max_by_key` gives, is as good as the first; length decides.
    fenced(text).max_by_key(|code| code.chars().count())
}

/// The parts between fences, outermost pairs only.
///
/// A fence is a line of three or more backticks (or tildes), perhaps with a language. It is closed
/// by a bare fence at least as long; one with a language opens a nested block, which must close
/// first. A fence that is never closed runs to the end.
fn fenced(text: &str) -> impl Iterator<Item = &str> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Vec<Fence>)> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let Some(fence) = Fence::of(line) else { continue };
        match &mut open {
            None => open = Some((offset, vec![fence])),
            Some((code_start, nested)) => {
                if fence.has_language {
                    nested.push(fence);
                } else if nested.last().is_some_and(|it| fence.closes(it)) {
                    nested.pop();
                    if nested.is_empty() {
                        blocks.push((*code_start, start));
                        open = None;
                    }
                }
            }
        }
    }
    if let Some((start, _)) = open {
        blocks.push((start, text.len()));
    }
    blocks.into_iter().filter_map(|(start, end)| {
        let code = text.get(start..end)?;
        Some(code.strip_suffix('\n').map_or(code, |code| code.strip_suffix('\r').unwrap_or(code)))
    })
}

struct Fence {
    mark: char,
    length: usize,
    has_language: bool,
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        // Backticks further on mean inline code, not a fence.
        (length >= 3 && !info.contains('`')).then(|| Self {
            mark,
            length,
            has_language: !info.trim().is_empty(),
        })
    }

    fn closes(&self, open: &Self) -> bool {
        self.mark == open.mark && self.length >= open.length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::models::{ExtractorOutput, RetrieverOutput};

    /// REQ-SF-005, REQ-SF-004
    #[test]
    fn code_is_what_stands_between_fences() {
        assert_eq!(extract_code_block("```python\nprint('hello')\n```"), "print('hello')");
        assert_eq!(extract_code_block("Here:\n```\nx = 1\n```\nDone."), "x = 1");
        assert_eq!(extract_code_block("  print('hello')\n"), "print('hello')");
        assert_eq!(extract_code_block("```py\na\n```\n```py\nlonger\n```"), "longer");
        assert_eq!(extract_code_block("```python\nx = 1\n"), "x = 1");
        assert_eq!(extract_code_block("```python\r\nx = 1\r\n```"), "x = 1");
    }

    #[test]
    fn a_fence_within_code_does_not_end_it() {
        let code = "doc = '''\n```sql\nselect 1\n```\n'''\nprint(doc)";
        assert_eq!(extract_code_block(&format!("```python\n{code}\n```")), code);
        let code = "text = '''\n```\n'''";
        assert_eq!(extract_code_block(&format!("````python\n{code}\n````")), code);
    }

    #[test]
    fn indentation_of_a_fragment_is_kept() {
        assert_eq!(
            extract_code_block("```python\n    x = 1\n    y = 2\n```"),
            "    x = 1\n    y = 2"
        );
    }

    #[test]
    fn prose_is_no_code() {
        assert_eq!(try_extract_code("I am sorry, I cannot do that."), None);
        assert_eq!(try_extract_code("   "), None);
        assert_eq!(try_extract_code("```python\n\n```"), None);
        assert_eq!(
            try_extract_code("import os\nprint(os.name)\n").as_deref(),
            Some("import os\nprint(os.name)")
        );
    }

    #[test]
    fn json_is_found_in_every_disguise() {
        let plan = json!({"code_block": "x = {'a': [1]}", "plan": "p"});
        let expected: ExtractorOutput = serde_json::from_value(json!({"plans": [plan]})).unwrap();
        let object = json!({"plans": [plan]}).to_string();
        let list = json!([plan]).to_string();
        for text in [
            object.clone(),
            list.clone(),
            format!("```json\n{object}\n```"),
            format!("Sure! Here is [the] plan:\n```\n{list}\n```\nGood luck {{}}"),
            format!("I suggest {{this}}: {object} and nothing else."),
            format!("\u{feff}{object}").trim_start_matches('\u{feff}').to_owned(),
        ] {
            let read: Option<ExtractorOutput> =
                parse_structured(&Reply::text(text.as_str()), Some("plans"));
            assert_eq!(read.as_ref(), Some(&expected), "{text}");
        }
        let structured =
            Reply { structured: Some(json!({"plans": [plan]})), ..Reply::text("garbage") };
        assert_eq!(parse_structured(&structured, Some("plans")), Some(expected));
        for garbage in ["", "no", "{\"plans\": []}", "{\"plans\": [", "[]", "{\"models\": 3}"] {
            assert_eq!(
                parse_structured::<RetrieverOutput>(&Reply::text(garbage), Some("models")),
                None
            );
        }
    }

    /// A reply of some megabytes that is read a hundred times takes seconds.
    #[test]
    fn brackets_that_are_never_closed_are_not_read_again_and_again() {
        let unclosed = format!("{}{}", "[".repeat(100), "1,\n".repeat(1 << 18));
        assert_eq!(tries(&unclosed).count(), 11, "of 768 KiB each");
        assert_eq!(tries(&"[".repeat(100)).count(), 100);
    }

    #[test]
    fn it_is_known_how_far_a_reading_came() {
        let text = "[1,\n 2,\n x]";
        let error = serde_json::from_str::<Value>(text).unwrap_err();
        assert_eq!(text.get(..bytes_before(text, &error)), Some("[1,\n 2,\n x"));
    }

    proptest! {
        #[test]
        fn fenced_code_is_read_back(code in "[a-z =()\n]{1,80}", before in "[a-z .\n]{0,40}") {
            prop_assume!(!code.trim().is_empty());
            let code = code.trim_matches('\n').to_owned();
            prop_assume!(!code.is_empty());
            let reply = format!("{before}\n```python\n{code}\n```\n");
            prop_assert_eq!(extract_code_block(&reply), code);
        }

        #[test]
        fn arbitrary_replies_never_panic(text: String) {
            let _code = extract_code_block(&text);
            let _code = try_extract_code(&text);
            let _value: Option<RetrieverOutput> = parse_structured(&Reply::text(text), Some("models"));
        }
    }
}
