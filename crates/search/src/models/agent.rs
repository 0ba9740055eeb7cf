//! The 14 agents and how each is set up.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::OutputSchema;

/// An agent of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the paper")]
pub enum AgentType {
    Retriever,
    Init,
    Merger,
    Ablation,
    Summarize,
    Extractor,
    Coder,
    Planner,
    EnsPlanner,
    Ensembler,
    Debugger,
    Leakage,
    Data,
    Test,
}

/// The tools that lead to the web.
pub const WEB_TOOLS: [&str; 2] = ["WebSearch", "WebFetch"];

/// Which tools the agents get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolProfile {
    /// As few as each needs: agents return code as text and the harness runs it.
    #[default]
    Minimal,
    /// Agents that write code may also edit files and run commands.
    Wide,
}

/// A model that a single agent may be given instead of the run's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the runtime")]
pub enum AgentModel {
    Sonnet,
    Opus,
    Haiku,
    Inherit,
}

/// How one agent is set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// Which agent.
    pub agent_type: AgentType,
    /// What it is for.
    pub description: String,
    /// What replaces its template, if anything.
    pub system_prompt: Option<String>,
    /// The only tools it may use; `None` means no tools at all.
    pub tools: Option<Vec<String>>,
    /// Its model; `None` is the run's.
    pub model: Option<AgentModel>,
    /// The structured reply it gives.
    pub output_schema: Option<OutputSchema>,
    /// How many turns it may take.
    pub max_turns: Option<u32>,
}

impl AgentType {
    /// All of them, in the order in which the specification lists them.
    pub const ALL: [Self; 14] = [
        Self::Retriever,
        Self::Init,
        Self::Merger,
        Self::Ablation,
        Self::Summarize,
        Self::Extractor,
        Self::Coder,
        Self::Planner,
        Self::EnsPlanner,
        Self::Ensembler,
        Self::Debugger,
        Self::Leakage,
        Self::Data,
        Self::Test,
    ];

    /// The name in step keys, prompts and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retriever => "retriever",
            Self::Init => "init",
            Self::Merger => "merger",
            Self::Ablation => "ablation",
            Self::Summarize => "summarize",
            Self::Extractor => "extractor",
            Self::Coder => "coder",
            Self::Planner => "planner",
            Self::EnsPlanner => "ens_planner",
            Self::Ensembler => "ensembler",
            Self::Debugger => "debugger",
            Self::Leakage => "leakage",
            Self::Data => "data",
            Self::Test => "test",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Retriever => {
                "Agent that searches the web for effective ML models relevant to the competition \
                 task"
            }
            Self::Init => {
                "Agent that generates an initial solution script using a specified ML model"
            }
            Self::Merger => {
                "Agent that integrates a reference solution into a base solution via ensemble"
            }
            Self::Ablation => {
                "Agent that generates ablation study code to identify impactful solution components"
            }
            Self::Summarize => {
                "Agent that summarizes raw ablation study output into a concise textual summary"
            }
            Self::Extractor => {
                "Agent that identifies the most impactful code block and proposes a refinement plan"
            }
            Self::Coder => "Agent that implements a refinement plan on a target code block",
            Self::Planner => {
                "Agent that proposes the next refinement strategy using feedback from previous \
                 attempts"
            }
            Self::EnsPlanner => {
                "Agent that proposes ensemble strategies for combining L solution scripts"
            }
            Self::Ensembler => {
                "Agent that implements an ensemble plan on L solution scripts into a single Python \
                 program"
            }
            Self::Debugger => "Agent that fixes Python execution errors in solution scripts",
            Self::Leakage => "Agent that detects data leakage in solution preprocessing code",
            Self::Data => "Agent that verifies all provided data sources are used in the solution",
            Self::Test => {
                "Agent that transforms a validation solution into a test submission script"
            }
        }
    }

    fn minimal_tools(self) -> &'static [&'static str] {
        match self {
            Self::Retriever => &WEB_TOOLS,
            Self::Debugger => &["Read", "Bash"],
            Self::Init
            | Self::Merger
            | Self::Ablation
            | Self::Extractor
            | Self::Ensembler
            | Self::Leakage
            | Self::Data
            | Self::Test => &["Read"],
            Self::Summarize | Self::Coder | Self::Planner | Self::EnsPlanner => &[],
        }
    }

    fn wide_tools(self) -> &'static [&'static str] {
        match self {
            Self::Retriever => &WEB_TOOLS,
            Self::Init
            | Self::Merger
            | Self::Ablation
            | Self::Coder
            | Self::Ensembler
            | Self::Debugger
            | Self::Test => &["Bash", "Edit", "Write", "Read"],
            Self::Summarize
            | Self::Extractor
            | Self::Planner
            | Self::EnsPlanner
            | Self::Leakage
            | Self::Data => &["Read"],
        }
    }

    /// The tools of this agent under `profile`.
    pub fn tools(self, profile: ToolProfile) -> &'static [&'static str] {
        match profile {
            ToolProfile::Minimal => self.minimal_tools(),
            ToolProfile::Wide => self.wide_tools(),
        }
    }

    fn schema(self) -> Option<OutputSchema> {
        match self {
            Self::Retriever => Some(OutputSchema::RetrieverOutput),
            Self::Extractor => Some(OutputSchema::ExtractorOutput),
            Self::Leakage => Some(OutputSchema::LeakageDetectionOutput),
            Self::Init
            | Self::Merger
            | Self::Ablation
            | Self::Summarize
            | Self::Coder
            | Self::Planner
            | Self::EnsPlanner
            | Self::Ensembler
            | Self::Debugger
            | Self::Data
            | Self::Test => None,
        }
    }
}

impl fmt::Display for AgentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl AgentConfig {
    /// The default set-up of `agent`.
    pub fn for_agent(agent: AgentType) -> Self {
        Self::with_profile(agent, ToolProfile::Minimal)
    }

    /// The set-up of `agent` under a tool profile.
    pub fn with_profile(agent: AgentType, profile: ToolProfile) -> Self {
        let tools = agent.tools(profile);
        Self {
            agent_type: agent,
            description: agent.description().to_owned(),
            system_prompt: None,
            tools: (!tools.is_empty()).then(|| tools.iter().map(ToString::to_string).collect()),
            model: None,
            output_schema: agent.schema(),
            max_turns: None,
        }
    }

    /// The set-up of the agent that plays a variant of its role; `None` is its default.
    pub fn for_variant(agent: AgentType, variant: Option<&str>, profile: ToolProfile) -> Self {
        let default = Self::with_profile(agent, profile);
        match (agent, variant) {
            (AgentType::Leakage, Some("correction")) => Self {
                description: "Agent that corrects data leakage in solution preprocessing code"
                    .to_owned(),
                output_schema: None,
                ..default
            },
            (AgentType::Test, Some("contamination")) => Self {
                description: "Agent that checks whether a solution is copied from a Kaggle \
                              discussion"
                    .to_owned(),
                tools: None,
                output_schema: Some(OutputSchema::DataContaminationResult),
                ..default
            },
            _ => default,
        }
    }

    /// The agent as the runtime registers it. `template` is its prompt, unrendered.
    pub fn to_agent_definition(&self, template: &str) -> Value {
        json!({
            "description": self.description,
            "prompt": self.system_prompt.as_deref().unwrap_or(template),
            "tools": self.tools,
            "model": self.model,
        })
    }

    /// The structured reply in the envelope that the runtime wants.
    pub fn to_output_format(&self) -> Option<Value> {
        self.output_schema.map(OutputSchema::output_format)
    }
}

/// The default set-up of all 14 agents.
pub fn build_default_agent_configs() -> BTreeMap<AgentType, AgentConfig> {
    AgentType::ALL.into_iter().map(|agent| (agent, AgentConfig::for_agent(agent))).collect()
}
