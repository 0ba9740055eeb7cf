//! Every type that crosses the border between two phases, with the names of the specification.
//!
//! All of them are checked when they are built and when they are read, and survive a round trip
//! through JSON. Nothing here performs an effect.

mod agent;
mod config;
mod metric;
mod reply;
mod result;
mod score;
mod solution;
mod task;

pub use agent::{
    AgentConfig, AgentModel, AgentType, ToolProfile, WEB_TOOLS, build_default_agent_configs,
};
pub use config::{
    ConfigError, ConfigLayer, LogLevel, PermissionMode, PhaseTimeBudget, PipelineConfig, Preset,
    SessionScope, WebSearch,
};
pub use metric::known_direction;
pub use reply::{
    ContaminationVerdict, DataContaminationResult, ExtractorOutput, LeakageAnswer,
    LeakageDetectionOutput, LeakageStatus, OutputSchema, RefinePlan, RetrievedModel,
    RetrieverOutput,
};
pub use result::{
    EnsembleAttempt, EvaluationResult, FinalResult, InnerLoopResult, OuterStepRecord, Phase1Result,
    Phase2Result, Phase3Result, PhaseOutcome, PhaseStatus, RefinementAttempt,
};
pub use score::{
    NoScore, Score, best_of, is_improvement, is_improvement_or_equal, parse_score, read_score,
};
pub use solution::{BlockNotFound, CodeBlock, CodeBlockCategory, SolutionPhase, SolutionScript};
pub use task::{DataModality, MetricDirection, Network, TaskDescription, TaskError, TaskType};

/// The name among `known` that is nearest to a misspelt one, if any is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    // In short words, two letters that changed places count for too much with the first measure.
    let likeness = |candidate: &str| match strsim::osa_distance(&name, candidate) {
        // One letter of one or two is no likeness.
        0 | 1 if name.len() > 2 => 1.0,
        _ => strsim::jaro_winkler(&name, candidate),
    };
    known
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}
