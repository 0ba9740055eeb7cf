//! How much work to do, and within which limits.
//!
//! [`ConfigLayer`] is what one source of settings says: every field may be absent.
//! [`PipelineConfig`] is what a run uses: no field is absent and every value is valid. Layers are
//! laid over each other with [`ConfigLayer::over`] and settled once by [`ConfigLayer::resolve`].

mod layer;

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;
use mle_star_exec::limits::Size;
use serde::{Deserialize, Serialize};

pub use self::layer::ConfigLayer;
use self::layer::{known_keys, suggestion};
use super::{AgentModel, AgentType, ToolProfile};

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

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
