//! A whole script, and a piece of one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{EvaluationResult, Score};

/// Which part of the pipeline wrote a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it all")]
pub enum SolutionPhase {
    Init,
    Merged,
    Refined,
    Ensemble,
    Final,
}

/// A Python script, and what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SolutionScript {
    /// The source. Empty where an agent failed to write one.
    pub content: String,
    /// Who wrote it.
    pub phase: SolutionPhase,
    /// What it scored when it was last evaluated.
    #[serde(default)]
    pub score: Option<Score>,
    /// Whether it ran to the end when it was last evaluated; taken on trust before that.
    #[serde(default = "yes")]
    pub is_executable: bool,
    /// The retrieved model that it was written for.
    #[serde(default)]
    pub source_model: Option<String>,
    /// When the step that wrote it was recorded.
    pub created_at: Timestamp,
}

/// The block to replace is not in the script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the code block is not in the script: `{}`", first_line(.block))]
pub struct BlockNotFound {
    /// The text that was looked for.
    pub block: String,
}

impl SolutionScript {
    /// A script that was not evaluated yet.
    pub fn new(content: impl Into<String>, phase: SolutionPhase, created_at: Timestamp) -> Self {
        Self {
            content: content.into(),
            phase,
            score: None,
            is_executable: true,
            source_model: None,
            created_at,
        }
    }

    /// The place that a script would have taken, had the agent written one.
    pub fn placeholder(phase: SolutionPhase, created_at: Timestamp) -> Self {
        Self { is_executable: false, ..Self::new("", phase, created_at) }
    }

    /// The script with the first occurrence of `old` replaced, not yet evaluated. It is as old as
    /// this one: whoever knows the step that wrote `new` sets the time.
    pub fn replace_block(&self, old: &str, new: &str) -> Result<Self, BlockNotFound> {
        if old.is_empty() || !self.content.contains(old) {
            return Err(BlockNotFound { block: old.to_owned() });
        }
        Ok(self.with_content(self.content.replacen(old, new, 1), self.created_at))
    }

    /// The same script with other source, written at `created_at` and not yet evaluated.
    #[must_use]
    pub fn with_content(&self, content: String, created_at: Timestamp) -> Self {
        Self { content, score: None, is_executable: true, created_at, ..self.clone() }
    }

    /// The script with what an evaluation found out about it.
    #[must_use]
    pub fn stamped(self, result: &EvaluationResult) -> Self {
        Self { score: result.usable_score(), is_executable: !result.is_error, ..self }
    }
}

/// The kind of thing that a block of a solution does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it all")]
pub enum CodeBlockCategory {
    Preprocessing,
    FeatureEngineering,
    ModelSelection,
    Training,
    HyperparameterTuning,
    Ensemble,
    Postprocessing,
    Other,
}

/// A piece of a script that was chosen for refinement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeBlock {
    /// The exact text. Empty for an outer step that found none.
    pub content: String,
    /// What it does.
    #[serde(default)]
    pub category: Option<CodeBlockCategory>,
    /// The outer step that chose it.
    #[serde(default)]
    pub outer_step: Option<usize>,
}

fn yes() -> bool {
    true
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn script(content: &str) -> SolutionScript {
        SolutionScript::new(content, SolutionPhase::Init, Timestamp::UNIX_EPOCH)
    }

    /// REQ-DM-008, REQ-DM-009, REQ-DM-010, REQ-DM-012
    #[test]
    fn replacing_a_block_forgets_the_score_and_keeps_the_rest() {
        let scored = SolutionScript {
            score: Score::new(0.5),
            source_model: Some("gbm".to_owned()),
            ..script("a\nb\na")
        };
        let replaced = scored.replace_block("a", "c").unwrap();
        assert_eq!(
            replaced,
            SolutionScript { content: "c\nb\na".to_owned(), score: None, ..scored.clone() }
        );
        assert_eq!(scored.content, "a\nb\na");
        assert_eq!(
            scored.replace_block("x", "c").unwrap_err().to_string(),
            "the code block is not in the script: `x`"
        );
        assert!(scored.replace_block("", "c").is_err());
    }

    proptest! {
        /// REQ-P2I-022
        #[test]
        fn replacing_equals_replacen(before: String, block in ".+", after: String, new: String) {
            let content = format!("{before}{block}{after}");
            let replaced = script(&content).replace_block(&block, &new).unwrap();
            prop_assert_eq!(replaced.content, content.replacen(&block, &new, 1));
        }
    }
}
