//! How the 14 agents are defined (the per-agent requirements of all specifications).

use std::collections::{BTreeMap, BTreeSet};

use mle_star_agent::Call;
use mle_star_search::models::{
    AgentConfig, AgentModel, AgentType, OutputSchema, ToolProfile, build_default_agent_configs,
};
use mle_star_search::prompt::PromptRegistry;
use serde_json::{Value, json};

use crate::world::{World, block, broken, fenced, script};

const READ: &[&str] = &["Read"];
const SEARCH: &[&str] = &["WebSearch", "WebFetch"];
const MEND: &[&str] = &["Read", "Bash"];
const WRITE: &[&str] = &["Bash", "Edit", "Write", "Read"];
const NONE: &[&str] = &[];

/// Checks everything that a property table says about an agent.
#[track_caller]
fn assert_defined(
    agent: AgentType,
    description: &str,
    figure: &str,
    tools: &[&str],
    schema: Option<OutputSchema>,
) {
    let tools = (!tools.is_empty()).then(|| tools.iter().map(ToString::to_string).collect());
    let expected = AgentConfig {
        agent_type: agent,
        description: description.to_owned(),
        system_prompt: None,
        tools,
        model: None,
        output_schema: schema,
        max_turns: None,
    };
    assert_eq!(AgentConfig::for_agent(agent), expected);

    let registry = PromptRegistry::builtin();
    let prompt = registry.get(agent).unwrap();
    assert_eq!(prompt.figure_ref, figure);
    let definition = json!({
        "description": description,
        "prompt": prompt.template,
        "tools": expected.tools,
        "model": null,
    });
    assert_eq!(expected.to_agent_definition(&prompt.template), definition);
    assert_eq!(expected.to_output_format(), schema.map(OutputSchema::output_format));
}

/// REQ-P1-001, REQ-P1-008, REQ-P1-013
#[test]
fn the_agents_of_phase_1_are_defined_as_specified() {
    assert_defined(
        AgentType::Retriever,
        "Agent that searches the web for effective ML models relevant to the competition task",
        "Figure 9",
        SEARCH,
        Some(OutputSchema::RetrieverOutput),
    );
    assert_defined(
        AgentType::Init,
        "Agent that generates an initial solution script using a specified ML model",
        "Figure 10",
        READ,
        None,
    );
    assert_defined(
        AgentType::Merger,
        "Agent that integrates a reference solution into a base solution via ensemble",
        "Figure 11",
        READ,
        None,
    );
}

/// REQ-P2O-001, REQ-P2O-008, REQ-P2O-012
#[test]
fn the_agents_of_the_outer_loop_are_defined_as_specified() {
    assert_defined(
        AgentType::Ablation,
        "Agent that generates ablation study code to identify impactful solution components",
        "Figure 12",
        READ,
        None,
    );
    assert_defined(
        AgentType::Summarize,
        "Agent that summarizes raw ablation study output into a concise textual summary",
        "Figure 13",
        NONE,
        None,
    );
    assert_defined(
        AgentType::Extractor,
        "Agent that identifies the most impactful code block and proposes a refinement plan",
        "Figure 14",
        READ,
        Some(OutputSchema::ExtractorOutput),
    );
}

/// REQ-P2I-001, REQ-P2I-008
#[test]
fn the_agents_of_the_inner_loop_are_defined_as_specified() {
    assert_defined(
        AgentType::Coder,
        "Agent that implements a refinement plan on a target code block",
        "Figure 15",
        NONE,
        None,
    );
    assert_defined(
        AgentType::Planner,
        "Agent that proposes the next refinement strategy using feedback from previous attempts",
        "Figure 16",
        NONE,
        None,
    );
}

/// REQ-P3-001, REQ-P3-010
#[test]
fn the_agents_of_phase_3_are_defined_as_specified() {
    assert_defined(
        AgentType::EnsPlanner,
        "Agent that proposes ensemble strategies for combining L solution scripts",
        "Figure 17",
        NONE,
        None,
    );
    assert_defined(
        AgentType::Ensembler,
        "Agent that implements an ensemble plan on L solution scripts into a single Python program",
        "Figure 18",
        READ,
        None,
    );
}

/// REQ-SF-001, REQ-SF-011, REQ-SF-024, REQ-SF-032
#[test]
fn the_agents_of_safety_are_defined_as_specified() {
    assert_defined(
        AgentType::Debugger,
        "Agent that fixes Python execution errors in solution scripts",
        "Figure 19",
        MEND,
        None,
    );
    assert_defined(
        AgentType::Leakage,
        "Agent that detects data leakage in solution preprocessing code",
        "Figure 20",
        READ,
        Some(OutputSchema::LeakageDetectionOutput),
    );
    assert_defined(
        AgentType::Data,
        "Agent that verifies all provided data sources are used in the solution",
        "Figure 22",
        READ,
        None,
    );
}

/// REQ-FN-010, REQ-FN-048
#[test]
fn the_agent_of_finalization_is_defined_as_specified() {
    assert_defined(
        AgentType::Test,
        "Agent that transforms a validation solution into a test submission script",
        "Figure 25",
        READ,
        None,
    );
}

/// REQ-DM-013, REQ-OR-057
#[test]
fn there_are_fourteen_agents_each_with_a_name_of_its_own() {
    let names = AgentType::ALL.map(AgentType::name);
    let expected = [
        "retriever",
        "init",
        "merger",
        "ablation",
        "summarize",
        "extractor",
        "coder",
        "planner",
        "ens_planner",
        "ensembler",
        "debugger",
        "leakage",
        "data",
        "test",
    ];
    assert_eq!(names, expected);
    assert_eq!(BTreeSet::from(names).len(), 14);
    for agent in AgentType::ALL {
        assert_eq!(agent.to_string(), agent.name());
        assert_eq!(serde_json::to_value(agent).unwrap(), json!(agent.name()));
        assert_eq!(serde_json::from_value::<AgentType>(json!(agent.name())).unwrap(), agent);
    }
    assert!(serde_json::from_value::<AgentType>(json!("manager")).is_err());
}

/// REQ-DM-037, REQ-DM-040, REQ-OR-006, REQ-OR-057
#[test]
fn the_default_configs_give_the_map_of_fourteen_definitions() {
    let configs = build_default_agent_configs();
    let each = AgentType::ALL.map(|agent| (agent, AgentConfig::for_agent(agent)));
    assert_eq!(configs, BTreeMap::from(each));

    let registry = PromptRegistry::builtin();
    let definitions: BTreeMap<&str, Value> = configs
        .iter()
        .map(|(agent, config)| {
            let template = &registry.get(*agent).unwrap().template;
            (agent.name(), config.to_agent_definition(template))
        })
        .collect();
    assert_eq!(
        definitions.keys().copied().collect::<BTreeSet<_>>(),
        BTreeSet::from(AgentType::ALL.map(AgentType::name))
    );
    for (name, definition) in &definitions {
        let keys: Vec<_> = definition.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            BTreeSet::from_iter(keys),
            BTreeSet::from(["description", "model", "prompt", "tools"])
        );
        assert_eq!(definition["model"], Value::Null, "{name}");
        let text = |key: &str| definition[key].as_str().unwrap_or_default().trim().len();
        assert!(text("prompt") > 0 && text("description") > 0, "{name}");
    }
}

/// REQ-DM-040, REQ-OR-006
#[test]
fn only_retriever_extractor_and_leakage_reply_in_a_schema() {
    let with_schema: Vec<_> = build_default_agent_configs()
        .into_values()
        .filter_map(|config| Some((config.agent_type, config.output_schema?)))
        .collect();
    let expected = [
        (AgentType::Retriever, OutputSchema::RetrieverOutput),
        (AgentType::Extractor, OutputSchema::ExtractorOutput),
        (AgentType::Leakage, OutputSchema::LeakageDetectionOutput),
    ];
    assert_eq!(with_schema, expected);
}

/// REQ-DM-038
#[test]
fn an_output_format_is_the_schema_in_its_envelope() {
    for (agent, config) in build_default_agent_configs() {
        let expected = config
            .output_schema
            .map(|schema| json!({"type": "json_schema", "schema": schema.json_schema()}));
        assert_eq!(config.to_output_format(), expected, "{agent}");
    }
    let leakage = AgentConfig::for_agent(AgentType::Leakage).to_output_format().unwrap();
    assert_eq!(leakage["schema"]["required"], json!(["answers"]));
    let verdict = OutputSchema::DataContaminationResult.output_format();
    assert_eq!(verdict["schema"]["required"], json!(["verdict"]));
}

/// REQ-DM-033
#[test]
fn the_registry_holds_a_prompt_for_every_agent_and_figure() {
    let registry = PromptRegistry::builtin();
    let figures: Vec<_> = registry
        .templates()
        .iter()
        .map(|it| (it.agent_type.name(), it.variant, it.figure_ref))
        .collect();
    let expected = [
        ("retriever", None, "Figure 9"),
        ("init", None, "Figure 10"),
        ("merger", None, "Figure 11"),
        ("ablation", None, "Figure 12"),
        ("summarize", None, "Figure 13"),
        ("extractor", None, "Figure 14"),
        ("coder", None, "Figure 15"),
        ("planner", None, "Figure 16"),
        ("ens_planner", None, "Figure 17"),
        ("ensembler", None, "Figure 18"),
        ("debugger", None, "Figure 19"),
        ("leakage", Some("detection"), "Figure 20"),
        ("leakage", Some("correction"), "Figure 21"),
        ("data", None, "Figure 22"),
        ("test", None, "Figure 25"),
        ("test", Some("subsampling_extract"), "Figure 26"),
        ("test", Some("subsampling_remove"), "Figure 27"),
        ("test", Some("contamination"), "Figure 28"),
    ];
    assert_eq!(figures, expected);
    assert_eq!((registry.len(), registry.template_count()), (14, 18));
}

/// REQ-DM-036, REQ-DM-037
#[test]
fn a_config_of_ones_own_takes_the_place_of_every_default() {
    let config = AgentConfig {
        agent_type: AgentType::Coder,
        description: "Agent of my own".to_owned(),
        system_prompt: Some("Be brief.".to_owned()),
        tools: Some(vec!["Bash".to_owned()]),
        model: Some(AgentModel::Opus),
        output_schema: Some(OutputSchema::ExtractorOutput),
        max_turns: Some(3),
    };
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!(serde_json::from_value::<AgentConfig>(written.clone()).unwrap(), config);
    assert_eq!(
        config.to_agent_definition("unused"),
        json!({
            "description": "Agent of my own",
            "prompt": "Be brief.",
            "tools": ["Bash"],
            "model": "opus",
        })
    );

    for model in ["sonnet", "opus", "haiku", "inherit"] {
        let mut other = written.clone();
        other["model"] = json!(model);
        let read: AgentConfig = serde_json::from_value(other).unwrap();
        assert_eq!(read.to_agent_definition("")["model"], json!(model));
    }
    for (key, value) in
        [("model", json!("gpt")), ("temperature", json!(1)), ("description", json!(null))]
    {
        let mut wrong = written.clone();
        wrong[key] = value;
        assert!(serde_json::from_value::<AgentConfig>(wrong).is_err(), "{key}");
    }
}

/// REQ-OR-008
#[test]
fn the_wide_profile_is_the_table_of_the_orchestrator() {
    let table = [
        (AgentType::Retriever, SEARCH),
        (AgentType::Init, WRITE),
        (AgentType::Merger, WRITE),
        (AgentType::Ablation, WRITE),
        (AgentType::Summarize, READ),
        (AgentType::Extractor, READ),
        (AgentType::Planner, READ),
        (AgentType::Coder, WRITE),
        (AgentType::EnsPlanner, READ),
        (AgentType::Ensembler, WRITE),
        (AgentType::Debugger, WRITE),
        (AgentType::Leakage, READ),
        (AgentType::Data, READ),
        (AgentType::Test, WRITE),
    ];
    let profile = AgentType::ALL.map(|agent| (agent, agent.tools(ToolProfile::Wide)));
    assert_eq!(BTreeMap::from(profile), BTreeMap::from(table));
    for (agent, tools) in table {
        let tools = tools.iter().map(ToString::to_string).collect();
        let wide = AgentConfig { tools: Some(tools), ..AgentConfig::for_agent(agent) };
        assert_eq!(AgentConfig::with_profile(agent, ToolProfile::Wide), wide);
    }
}

/// REQ-OR-008, REQ-SF-032, REQ-FN-048
#[test]
fn the_minimal_profile_is_the_default_and_follows_the_phases() {
    let table = [
        (AgentType::Retriever, SEARCH),
        (AgentType::Init, READ),
        (AgentType::Merger, READ),
        (AgentType::Ablation, READ),
        (AgentType::Summarize, NONE),
        (AgentType::Extractor, READ),
        (AgentType::Planner, NONE),
        (AgentType::Coder, NONE),
        (AgentType::EnsPlanner, NONE),
        (AgentType::Ensembler, READ),
        (AgentType::Debugger, MEND),
        (AgentType::Leakage, READ),
        (AgentType::Data, READ),
        (AgentType::Test, READ),
    ];
    assert_eq!(ToolProfile::default(), ToolProfile::Minimal);
    assert_eq!(World::new("").config.tool_profile, ToolProfile::Minimal);
    let profile = AgentType::ALL.map(|agent| (agent, agent.tools(ToolProfile::default())));
    assert_eq!(BTreeMap::from(profile), BTreeMap::from(table));
}

// What the calls of a run really carry.

type Variant = (String, Option<String>);

/// A run in which each of the 18 prompts is used: scripts fail, leak and subsample.
async fn every_call(settings: &str) -> Vec<Call> {
    let mut world = World::new(&format!("M=2 T=1 K=2 L=2 R=1 {settings}"))
        .on("init", |_| fenced(&broken()))
        .on_call(|call| {
            let code = || call.input["code"].as_str().unwrap_or_default().to_owned();
            let reply = match (call.role.as_str(), call.variant.as_deref()) {
                ("leakage", Some("detection")) if code().contains(&block(0.55)) => {
                    let leak = json!({
                        "leakage_status": "Yes Data Leakage",
                        "code_block": block(0.55),
                    });
                    json!({ "answers": [leak] }).to_string()
                }
                ("leakage", Some("correction")) => fenced(&block(0.52)),
                ("test", Some("subsampling_extract")) => fenced("import math"),
                ("test", Some("subsampling_remove")) => fenced("import math  # all of it"),
                ("ensembler", _) => fenced(&script(0.9)),
                _ => return None,
            };
            Some(Ok(mle_star_agent::Reply::text(reply)))
        });
    world.references = vec!["My winning solution".to_owned()];
    world.run().await.unwrap();
    world.calls()
}

/// What `means` finds in the calls of each prompt, which must be the same in all of them.
fn by_prompt<T: PartialEq + std::fmt::Debug>(
    calls: &[Call],
    means: impl Fn(&Call) -> T,
) -> BTreeMap<Variant, T> {
    let mut found = BTreeMap::new();
    for call in calls {
        let key = (call.role.clone(), call.variant.clone());
        let earlier = found.entry(key).or_insert_with(|| means(call));
        assert_eq!(*earlier, means(call), "{}", call.step);
    }
    found
}

fn table<T: Clone>(rows: [(&str, Option<&str>, T); 18]) -> BTreeMap<Variant, T> {
    let rows = rows.into_iter();
    rows.map(|(role, variant, it)| ((role.to_owned(), variant.map(str::to_owned)), it)).collect()
}

/// REQ-OR-008, REQ-SF-001, REQ-SF-011, REQ-SF-016, REQ-SF-024, REQ-SF-032, REQ-FN-010, REQ-FN-026, REQ-FN-048, REQ-P3-001, REQ-P3-009, REQ-P3-010, REQ-P3-016
#[tokio::test]
async fn a_run_gives_every_call_the_tools_of_its_profile_and_no_others() {
    let tools = |calls: &[Call]| by_prompt(calls, |call| call.tools.clone());
    let rows = |rows: [(&str, Option<&str>, &[&str]); 18]| {
        table(rows.map(|(role, variant, tools)| {
            (role, variant, tools.iter().map(ToString::to_string).collect::<Vec<_>>())
        }))
    };
    let minimal = rows([
        ("retriever", None, SEARCH),
        ("init", None, READ),
        ("merger", None, READ),
        ("ablation", None, READ),
        ("summarize", None, NONE),
        ("extractor", None, READ),
        ("planner", None, NONE),
        ("coder", None, NONE),
        ("ens_planner", None, NONE),
        ("ensembler", None, READ),
        ("debugger", None, MEND),
        ("leakage", Some("detection"), READ),
        ("leakage", Some("correction"), READ),
        ("data", None, READ),
        ("test", None, READ),
        ("test", Some("subsampling_extract"), READ),
        ("test", Some("subsampling_remove"), READ),
        ("test", Some("contamination"), NONE),
    ]);
    assert_eq!(tools(&every_call("").await), minimal);

    let wide = rows([
        ("retriever", None, SEARCH),
        ("init", None, WRITE),
        ("merger", None, WRITE),
        ("ablation", None, WRITE),
        ("summarize", None, READ),
        ("extractor", None, READ),
        ("planner", None, READ),
        ("coder", None, WRITE),
        ("ens_planner", None, READ),
        ("ensembler", None, WRITE),
        ("debugger", None, WRITE),
        ("leakage", Some("detection"), READ),
        ("leakage", Some("correction"), READ),
        ("data", None, READ),
        ("test", None, WRITE),
        ("test", Some("subsampling_extract"), WRITE),
        ("test", Some("subsampling_remove"), WRITE),
        ("test", Some("contamination"), NONE),
    ]);
    assert_eq!(tools(&every_call("tool_profile=wide").await), wide);
}

/// REQ-OR-006, REQ-DM-038, REQ-P1-001, REQ-P2O-012, REQ-SF-011, REQ-SF-016, REQ-SF-024, REQ-SF-032, REQ-FN-026, REQ-FN-048
#[tokio::test]
async fn a_run_asks_for_a_schema_only_where_the_reply_has_one() {
    let schemas = by_prompt(&every_call("").await, |call| call.schema.clone());
    let expected = table([
        ("retriever", None, Some(OutputSchema::RetrieverOutput)),
        ("init", None, None),
        ("merger", None, None),
        ("ablation", None, None),
        ("summarize", None, None),
        ("extractor", None, Some(OutputSchema::ExtractorOutput)),
        ("planner", None, None),
        ("coder", None, None),
        ("ens_planner", None, None),
        ("ensembler", None, None),
        ("debugger", None, None),
        ("leakage", Some("detection"), Some(OutputSchema::LeakageDetectionOutput)),
        ("leakage", Some("correction"), None),
        ("data", None, None),
        ("test", None, None),
        ("test", Some("subsampling_extract"), None),
        ("test", Some("subsampling_remove"), None),
        ("test", Some("contamination"), Some(OutputSchema::DataContaminationResult)),
    ]);
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|(prompt, schema)| (prompt, schema.map(OutputSchema::json_schema)))
        .collect();
    assert_eq!(schemas, expected);
}

/// REQ-DM-036, REQ-DM-040
#[tokio::test]
async fn an_agent_without_a_model_of_its_own_uses_that_of_the_run() {
    for (settings, model) in [("", "sonnet"), ("model=my-model", "my-model")] {
        let given =
            by_prompt(&every_call(settings).await, |call| (call.model.clone(), call.max_turns));
        let models: BTreeSet<_> = given.into_values().collect();
        assert_eq!(models, BTreeSet::from([(model.to_owned(), None)]));
    }
}
