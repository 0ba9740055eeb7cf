//! How much work to do, and within which limits.
//!
//! [`ConfigLayer`] is what one source of settings says: every field may be absent.
//! [`PipelineConfig`] is what a run uses: no field is absent and every value is valid. Layers are
//! laid over each other with [`ConfigLayer::over`] and settled once by [`ConfigLayer::resolve`].

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;
use mle_star_exec::limits::Size;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentModel, AgentType, ToolProfile, nearest};

/// The settings of a run. The letters are those of the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ConfigLayer")]
pub struct PipelineConfig {
    /// M: models to retrieve.
    pub num_retrieved_models: usize,
    /// T: code blocks to refine on each path.
    pub outer_loop_steps: usize,
    /// K: plans to try on each code block.
    pub inner_loop_steps: usize,
    /// L: refinement paths side by side.
    pub num_parallel_solutions: usize,
    /// R: ensembles to try.
    pub ensemble_rounds: usize,
    /// How long the whole run may take.
    pub time_limit_seconds: u64,
    /// Above how many training samples scripts are told to subsample.
    pub subsample_limit: usize,
    /// How often the debugger may try to mend a script.
    pub max_debug_attempts: usize,
    /// What the agents may cost; no limit if absent.
    pub max_budget_usd: Option<f64>,
    /// The model behind the agents.
    pub model: String,
    /// Other models for single agents.
    pub agent_models: BTreeMap<AgentType, AgentModel>,
    /// The `claude` program; the first on the search path if absent.
    pub claude_path: Option<Utf8PathBuf>,
    /// What the agents may do without being asked.
    pub permission_mode: PermissionMode,
    /// Commands that no agent may run, besides those that none ever may, such as `git push`.
    pub denied_commands: Vec<String>,
    /// How much is logged.
    pub log_level: LogLevel,
    /// A file that the log is appended to as well.
    pub log_file: Option<Utf8PathBuf>,
    /// How the time limit is shared out.
    pub phase_time_budget: PhaseTimeBudget,
    /// How long one script may run; a tenth of the time limit if absent.
    pub script_timeout_seconds: Option<u64>,
    /// How much memory one script may use; its share of the machine if absent.
    pub script_memory_limit: Option<Size>,
    /// How many processes and threads one script may have; 64 for each core if absent, but 1024 at
    /// least.
    pub script_process_limit: Option<u64>,
    /// How much one script may print; 10 GB if absent. Far less is kept.
    pub script_output_limit: Option<Size>,
    /// How much one script may write; its share of half the free disk if absent.
    pub script_workspace_limit: Option<Size>,
    /// The largest file a script may write; as much as all of them if absent.
    pub script_file_limit: Option<Size>,
    /// How many agent calls may be in flight.
    pub max_concurrent_sessions: usize,
    /// Which tools the agents get.
    pub tool_profile: ToolProfile,
    /// What conversations with the agents go on for.
    pub session: SessionScope,
    /// Whether the retriever searches the web.
    pub web_search: WebSearch,
    /// Finalize the best ensemble even where a Phase 2 solution scored better.
    pub strict_paper_selection: bool,
    /// Make a submission of the initial solution before refining it.
    pub early_submission: bool,
    /// A folder of prompts that replace the built-in ones of the same file name.
    pub prompts_dir: Option<Utf8PathBuf>,
    /// Where the random numbers of the playbook's scripts begin.
    pub seed: u64,
}

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

/// What the agents may do without being asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Everything that their tools allow.
    #[default]
    BypassPermissions,
    /// Edits of files; other tools are asked for.
    AcceptEdits,
}

/// What conversations with the agents go on for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionScope {
    /// One call: each agent knows what it is told, and nothing of what others were.
    #[default]
    Call,
    /// All calls of a path: each agent sees what the agents of its path were told and said before.
    Path,
}

/// Whether the retriever searches the web.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebSearch {
    /// If the endpoint of the model can.
    #[default]
    Auto,
    /// No: it answers from what the model knows.
    Off,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the usual names")]
pub enum LogLevel {
    #[serde(alias = "debug")]
    Debug,
    #[default]
    #[serde(alias = "info")]
    Info,
    #[serde(alias = "warning", alias = "WARN", alias = "warn")]
    Warning,
    #[serde(alias = "error")]
    Error,
}

/// The shares of the time limit. They sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "one share per phase")]
pub struct PhaseTimeBudget {
    pub phase1: f64,
    pub phase2: f64,
    pub phase3: f64,
    pub finalization: f64,
}

/// A named set of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A small run of half an hour.
    Fast,
    /// The paper to the letter.
    Paper,
    /// A day, as MLE-bench allows.
    MleBench,
}

/// Why settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no such setting.
    #[error("unknown setting `{key}`{}", suggestion(.nearest.as_deref()))]
    UnknownKey {
        /// What was given.
        key: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// The value does not fit the setting.
    #[error("invalid value for `{key}`: {reason}")]
    Invalid {
        /// The setting.
        key: String,
        /// What is wrong with its value.
        reason: String,
    },
    /// The value of an environment variable does not fit.
    #[error("invalid value in the environment variable `{variable}`: {reason}")]
    Environment {
        /// The variable.
        variable: String,
        /// What is wrong with its value.
        reason: String,
    },
    /// A `key=value` has no `=`.
    #[error("`{0}` is not of the form key=value")]
    NotAPair(String),
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
            if !known.contains(&key) {
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

impl PipelineConfig {
    /// Checks every value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let positive = [
            ("num_retrieved_models", self.num_retrieved_models),
            ("outer_loop_steps", self.outer_loop_steps),
            ("inner_loop_steps", self.inner_loop_steps),
            ("num_parallel_solutions", self.num_parallel_solutions),
            ("ensemble_rounds", self.ensemble_rounds),
            ("subsample_limit", self.subsample_limit),
            ("max_debug_attempts", self.max_debug_attempts),
            ("max_concurrent_sessions", self.max_concurrent_sessions),
        ];
        if let Some((key, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(invalid(key, "must be at least 1"));
        }
        if self.time_limit_seconds == 0 {
            return Err(invalid("time_limit_seconds", "must be at least 1"));
        }
        let limits = [
            ("script_timeout_seconds", self.script_timeout_seconds),
            ("script_memory_limit", self.script_memory_limit.map(|size| size.0)),
            ("script_process_limit", self.script_process_limit),
            ("script_output_limit", self.script_output_limit.map(|size| size.0)),
            ("script_workspace_limit", self.script_workspace_limit.map(|size| size.0)),
            ("script_file_limit", self.script_file_limit.map(|size| size.0)),
        ];
        if let Some((key, _)) = limits.iter().find(|(_, limit)| *limit == Some(0)) {
            return Err(invalid(key, "must be at least 1"));
        }
        if self.max_budget_usd.is_some_and(|budget| !budget.is_finite() || budget <= 0.0) {
            return Err(invalid("max_budget_usd", "must be a finite amount above 0"));
        }
        if self.model.trim().is_empty() {
            return Err(invalid("model", "must not be empty"));
        }
        self.phase_time_budget.validate()
    }

    /// The model behind an agent.
    pub fn model_of(&self, agent: AgentType) -> &str {
        match self.agent_models.get(&agent) {
            Some(AgentModel::Sonnet) => "sonnet",
            Some(AgentModel::Opus) => "opus",
            Some(AgentModel::Haiku) => "haiku",
            Some(AgentModel::Inherit) | None => &self.model,
        }
    }

    /// These settings with the limits of `other`: what a resumed run may change. Fails if `other`
    /// differs in anything else, by the name of the first such setting.
    pub fn with_limits_of(&self, other: &Self) -> Result<Self, ConfigError> {
        let limited = Self {
            time_limit_seconds: other.time_limit_seconds,
            max_budget_usd: other.max_budget_usd,
            script_timeout_seconds: other.script_timeout_seconds,
            script_memory_limit: other.script_memory_limit,
            script_process_limit: other.script_process_limit,
            script_output_limit: other.script_output_limit,
            script_workspace_limit: other.script_workspace_limit,
            script_file_limit: other.script_file_limit,
            phase_time_budget: other.phase_time_budget,
            max_concurrent_sessions: other.max_concurrent_sessions,
            log_level: other.log_level,
            log_file: other.log_file.clone(),
            claude_path: other.claude_path.clone(), // the machine may be another one
            ..self.clone()
        };
        let as_map = |config: &Self| serde_json::to_value(config).unwrap_or_default();
        let (limited_map, other_map) = (as_map(&limited), as_map(other));
        match known_keys().into_iter().find(|key| limited_map.get(key) != other_map.get(key)) {
            Some(key) => Err(ConfigError::Invalid {
                key,
                reason: "only limits can change when a run is resumed".to_owned(),
            }),
            None => Ok(limited),
        }
    }

    /// The settings as a layer, in which every value counts as explicit.
    pub fn into_layer(self) -> ConfigLayer {
        let Self {
            num_retrieved_models,
            outer_loop_steps,
            inner_loop_steps,
            num_parallel_solutions,
            ensemble_rounds,
            time_limit_seconds,
            subsample_limit,
            max_debug_attempts,
            max_budget_usd,
            model,
            agent_models,
            claude_path,
            permission_mode,
            denied_commands,
            log_level,
            log_file,
            phase_time_budget,
            script_timeout_seconds,
            script_memory_limit,
            script_process_limit,
            script_output_limit,
            script_workspace_limit,
            script_file_limit,
            max_concurrent_sessions,
            tool_profile,
            session,
            web_search,
            strict_paper_selection,
            early_submission,
            prompts_dir,
            seed,
        } = self;
        ConfigLayer {
            num_retrieved_models: Some(num_retrieved_models),
            outer_loop_steps: Some(outer_loop_steps),
            inner_loop_steps: Some(inner_loop_steps),
            num_parallel_solutions: Some(num_parallel_solutions),
            ensemble_rounds: Some(ensemble_rounds),
            time_limit_seconds: Some(time_limit_seconds),
            subsample_limit: Some(subsample_limit),
            max_debug_attempts: Some(max_debug_attempts),
            max_budget_usd,
            model: Some(model),
            agent_models: Some(agent_models),
            claude_path,
            permission_mode: Some(permission_mode),
            denied_commands: Some(denied_commands),
            log_level: Some(log_level),
            log_file,
            phase_time_budget: Some(phase_time_budget),
            script_timeout_seconds,
            script_memory_limit,
            script_process_limit,
            script_output_limit,
            script_workspace_limit,
            script_file_limit,
            max_concurrent_sessions: Some(max_concurrent_sessions),
            tool_profile: Some(tool_profile),
            session: Some(session),
            web_search: Some(web_search),
            strict_paper_selection: Some(strict_paper_selection),
            early_submission: Some(early_submission),
            prompts_dir,
            seed: Some(seed),
        }
    }
}

impl Default for PipelineConfig {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the defaults are constants, and tested")]
        ConfigLayer::default().resolve().expect("the defaults are valid")
    }
}

impl TryFrom<ConfigLayer> for PipelineConfig {
    type Error = ConfigError;

    fn try_from(layer: ConfigLayer) -> Result<Self, ConfigError> {
        layer.resolve()
    }
}

impl PhaseTimeBudget {
    fn validate(&self) -> Result<(), ConfigError> {
        let shares = [self.phase1, self.phase2, self.phase3, self.finalization];
        if shares.iter().any(|share| !share.is_finite() || *share <= 0.0) {
            return Err(invalid("phase_time_budget", "every share must be above 0"));
        }
        if (shares.iter().sum::<f64>() - 1.0).abs() > 1e-6 {
            return Err(invalid("phase_time_budget", "the shares must sum to 1"));
        }
        Ok(())
    }
}

impl Default for PhaseTimeBudget {
    fn default() -> Self {
        Self { phase1: 0.10, phase2: 0.65, phase3: 0.15, finalization: 0.10 }
    }
}

impl Preset {
    /// What the preset says.
    pub fn layer(self) -> ConfigLayer {
        match self {
            Self::Fast => ConfigLayer {
                num_retrieved_models: Some(2),
                outer_loop_steps: Some(1),
                inner_loop_steps: Some(2),
                num_parallel_solutions: Some(1),
                ensemble_rounds: Some(1),
                time_limit_seconds: Some(30 * 60),
                ..ConfigLayer::default()
            },
            Self::Paper => ConfigLayer {
                strict_paper_selection: Some(true),
                early_submission: Some(false),
                ..ConfigLayer::default()
            },
            Self::MleBench => {
                ConfigLayer { time_limit_seconds: Some(24 * 60 * 60), ..ConfigLayer::default() }
            }
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        })
    }
}

fn invalid(key: &str, reason: &str) -> ConfigError {
    ConfigError::Invalid { key: key.to_owned(), reason: reason.to_owned() }
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

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Derived from the type itself, so that no second list can fall behind.
fn known_keys() -> Vec<String> {
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

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
