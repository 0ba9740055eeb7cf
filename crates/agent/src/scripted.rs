//! Replies that were written beforehand.
//!
//! A reply depends on the call alone, never on which calls came before it: a resumed run skips
//! the calls it has on record, and must still get the same answers to the others.
//!
//! # The file
//!
//! ```yaml
//! replies:
//!   - role: planner            # which role; required
//!     variant: detection       # which of its prompts; any if absent
//!     step: phase2/path-0/*    # where in the run; `*` stands for any text; anywhere if absent
//!     reply: |                 # the text of the reply
//!       Try $inner trees.      # `$inner` is 3 in step `.../inner-3/planner`; `$step` is the step
//!     cost_usd: 0.02           # what the call is said to cost; unknown if absent
//!   - role: coder
//!     no_answer: refused       # instead of `reply`: the conversation ends without an answer
//! ```
//!
//! The first rule that fits a call answers it.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use regex_lite::Regex;
use serde::Deserialize;

use crate::{Agent, AgentError, Call, Reply};

/// An agent that answers from a file or a function.
pub struct Scripted {
    answer: Box<Answer>,
}

type Answer = dyn Fn(&Call) -> Result<Reply, AgentError> + Send + Sync;

/// Why a file of replies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be read. The message names the path.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is not YAML of the right shape.
    #[error("cannot use `{path}` as scripted replies: {reason}")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A rule says both what to reply and that there is no answer, or neither.
    #[error("rule {number} for role `{role}` in `{path}` needs either `reply` or `no_answer`")]
    Ambiguous {
        /// The file.
        path: Utf8PathBuf,
        /// Which rule, counted from 1.
        number: usize,
        /// Its role.
        role: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    replies: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    role: String,
    variant: Option<String>,
    step: Option<String>,
    reply: Option<String>,
    no_answer: Option<String>,
    cost_usd: Option<f64>,
}

impl Scripted {
    /// An agent that answers with `answer`, which must depend on nothing but the call.
    pub fn new(
        answer: impl Fn(&Call) -> Result<Reply, AgentError> + Send + Sync + 'static,
    ) -> Self {
        Self { answer: Box::new(answer) }
    }

    /// Reads the replies from a YAML file.
    pub fn from_file(path: &Utf8Path) -> Result<Self, ScriptError> {
        let text = fs_err::read_to_string(path)?;
        let script: Script = serde_saphyr::from_str(&text).map_err(|error| ScriptError::Parse {
            path: path.to_owned(),
            reason: error.without_snippet().to_string(),
        })?;
        for (index, rule) in script.replies.iter().enumerate() {
            if rule.reply.is_some() == rule.no_answer.is_some() {
                return Err(ScriptError::Ambiguous {
                    path: path.to_owned(),
                    number: index + 1,
                    role: rule.role.clone(),
                });
            }
        }
        Ok(Self::new(move |call| script.answer(call)))
    }
}

impl Agent for Scripted {
    fn name(&self) -> &'static str {
        "scripted (no LLM)"
    }

    fn ask<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        ready((self.answer)(call)).boxed()
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

impl Script {
    fn answer(&self, call: &Call) -> Result<Reply, AgentError> {
        let rule = self.replies.iter().find(|rule| rule.fits(call)).ok_or_else(|| {
            AgentError::NotScripted { role: call.role.clone(), step: call.step.clone() }
        })?;
        match (&rule.reply, &rule.no_answer) {
            (Some(text), _) => {
                let text = with_indices(text, &call.step);
                let structured =
                    call.schema.as_ref().and_then(|_| serde_json::from_str(&text).ok());
                Ok(Reply { structured, cost_usd: rule.cost_usd, ..Reply::text(text) })
            }
            (None, reason) => Err(AgentError::NoAnswer {
                reason: reason.clone().unwrap_or_default(),
                cost_usd: rule.cost_usd,
            }),
        }
    }
}

impl Rule {
    fn fits(&self, call: &Call) -> bool {
        self.role == call.role
            && self.variant.as_ref().is_none_or(|variant| Some(variant) == call.variant.as_ref())
            && self.step.as_ref().is_none_or(|pattern| step_fits(pattern, &call.step))
    }
}

fn step_fits(pattern: &str, step: &str) -> bool {
    let escaped = pattern.split('*').map(regex_lite::escape).collect::<Vec<_>>().join(".*");
    Regex::new(&format!("^{escaped}$")).is_ok_and(|pattern| pattern.is_match(step))
}

/// Fills in `$step`, and `$outer` from a part `outer-2` of the step, and so on.
fn with_indices(text: &str, step: &str) -> String {
    let mut filled = text.replace("$step", step);
    for part in step.split('/') {
        if let Some((name, index)) = part.rsplit_once('-')
            && index.parse::<u32>().is_ok()
        {
            filled = filled.replace(&format!("${name}"), index);
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waits;

    fn call(role: &str, step: &str) -> Call {
        Call {
            step: step.to_owned(),
            role: role.to_owned(),
            variant: None,
            lane: "path-0".to_owned(),
            system_prompt: String::new(),
            prompt: String::new(),
            input: serde_json::Value::Null,
            tools: Vec::new(),
            schema: None,
            model: "sonnet".to_owned(),
            max_turns: None,
            max_budget_usd: None,
            thread: None,
            waits: Waits::default(),
        }
    }

    fn file(text: &str) -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("replies.yaml")).unwrap();
        fs_err::write(&path, text).unwrap();
        (dir, path)
    }

    #[tokio::test]
    async fn the_first_rule_that_fits_answers_with_the_place_filled_in() {
        let (_dir, path) = file(
            "replies:\n\
             - {role: planner, step: 'phase2/path-1/*', reply: 'inner $inner of $step'}\n\
             - {role: planner, reply: elsewhere, cost_usd: 0.5}\n",
        );
        let agent = Scripted::from_file(&path).unwrap();
        let step = "phase2/path-1/outer-0/inner-3/planner";

        assert_eq!(
            agent.ask(&call("planner", step)).await.unwrap(),
            Reply::text(format!("inner 3 of {step}"))
        );
        assert_eq!(
            agent.ask(&call("planner", "phase2/path-0/planner")).await.unwrap(),
            Reply { cost_usd: Some(0.5), ..Reply::text("elsewhere") }
        );
        let error = agent.ask(&call("coder", step)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("no scripted reply for role `coder` at step `{step}`")
        );
    }

    #[test]
    fn a_rule_without_an_answer_is_refused_by_name() {
        let (_dir, path) = file("replies:\n- {role: coder}\n");
        let error = Scripted::from_file(&path).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("rule 1 for role `coder` in `{path}` needs either `reply` or `no_answer`")
        );
    }

    #[test]
    fn a_misspelt_key_is_refused_with_its_place() {
        let (_dir, path) = file("replies:\n- {rol: coder, reply: x}\n");
        let error = Scripted::from_file(&path).unwrap_err().to_string();
        assert!(error.contains("rol") && error.contains("line 2"), "{error}");
    }
}
