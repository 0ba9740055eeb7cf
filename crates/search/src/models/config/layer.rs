//! What one source of settings says, and how several of them become the settings of a run.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use mle_star_exec::limits::Size;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ConfigError, LogLevel, PermissionMode, PhaseTimeBudget, PipelineConfig, SessionScope, WebSearch,
};
use crate::models::{AgentModel, AgentType, ToolProfile, nearest};

/// What one source says about the settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of PipelineConfig")]
pub struct ConfigLayer {
    #[serde(alias = "M")]
    pub num_retrieved_models: Option<usize>,
    #[serde(alias = "T")]
    pub outer_loop_steps: Option<usize>,
    #[serde(alias = "K")]
    pub inner_loop_steps: Option<usize>,
    #[serde(alias = "L")]
    pub num_parallel_solutions: Option<usize>,
    #[serde(alias = "R")]
    pub ensemble_rounds: Option<usize>,
    pub time_limit_seconds: Option<u64>,
    pub subsample_limit: Option<usize>,
    pub max_debug_attempts: Option<usize>,
    pub max_budget_usd: Option<f64>,
    pub model: Option<String>,
    pub agent_models: Option<BTreeMap<AgentType, AgentModel>>,
    pub claude_path: Option<Utf8PathBuf>,
    pub permission_mode: Option<PermissionMode>,
    pub denied_commands: Option<Vec<String>>,
    pub log_level: Option<LogLevel>,
    pub log_file: Option<Utf8PathBuf>,
    pub phase_time_budget: Option<PhaseTimeBudget>,
    pub script_timeout_seconds: Option<u64>,
    pub script_memory_limit: Option<Size>,
    pub script_process_limit: Option<u64>,
    pub script_output_limit: Option<Size>,
    pub script_workspace_limit: Option<Size>,
    pub script_file_limit: Option<Size>,
    pub max_concurrent_sessions: Option<usize>,
    pub tool_profile: Option<ToolProfile>,
    pub session: Option<SessionScope>,
    pub web_search: Option<WebSearch>,
    pub strict_paper_selection: Option<bool>,
    pub early_submission: Option<bool>,
    pub prompts_dir: Option<Utf8PathBuf>,
    pub seed: Option<u64>,
}
impl ConfigLayer {
    /// This layer where it speaks, `lower` where it is silent.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        // No `..` here: a new setting must be named to compile.
        Self {
            num_retrieved_models: self.num_retrieved_models.or(lower.num_retrieved_models),
            outer_loop_steps: self.outer_loop_steps.or(lower.outer_loop_steps),
            inner_loop_steps: self.inner_loop_steps.or(lower.inner_loop_steps),
            num_parallel_solutions: self.num_parallel_solutions.or(lower.num_parallel_solutions),
            ensemble_rounds: self.ensemble_rounds.or(lower.ensemble_rounds),
            time_limit_seconds: self.time_limit_seconds.or(lower.time_limit_seconds),
            subsample_limit: self.subsample_limit.or(lower.subsample_limit),
            max_debug_attempts: self.max_debug_attempts.or(lower.max_debug_attempts),
            max_budget_usd: self.max_budget_usd.or(lower.max_budget_usd),
            model: self.model.or(lower.model),
            agent_models: self.agent_models.or(lower.agent_models),
            claude_path: self.claude_path.or(lower.claude_path),
            permission_mode: self.permission_mode.or(lower.permission_mode),
            denied_commands: self.denied_commands.or(lower.denied_commands),
            log_level: self.log_level.or(lower.log_level),
            log_file: self.log_file.or(lower.log_file),
            phase_time_budget: self.phase_time_budget.or(lower.phase_time_budget),
            script_timeout_seconds: self.script_timeout_seconds.or(lower.script_timeout_seconds),
            script_memory_limit: self.script_memory_limit.or(lower.script_memory_limit),
            script_process_limit: self.script_process_limit.or(lower.script_process_limit),
            script_output_limit: self.script_output_limit.or(lower.script_output_limit),
            script_workspace_limit: self.script_workspace_limit.or(lower.script_workspace_limit),
            script_file_limit: self.script_file_limit.or(lower.script_file_limit),
            max_concurrent_sessions: self.max_concurrent_sessions.or(lower.max_concurrent_sessions),
            tool_profile: self.tool_profile.or(lower.tool_profile),
            session: self.session.or(lower.session),
            web_search: self.web_search.or(lower.web_search),
            strict_paper_selection: self.strict_paper_selection.or(lower.strict_paper_selection),
            early_submission: self.early_submission.or(lower.early_submission),
            prompts_dir: self.prompts_dir.or(lower.prompts_dir),
            seed: self.seed.or(lower.seed),
        }
    }

    /// Settles every value, with the paper's where nobody spoke, and checks them.
    pub fn resolve(self) -> Result<PipelineConfig, ConfigError> {
        let num_parallel_solutions = self.num_parallel_solutions.unwrap_or(2);
        let config = PipelineConfig {
            num_retrieved_models: self.num_retrieved_models.unwrap_or(4),
            outer_loop_steps: self.outer_loop_steps.unwrap_or(4),
            inner_loop_steps: self.inner_loop_steps.unwrap_or(4),
            num_parallel_solutions,
            ensemble_rounds: self.ensemble_rounds.unwrap_or(5),
            time_limit_seconds: self.time_limit_seconds.unwrap_or(86_400),
            subsample_limit: self.subsample_limit.unwrap_or(30_000),
            max_debug_attempts: self.max_debug_attempts.unwrap_or(3),
            max_budget_usd: self.max_budget_usd,
            model: self.model.unwrap_or_else(|| "sonnet".to_owned()),
            agent_models: self.agent_models.unwrap_or_default(),
            claude_path: self.claude_path,
            permission_mode: self.permission_mode.unwrap_or_default(),
            denied_commands: self.denied_commands.unwrap_or_default(),
            log_level: self.log_level.unwrap_or_default(),
            log_file: self.log_file,
            phase_time_budget: self.phase_time_budget.unwrap_or_default(),
            script_timeout_seconds: self.script_timeout_seconds,
            script_memory_limit: self.script_memory_limit,
            script_process_limit: self.script_process_limit,
            script_output_limit: self.script_output_limit,
            script_workspace_limit: self.script_workspace_limit,
            script_file_limit: self.script_file_limit,
            max_concurrent_sessions: self
                .max_concurrent_sessions
                .unwrap_or(num_parallel_solutions.max(4)),
            tool_profile: self.tool_profile.unwrap_or_default(),
            session: self.session.unwrap_or_default(),
            web_search: self.web_search.unwrap_or_default(),
            strict_paper_selection: self.strict_paper_selection.unwrap_or(false),
            early_submission: self.early_submission.unwrap_or(true),
            prompts_dir: self.prompts_dir,
            seed: self.seed.unwrap_or(0),
        };
        config.validate()?;
        Ok(config)
    }

    /// What a map of settings says, such as a file or a JSON object.
    pub fn from_map(map: Map<String, Value>) -> Result<Self, ConfigError> {
        let known = known_keys();
        for key in map.keys() {
            if !known.iter().any(|it| it == key) && long_name(key).is_none() {
                let nearest = nearest(key, known.iter().map(String::as_str)).map(str::to_owned);
                return Err(ConfigError::UnknownKey { key: key.clone(), nearest });
            }
        }
        let mut layer = Self::default();
        for (key, value) in map {
            // One at a time, so that an error can name the setting.
            let single = Value::Object(Map::from_iter([(key.clone(), value)]));
            let said: Self = serde_json::from_value(single).map_err(|error| {
                ConfigError::Invalid { key: key.clone(), reason: in_plain_words(&error) }
            })?;
            layer = said.over(layer);
        }
        Ok(layer)
    }

    /// What `key=value` pairs say. A later pair wins over an earlier one.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Self, ConfigError> {
        pairs.into_iter().try_fold(Self::default(), |lower, pair| {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| ConfigError::NotAPair(pair.to_owned()))?;
            Ok(Self::from_text(key.trim(), value.trim())?.over(lower))
        })
    }

    /// What the environment says: `MLE_STAR_` and the name of a setting in capitals, or one of
    /// the short names `MLE_STAR_MAX_BUDGET` and `MLE_STAR_TIME_LIMIT`. Others are not ours.
    pub fn from_environment(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let known = known_keys();
        let mut layer = Self::default();
        for (variable, value) in variables {
            let Some(name) = variable.strip_prefix("MLE_STAR_") else { continue };
            let key = match name {
                "MAX_BUDGET" => "max_budget_usd".to_owned(),
                "TIME_LIMIT" => "time_limit_seconds".to_owned(),
                name => name.to_lowercase(),
            };
            // One that is set to nothing is one that is not set.
            if !known.contains(&key) || value.trim().is_empty() {
                continue;
            }
            let said = Self::from_text(&key, value.trim())
                .and_then(|layer| layer.clone().resolve().map(|_| layer))
                .map_err(|error| match error {
                    ConfigError::Invalid { reason, .. } => {
                        ConfigError::Environment { variable, reason }
                    }
                    ConfigError::UnknownKey { .. }
                    | ConfigError::Environment { .. }
                    | ConfigError::NotAPair(_) => error,
                })?;
            layer = said.over(layer);
        }
        Ok(layer)
    }

    fn from_text(key: &str, text: &str) -> Result<Self, ConfigError> {
        let plain = || Value::String(text.to_owned());
        let value = serde_json::from_str::<Value>(text).unwrap_or_else(|_| plain());
        let said = Self::from_map(Map::from_iter([(key.to_owned(), value)]));
        // A setting that is a text may look like a number: `model=4`.
        said.or_else(|error| {
            Self::from_map(Map::from_iter([(key.to_owned(), plain())])).map_err(|_| error)
        })
    }
}

/// What is wrong with a value, for people who do not write Rust.
fn in_plain_words(error: &serde_json::Error) -> String {
    let words = error.to_string();
    words
        .replace("expected usize", "expected a whole number")
        .replace("expected u64", "expected a whole number")
        .replace("expected f64", "expected a number")
        .replace("expected a boolean", "expected true or false")
}

pub(super) fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Derived from the type itself, so that no second list can fall behind.
pub(super) fn known_keys() -> Vec<String> {
    match serde_json::to_value(ConfigLayer::default()) {
        Ok(Value::Object(map)) => map.into_iter().map(|(key, _)| key).collect(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

fn long_name(letter: &str) -> Option<&'static str> {
    match letter {
        "M" => Some("num_retrieved_models"),
        "T" => Some("outer_loop_steps"),
        "K" => Some("inner_loop_steps"),
        "L" => Some("num_parallel_solutions"),
        "R" => Some("ensemble_rounds"),
        _ => None,
    }
}
