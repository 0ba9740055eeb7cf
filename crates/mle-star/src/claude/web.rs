//! Whether the web was searched.
//!
//! The program has a tool for it, which has the endpoint of the model do the search. Gateways and
//! servers of other models refuse that, ignore it, or find nothing; the program tells the model so
//! and goes on. A reply that rests on the model's memory looks like any other, so it is marked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mle_star_agent::Call;
use mle_star_claude::ToolDone;
use mle_star_search::models::WEB_TOOLS;
use serde_json::Value;

/// The tool that searches.
const SEARCH: &str = "WebSearch";
/// How much is told of what an endpoint said.
const TOLD_CHARS: usize = 200;

/// The searches of one call.
#[derive(Debug, Clone, Default)]
pub(super) struct Searches {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    found: usize,
    in_vain: usize,
    /// What was said of the last that failed.
    said: Option<String>,
}

impl Searches {
    /// Takes note of a tool that was used.
    pub(super) fn note(&self, done: &ToolDone) {
        if done.tool != SEARCH {
            return;
        }
        let mut seen = self.seen();
        if done.error.is_none() && links(&done.response) > 0 {
            seen.found += 1;
        } else {
            seen.in_vain += 1;
            seen.said = done.error.clone().or_else(|| first_text(&done.response));
        }
    }

    /// Whether searches were made, and none of them found anything.
    pub(super) fn are_in_vain(&self) -> bool {
        let seen = self.seen();
        seen.found == 0 && seen.in_vain > 0
    }

    /// What is to be said about the reply to `call`, if it should rest on the web and does not.
    pub(super) fn warning(&self, call: &Call) -> Option<String> {
        let seen = self.seen();
        let wanted = call.tools.iter().any(|tool| tool == SEARCH);
        if !wanted || seen.found > 0 {
            return None;
        }
        let how = match (seen.in_vain, &seen.said) {
            (0, _) => "the web was not searched".to_owned(),
            (_, None) => "the web could not be searched through this endpoint".to_owned(),
            (_, Some(said)) => {
                let said: String = said.chars().take(TOLD_CHARS).collect();
                format!("the web could not be searched through this endpoint ({})", said.trim())
            }
        };
        Some(format!("answered from the model's own knowledge: {how}"))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same call without the web.
pub(super) fn without(call: &Call) -> Call {
    let mut call = call.clone();
    call.tools.retain(|tool| !WEB_TOOLS.contains(&tool.as_str()));
    call
}

/// How many pages a search has found.
fn links(response: &Value) -> usize {
    let results = response.get("results").and_then(Value::as_array).into_iter().flatten();
    let pages = results.filter_map(|result| result.get("content")?.as_array()).flatten();
    pages.filter(|page| page.get("url").is_some()).count()
}

/// What stands where pages should stand.
fn first_text(response: &Value) -> Option<String> {
    let results = response.get("results").and_then(Value::as_array).into_iter().flatten();
    results.filter_map(Value::as_str).next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn searched(response: Value, error: Option<&str>) -> Searches {
        let searches = Searches::default();
        searches.note(&ToolDone {
            tool: SEARCH.to_owned(),
            input: Value::Null,
            response,
            error: error.map(str::to_owned),
            duration: None,
            agent_id: None,
        });
        searches
    }

    #[test]
    fn only_pages_count_as_found() {
        let page = json!({ "title": "Ridge", "url": "https://example.org" });
        let found = searched(json!({ "results": [{ "content": [page] }, "Ridge."] }), None);
        assert!(!found.are_in_vain());
        for (response, error) in [
            (json!({ "results": [{ "content": [] }, "Nothing."] }), None),
            (json!({ "results": ["Web search error: unavailable"] }), None),
            (json!("nonsense"), None),
            (Value::Null, Some("API Error: 400")),
        ] {
            assert!(searched(response.clone(), error).are_in_vain(), "{response}");
        }
        assert!(!Searches::default().are_in_vain());
    }
}
