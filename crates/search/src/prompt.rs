//! The 18 prompts, and how their blanks are filled in.
//!
//! A prompt is a Markdown file beside its role. `{name}` is a blank if `name` is declared for that
//! prompt; any other brace is just a brace, because prompts show code and schemas. Filling in is a
//! single pass: what was inserted is never looked at again, so a script full of braces is safe.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::models::{AgentType, nearest};

/// What fills the blanks of a prompt.
pub type Variables = BTreeMap<&'static str, String>;

/// A prompt with blanks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptTemplate {
    /// Whose prompt it is.
    pub agent_type: AgentType,
    /// Which of the agent's prompts, if it has several.
    pub variant: Option<&'static str>,
    /// Where the paper shows it.
    pub figure_ref: &'static str,
    /// The text.
    pub template: String,
    /// The blanks that it may have.
    pub variables: &'static [&'static str],
    /// The name of its file, which an override must have too.
    pub file_name: &'static str,
}

/// All prompts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRegistry {
    templates: Vec<PromptTemplate>,
}

/// Why a prompt cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A blank has nothing to fill it.
    #[error("no value for `{{{name}}}` in the prompt of `{agent}`")]
    MissingVariable {
        /// The blank.
        name: &'static str,
        /// Whose prompt.
        agent: AgentType,
    },
    /// There is no such prompt.
    #[error("no prompt for `{agent}`{}", .variant.as_ref().map(|it| format!(" variant `{it}`")).unwrap_or_default())]
    Unregistered {
        /// Whose prompt was asked for.
        agent: AgentType,
        /// Which of them.
        variant: Option<String>,
    },
    /// An override uses a name that its prompt does not have.
    #[error("`{path}` uses `{{{name}}}`, which this prompt does not have{}", .nearest.map(|it| format!("; did you mean `{{{it}}}`?")).unwrap_or_default())]
    UnknownVariable {
        /// The override.
        path: Utf8PathBuf,
        /// The name.
        name: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// A file in the folder of overrides replaces nothing.
    #[error("`{path}` replaces no prompt; the names are {}", file_names())]
    UnknownFile {
        /// The file.
        path: Utf8PathBuf,
    },
    /// An override cannot be read. The message names the path.
    #[error(transparent)]
    Read(#[from] std::io::Error),
}

/// Names in braces that are part of what the prompts say.
const LITERALS: &[&str] = &["final_validation_score"];

macro_rules! prompts {
    ($(($agent:ident, $variant:expr, $figure:literal, $file:literal, [$($variable:literal),* $(,)?])),* $(,)?) => {
        fn builtin() -> Vec<PromptTemplate> {
            vec![$(PromptTemplate {
                agent_type: AgentType::$agent,
                variant: $variant,
                figure_ref: $figure,
                template: include_str!(concat!("roles/", $file)).to_owned(),
                variables: &[$($variable),*],
                file_name: $file,
            }),*]
        }
    };
}

// An agent's default prompt comes before its variants.
prompts![
    (
        Retriever,
        None,
        "Figure 9",
        "retriever.md",
        ["task_description", "M", "evaluation_metric", "direction"]
    ),
    (
        Init,
        None,
        "Figure 10",
        "init.md",
        [
            "task_description",
            "model_name",
            "example_code",
            "evaluation_metric",
            "direction",
            "subsample_instruction",
            "environment"
        ]
    ),
    (
        Merger,
        None,
        "Figure 11",
        "merger.md",
        [
            "base_code",
            "reference_code",
            "evaluation_metric",
            "direction",
            "subsample_instruction",
            "environment"
        ]
    ),
    (
        Ablation,
        None,
        "Figure 12",
        "ablation.md",
        ["solution_script", "previous_ablations", "evaluation_metric", "direction", "environment"]
    ),
    (Summarize, None, "Figure 13", "summarize.md", ["ablation_code", "raw_result"]),
    (
        Extractor,
        None,
        "Figure 14",
        "extractor.md",
        [
            "solution_script",
            "ablation_summary",
            "previous_code_blocks",
            "evaluation_metric",
            "direction",
            "retry_note"
        ]
    ),
    (
        Coder,
        None,
        "Figure 15",
        "coder.md",
        ["code_block", "plan", "subsample_instruction", "environment"]
    ),
    (
        Planner,
        None,
        "Figure 16",
        "planner.md",
        ["code_block", "plans", "scores", "evaluation_metric", "direction"]
    ),
    (
        EnsPlanner,
        None,
        "Figure 17",
        "ens_planner.md",
        ["L", "solutions", "plans", "scores", "evaluation_metric", "direction"]
    ),
    (
        Ensembler,
        None,
        "Figure 18",
        "ensembler.md",
        ["L", "solutions", "plan", "evaluation_metric", "direction", "environment"]
    ),
    (
        Debugger,
        None,
        "Figure 19",
        "debugger.md",
        ["code", "bug", "subsample_instruction", "environment", "submission_note"]
    ),
    (Leakage, Some("detection"), "Figure 20", "leakage_detection.md", ["code"]),
    (Leakage, Some("correction"), "Figure 21", "leakage_correction.md", ["code", "code_block"]),
    (Data, None, "Figure 22", "data.md", ["initial_solution", "task_description", "environment"]),
    (Test, None, "Figure 25", "test.md", ["task_description", "final_solution", "environment"]),
    (
        Test,
        Some("subsampling_extract"),
        "Figure 26",
        "test_subsampling_extract.md",
        ["final_solution"]
    ),
    (
        Test,
        Some("subsampling_remove"),
        "Figure 27",
        "test_subsampling_remove.md",
        ["code_block_with_subsampling"]
    ),
    (
        Test,
        Some("contamination"),
        "Figure 28",
        "test_contamination.md",
        ["reference_discussion", "final_solution"]
    ),
];

impl PromptRegistry {
    /// The built-in prompts.
    pub fn builtin() -> Self {
        Self { templates: builtin() }
    }

    /// The built-in prompts, with those that `folder` holds in their place.
    pub fn with_overrides(folder: &Utf8Path) -> Result<Self, PromptError> {
        let mut registry = Self::builtin();
        for entry in folder.read_dir_utf8()? {
            let path = entry?.into_path();
            if path.extension() != Some("md") {
                continue;
            }
            let known = |it: &&mut PromptTemplate| Some(it.file_name) == path.file_name();
            let Some(template) = registry.templates.iter_mut().find(known) else {
                return Err(PromptError::UnknownFile { path });
            };
            let text = fs_err::read_to_string(&path)?;
            if let Some(name) = unknown_variable(&text, template.variables) {
                let nearest = nearest(name, template.variables.iter().copied());
                return Err(PromptError::UnknownVariable { path, name: name.to_owned(), nearest });
            }
            template.template = text;
        }
        Ok(registry)
    }

    /// The default prompt of `agent`.
    pub fn get(&self, agent: AgentType) -> Result<&PromptTemplate, PromptError> {
        self.variant(agent, None)
    }

    /// One of the prompts of `agent`; its default if none is named.
    pub fn variant(
        &self,
        agent: AgentType,
        variant: Option<&str>,
    ) -> Result<&PromptTemplate, PromptError> {
        let mut prompts = self.templates.iter().filter(|it| it.agent_type == agent);
        match variant {
            None => prompts.next(),
            Some(name) => prompts.find(|it| it.variant == Some(name)),
        }
        .ok_or_else(|| PromptError::Unregistered { agent, variant: variant.map(str::to_owned) })
    }

    /// How many agents have a prompt.
    pub fn len(&self) -> usize {
        AgentType::ALL.into_iter().filter(|agent| self.get(*agent).is_ok()).count()
    }

    /// Whether there is no prompt at all.
    pub fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }

    /// How many prompts there are.
    pub fn template_count(&self) -> usize {
        self.templates.len()
    }

    /// All prompts.
    pub fn templates(&self) -> &[PromptTemplate] {
        &self.templates
    }
}

impl PromptTemplate {
    /// Fills in the blanks. Values that the prompt has no blank for are ignored.
    pub fn render(&self, values: &Variables) -> Result<String, PromptError> {
        let mut rendered = String::with_capacity(self.template.len() * 2);
        let mut hole = false;
        for piece in pieces(&self.template) {
            match piece {
                Piece::Text(text) => {
                    // An empty section that had a line of its own leaves no gap behind.
                    let gap = if hole { "\n\n" } else { "" };
                    rendered.push_str(text.strip_prefix(gap).unwrap_or(text));
                    hole = false;
                }
                Piece::Braced { name, source } => {
                    let name = name.replace(' ', "_");
                    let value = match self.variables.iter().find(|it| **it == name) {
                        None => source,
                        Some(name) => values
                            .get(name)
                            .ok_or(PromptError::MissingVariable { name, agent: self.agent_type })?,
                    };
                    rendered.push_str(value);
                    hole = value.is_empty() && (rendered.is_empty() || rendered.ends_with('\n'));
                }
            }
        }
        Ok(rendered)
    }
}

enum Piece<'a> {
    Text(&'a str),
    Braced { name: &'a str, source: &'a str },
}

/// Splits a template at `{name}`, where a name is made of letters, digits, `_` and single blanks.
fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, remaining) = match rest.find('{') {
            Some(0) => match braced_name(rest) {
                Some(name) => {
                    let (source, remaining) = rest.split_at(name.len() + 2);
                    (Piece::Braced { name, source }, remaining)
                }
                None => {
                    let (text, remaining) = rest.split_at(1);
                    (Piece::Text(text), remaining)
                }
            },
            at => {
                let (text, remaining) = rest.split_at(at.unwrap_or(rest.len()));
                (Piece::Text(text), remaining)
            }
        };
        rest = remaining;
        Some(piece)
    })
}

fn braced_name(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('{')?;
    let (name, _) = inner.split_once('}')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b' ';
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

fn unknown_variable<'a>(text: &'a str, declared: &[&str]) -> Option<&'a str> {
    pieces(text).find_map(|piece| match piece {
        Piece::Braced { name, .. } => {
            let plain = name.replace(' ', "_");
            let known = declared.contains(&plain.as_str()) || LITERALS.contains(&plain.as_str());
            (!known).then_some(name)
        }
        Piece::Text(_) => None,
    })
}

fn file_names() -> String {
    builtin().iter().map(|it| it.file_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(text: &str, variables: &'static [&'static str]) -> PromptTemplate {
        PromptTemplate {
            agent_type: AgentType::Retriever,
            variant: None,
            figure_ref: "Figure 9",
            template: text.to_owned(),
            variables,
            file_name: "retriever.md",
        }
    }

    /// REQ-DM-030, REQ-DM-031
    #[test]
    fn blanks_are_filled_in_and_other_braces_left_alone() {
        let prompt = template(
            "List {M} models for {task description}. {'a': 1} {x}",
            &["M", "task_description"],
        );
        let values =
            Variables::from([("M", "4".into()), ("task_description", "classify {M}".into())]);
        assert_eq!(prompt.render(&values).unwrap(), "List 4 models for classify {M}. {'a': 1} {x}");
        assert_eq!(
            prompt.render(&Variables::new()).unwrap_err().to_string(),
            "no value for `{M}` in the prompt of `retriever`"
        );
    }

    /// REQ-DM-032, REQ-DM-033, REQ-DM-034, REQ-DM-035
    #[test]
    fn there_are_14_agents_and_18_prompts() {
        let registry = PromptRegistry::builtin();
        assert_eq!((registry.len(), registry.template_count()), (14, 18));
        let figure = |agent, variant| registry.variant(agent, variant).unwrap().figure_ref;
        assert_eq!(figure(AgentType::Leakage, None), "Figure 20");
        assert_eq!(figure(AgentType::Leakage, Some("correction")), "Figure 21");
        assert_eq!(figure(AgentType::Test, Some("subsampling_extract")), "Figure 26");
        assert_eq!(
            registry.variant(AgentType::Test, Some("x")).unwrap_err().to_string(),
            "no prompt for `test` variant `x`"
        );
    }

    #[test]
    fn an_empty_section_leaves_no_gap() {
        let prompt = template("a\n\n{M}\n\nb {M}\nc", &["M"]);
        assert_eq!(prompt.render(&Variables::from([("M", String::new())])).unwrap(), "a\n\nb \nc");
    }

    #[test]
    fn no_builtin_prompt_uses_an_undeclared_name() {
        for prompt in PromptRegistry::builtin().templates() {
            assert_eq!(
                unknown_variable(&prompt.template, prompt.variables),
                None,
                "{}",
                prompt.file_name
            );
        }
    }

    #[test]
    fn a_folder_can_replace_prompts_but_not_misspell_them() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(dir.path()).unwrap();
        fs_err::write(folder.join("summarize.md"), "Sum up {raw_result}.").unwrap();
        let registry = PromptRegistry::with_overrides(folder).unwrap();
        assert_eq!(registry.get(AgentType::Summarize).unwrap().template, "Sum up {raw_result}.");

        fs_err::write(folder.join("summarize.md"), "Sum up {raw_results}.").unwrap();
        let error = PromptRegistry::with_overrides(folder).unwrap_err().to_string();
        assert!(error.ends_with("does not have; did you mean `{raw_result}`?"), "{error}");

        fs_err::write(folder.join("summarise.md"), "").unwrap();
        assert!(PromptRegistry::with_overrides(folder).is_err());
    }

    proptest! {
        #[test]
        fn what_is_inserted_is_never_looked_at_again(value: String) {
            let prompt = template("<{M}>", &["M"]);
            let rendered = prompt.render(&Variables::from([("M", value.clone())])).unwrap();
            prop_assert_eq!(rendered, format!("<{value}>"));
        }

        #[test]
        fn an_arbitrary_template_without_blanks_stays_as_it_is(text: String) {
            let rendered = template(&text, &[]).render(&Variables::new()).unwrap();
            prop_assert_eq!(rendered, text);
        }
    }
}
