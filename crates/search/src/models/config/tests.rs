use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Result<ConfigLayer, ConfigError> {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ConfigLayer::from_environment(pairs)
}

/// REQ-DM-001, REQ-OR-044, REQ-OR-028
#[test]
fn the_defaults_are_those_of_the_paper() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&PipelineConfig::default()).unwrap(), @r#"
    {
      "num_retrieved_models": 4,
      "outer_loop_steps": 4,
      "inner_loop_steps": 4,
      "num_parallel_solutions": 2,
      "ensemble_rounds": 5,
      "time_limit_seconds": 86400,
      "subsample_limit": 30000,
      "max_debug_attempts": 3,
      "max_budget_usd": null,
      "model": "sonnet",
      "agent_models": {},
      "claude_path": null,
      "permission_mode": "bypassPermissions",
      "denied_commands": [],
      "log_level": "INFO",
      "log_file": null,
      "phase_time_budget": {
        "phase1": 0.1,
        "phase2": 0.65,
        "phase3": 0.15,
        "finalization": 0.1
      },
      "script_timeout_seconds": null,
      "script_memory_limit": null,
      "script_process_limit": null,
      "script_output_limit": null,
      "script_workspace_limit": null,
      "script_file_limit": null,
      "max_concurrent_sessions": 4,
      "tool_profile": "minimal",
      "session": "call",
      "web_search": "auto",
      "strict_paper_selection": false,
      "early_submission": true,
      "prompts_dir": null,
      "seed": 0
    }
    "#);
}

/// REQ-OR-046
#[test]
fn single_agents_may_have_another_model() {
    let set = ConfigLayer::from_pairs([
        "model=claude-x",
        r#"agent_models={"coder": "opus", "data": "inherit"}"#,
    ]);
    let config = set.unwrap().resolve().unwrap();
    let of = |agent| config.model_of(agent);
    assert_eq!(of(AgentType::Coder), "opus");
    assert_eq!((of(AgentType::Data), of(AgentType::Init)), ("claude-x", "claude-x"));
    let error = ConfigLayer::from_pairs([r#"agent_models={"coder": "gpt"}"#]).unwrap_err();
    assert!(error.to_string().contains("agent_models"), "{error}");
}

/// REQ-DM-002
#[test]
fn zero_is_refused_by_name_when_built_and_when_read() {
    let error = serde_json::from_value::<PipelineConfig>(json!({ "M": 0 })).unwrap_err();
    assert_eq!(error.to_string(), "invalid value for `num_retrieved_models`: must be at least 1");
    for (key, value) in [
        ("max_budget_usd", json!(-1.0)),
        ("script_timeout_seconds", json!(0)),
        ("script_memory_limit", json!("0 GB")),
        ("script_process_limit", json!(0)),
        ("time_limit_seconds", json!(0)),
        ("model", json!(" ")),
        (
            "phase_time_budget",
            json!({"phase1": 0.5, "phase2": 0.5, "phase3": 0.5, "finalization": 0.5}),
        ),
    ] {
        let error = serde_json::from_value::<PipelineConfig>(json!({ key: value })).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn sizes_are_given_in_bytes_or_with_a_unit() {
    let given = ["script_memory_limit=12GB", "script_file_limit=512MiB", "script_output_limit=7"];
    let layer = ConfigLayer::from_pairs(given).unwrap();
    assert_eq!(layer.script_memory_limit, Some(Size(12_000_000_000)));
    assert_eq!(layer.script_file_limit, Some(Size(512 << 20)));
    assert_eq!(layer.script_output_limit, Some(Size(7)));
    let error = ConfigLayer::from_pairs(["script_memory_limit=much"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid value for `script_memory_limit`: invalid value: string \"much\", expected a size \
         such as 12GB"
    );
}

/// REQ-DM-003, REQ-OR-045
#[test]
fn any_setting_can_be_overridden_alone_and_survives_json() {
    let config = ConfigLayer::from_pairs(["T=1", "max_budget_usd=10"]).unwrap().resolve().unwrap();
    assert_eq!(
        config,
        PipelineConfig {
            outer_loop_steps: 1,
            max_budget_usd: Some(10.0),
            ..PipelineConfig::default()
        }
    );
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<PipelineConfig>(&text).unwrap(), config);
    assert_eq!(config.clone().into_layer().resolve().unwrap(), config);
}

/// REQ-OR-046
#[test]
fn explicit_settings_win_over_the_environment_and_that_over_defaults() {
    let environment = environment(&[
        ("MLE_STAR_MODEL", "opus"),
        ("MLE_STAR_LOG_LEVEL", "DEBUG"),
        ("MLE_STAR_MAX_BUDGET", "2.5"),
        ("MLE_STAR_TIME_LIMIT", "60"),
        ("MLE_STAR_CLAUDE_PATH", ""),
        ("HOME", "/root"),
    ])
    .unwrap();
    let explicit = ConfigLayer::from_pairs(["model=haiku"]).unwrap();

    let config = explicit.over(environment).over(Preset::Fast.layer()).resolve().unwrap();

    assert_eq!(config.model, "haiku");
    assert_eq!(config.log_level, LogLevel::Debug);
    assert_eq!(config.max_budget_usd, Some(2.5));
    assert_eq!(config.time_limit_seconds, 60);
    assert_eq!(config.outer_loop_steps, 1);
    assert_eq!(config.max_debug_attempts, 3);
    assert_eq!(config.claude_path, None);
}

/// REQ-OR-046
#[test]
fn a_bad_value_in_the_environment_is_an_error_that_names_the_variable() {
    for (value, reason) in [("cheap", "invalid type"), ("-3", "must be a finite amount above 0")] {
        let error = environment(&[("MLE_STAR_MAX_BUDGET", value)]).unwrap_err().to_string();
        assert!(error.contains("`MLE_STAR_MAX_BUDGET`") && error.contains(reason), "{error}");
    }
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_name() {
    let error = ConfigLayer::from_pairs(["outer_lop_steps=2"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown setting `outer_lop_steps`; did you mean `outer_loop_steps`?"
    );
    assert_eq!(
        ConfigLayer::from_pairs(["T"]).unwrap_err().to_string(),
        "`T` is not of the form key=value"
    );
}

proptest! {
    /// For every setting: the highest layer that speaks decides.
    #[test]
    fn the_highest_layer_that_speaks_decides(
        high in layer(), middle in layer(), low in layer(),
    ) {
        let settled = high.clone().over(middle.clone()).over(low.clone());
        let value = |layer: &ConfigLayer| serde_json::to_value(layer).unwrap();
        for key in known_keys() {
            let expected = [&high, &middle, &low]
                .into_iter()
                .map(|layer| value(layer)[&key].clone())
                .find(|value| !value.is_null())
                .unwrap_or(Value::Null);
            prop_assert_eq!(&value(&settled)[&key], &expected);
        }
        // Laying over is associative, so the order of combining does not matter.
        prop_assert_eq!(high.over(middle.over(low)), settled);
    }
}

fn layer() -> impl Strategy<Value = ConfigLayer> {
    let number = || proptest::option::of(1usize..9);
    (
        number(),
        number(),
        number(),
        proptest::option::of("[a-z]{1,5}"),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(|(outer_loop_steps, inner_loop_steps, ensemble_rounds, model, strict)| {
            ConfigLayer {
                outer_loop_steps,
                inner_loop_steps,
                ensemble_rounds,
                model,
                strict_paper_selection: strict,
                ..ConfigLayer::default()
            }
        })
}
