use mle_star_agent::{Agent as _, Call, Reply, Waits};
use mle_star_search::models::{ExtractorOutput, LeakageDetectionOutput, RetrieverOutput};
use mle_star_search::reply::{parse_structured, try_extract_code};
use serde_json::{Value, json};

use crate::ideas::tag_of;
use crate::leaks::leaks;
use crate::script::{Kind, Script};
use crate::{Playbook, testing};

fn call(role: &str, variant: Option<&str>, input: Value) -> Call {
    Call {
        step: format!("phase/{role}"),
        role: role.to_owned(),
        variant: variant.map(str::to_owned),
        lane: "path-0".to_owned(),
        system_prompt: String::new(),
        prompt: String::new(),
        input,
        tools: Vec::new(),
        schema: None,
        model: String::new(),
        max_turns: None,
        max_budget_usd: None,
        thread: None,
        waits: Waits::default(),
    }
}

fn ask(playbook: &Playbook, role: &str, variant: Option<&str>, input: Value) -> Reply {
    let call = call(role, variant, input);
    let reply = playbook.answer(&call).unwrap();
    assert_eq!(playbook.answer(&call).unwrap(), reply, "{role} answers differently");
    reply
}

fn code(reply: &Reply) -> String {
    let code = try_extract_code(&reply.text).unwrap_or_else(|| panic!("no code: {}", reply.text));
    mle_star_python::check_syntax(&code).unwrap();
    assert_eq!(leaks(&code), [], "the playbook's own script is called leaky");
    code
}

fn candidates(playbook: &Playbook, count: usize) -> Vec<String> {
    let reply = ask(playbook, "retriever", None, json!({ "task_description": "", "M": count }));
    let output: RetrieverOutput = parse_structured(&reply, Some("models")).unwrap();
    let write = |model: &mle_star_search::models::RetrievedModel| {
        let input = json!({
            "task_description": "",
            "model_name": model.model_name,
            "example_code": model.example_code,
        });
        code(&ask(playbook, "init", None, input))
    };
    output.models.iter().map(write).collect()
}

fn merged(playbook: &Playbook) -> String {
    let scripts = candidates(playbook, 2);
    let input = json!({ "base_code": scripts[0], "reference_code": scripts[1] });
    code(&ask(playbook, "merger", None, input))
}

#[test]
fn the_agent_says_what_it_is() {
    assert_eq!(testing::binary().name(), "playbook (no LLM)");
}

#[test]
fn candidates_differ_and_are_merged() {
    for playbook in testing::playbooks() {
        let all = candidates(&playbook, 4);
        assert!(all.len() >= 3);
        let merged = Script::parse(&merged(&playbook));
        assert_eq!(merged.names(Kind::Model).len(), 2);
        let text = merged.to_string();
        assert!(
            merged
                .names(Kind::Model)
                .iter()
                .all(|it| text.contains(&format!("\"{it}\": model_{it}")))
        );
        // A merge with itself brings nothing new, but something else is tried.
        let again = json!({ "base_code": text, "reference_code": text });
        code(&ask(&playbook, "merger", None, again));
    }
}

#[test]
fn a_study_leads_to_a_block_a_plan_and_a_refined_block() {
    for playbook in testing::playbooks() {
        let solution = merged(&playbook);
        let input = json!({ "solution_script": solution, "previous_ablations": [] });
        let study = code(&ask(&playbook, "ablation", None, input.clone()));
        let titles: Vec<&str> =
            study.lines().filter_map(|it| it.trim().strip_prefix("(\"Without [")).collect();
        assert!((2..=3).contains(&titles.len()), "{titles:?}");
        let variant = |it: &&str| it.split(']').next().unwrap().to_owned();
        let part = variant(&titles[0]);
        let printed = format!("Baseline: 0.8\nWithout [{part}]: 0.7 (difference -0.1)\n");
        let input = json!({ "ablation_code": study, "raw_result": printed });
        let summary = ask(&playbook, "summarize", None, input).text;
        assert!(summary.contains(&format!("`{part}` matters most")), "{summary}");

        // The next study looks at something else.
        let input = json!({ "solution_script": solution, "previous_ablations": [summary] });
        let next = code(&ask(&playbook, "ablation", None, input));
        let all: Vec<&str> =
            next.lines().filter_map(|it| it.trim().strip_prefix("(\"Without [")).collect();
        assert_ne!(variant(&all[0]), part);

        let mut blocks: Vec<String> = Vec::new();
        for _ in 0..3 {
            let input = json!({
                "solution_script": solution,
                "ablation_summary": summary,
                "previous_code_blocks": blocks,
                "block_was_not_found": false,
            });
            let reply = ask(&playbook, "extractor", None, input);
            let output: ExtractorOutput = parse_structured(&reply, Some("plans")).unwrap();
            let chosen = &output.plans[0];
            assert!(solution.contains(&chosen.code_block));
            assert!(!blocks.contains(&chosen.code_block));
            refine(&playbook, &solution, &chosen.code_block, &chosen.plan);
            blocks.push(chosen.code_block.clone());
        }
    }
}

/// Four different plans for a block, each carried out.
fn refine(playbook: &Playbook, solution: &str, block: &str, first: &str) {
    let mut plans = vec![first.to_owned()];
    for step in 0..3 {
        let plan = plans.last().unwrap();
        let input = json!({ "code_block": block, "plan": plan });
        let refined = try_extract_code(&ask(playbook, "coder", None, input).text).unwrap();
        let whole = solution.replacen(block, &refined, 1);
        mle_star_python::check_syntax(&whole).unwrap();
        assert_eq!(leaks(&whole), [], "{plan}");
        let scores: Vec<f64> = (0..plans.len()).map(|it| 0.7 + 0.01 * it as f64).collect();
        let input = json!({ "code_block": block, "plans": plans, "scores": scores });
        let next = ask(playbook, "planner", None, input).text;
        if next.is_empty() {
            return;
        }
        assert!(!plans.contains(&next), "step {step}: {next}");
        plans.push(next);
    }
}

#[test]
fn ensembles_hold_all_solutions_and_write_a_submission() {
    for playbook in testing::playbooks() {
        let solutions = [merged(&playbook), candidates(&playbook, 3).pop().unwrap()];
        let input = json!({ "solutions": solutions, "plans": [], "scores": [] });
        let plan = ask(&playbook, "ens_planner", None, input).text;
        let input = json!({ "solutions": solutions, "plans": [plan], "scores": [0.5] });
        assert_ne!(ask(&playbook, "ens_planner", None, input).text, plan);
        let input = json!({ "plan": plan, "solutions": solutions });
        let ensemble = code(&ask(&playbook, "ensembler", None, input));
        assert!(ensemble.contains("SOLUTIONS = [solution_1(), solution_2()]"));
        assert!(ensemble.contains("submission.csv"));
        let input = json!({ "task_description": "", "final_solution": ensemble });
        assert_eq!(code(&ask(&playbook, "test", None, input)), ensemble);
        assert!(ensemble.contains("SHARES = [1, 1]"), "{plan}");
        // The same solution twice is one solution.
        let input = json!({ "plan": plan, "solutions": [solutions[0], solutions[0]] });
        let single = code(&ask(&playbook, "ensembler", None, input));
        assert!(single.contains("SOLUTIONS = [solution_1()]"));
    }
}

#[test]
fn shares_follow_the_scores_until_they_get_no_better() {
    let playbook = testing::binary(); // accuracy: greater is better
    let solutions = [merged(&playbook), candidates(&playbook, 3).pop().unwrap()];
    let mut plans: Vec<String> = Vec::new();
    let scores = [0.80, 0.79, 0.82, 0.81, 0.83];
    for _ in scores {
        let scores = &scores[..plans.len()];
        let input = json!({ "solutions": solutions, "plans": plans, "scores": scores });
        plans.push(ask(&playbook, "ens_planner", None, input).text);
    }
    let tags: Vec<&str> = plans.iter().map(|plan| tag_of(plan).unwrap()).collect();
    let solutions = |shares| format!("ensembles/solutions {shares}");
    assert_eq!(tags[..4], ["1:1", "3:1", "1:3", "1:9"].map(solutions));
    assert_eq!(tags[4], "ensembles/hill_climbing");
}

#[test]
fn an_ensemble_that_failed_is_not_tried_with_other_shares() {
    let playbook = testing::binary();
    let solutions = [merged(&playbook), candidates(&playbook, 3).pop().unwrap()];
    let input = json!({ "solutions": solutions, "plans": [], "scores": [] });
    let plan = ask(&playbook, "ens_planner", None, input).text;
    let input = json!({ "solutions": solutions, "plans": [plan], "scores": [null] });
    let next = ask(&playbook, "ens_planner", None, input).text;
    assert_eq!(tag_of(&next), Some("ensembles/hill_climbing"));
}

#[test]
fn the_submission_is_made_on_all_rows() {
    let train = testing::rows(200, |row| (row % 2).to_string());
    let test = testing::test_rows(30);
    let files = [("train.csv", train.as_bytes()), ("test.csv", test.as_bytes())];
    let mut playbook = testing::playbook("accuracy", &files).unwrap();
    playbook.options.subsample_limit = 100;
    let script = candidates(&playbook, 1).pop().unwrap();
    let quoted =
        ask(&playbook, "test", Some("subsampling_extract"), json!({ "final_solution": script }));
    let block = try_extract_code(&quoted.text).unwrap();
    assert!(script.contains(&block) && block.contains("train.sample(100"));
    let input = json!({ "code_block_with_subsampling": block });
    assert_eq!(ask(&playbook, "test", Some("subsampling_remove"), input).text, "```python\n\n```");
    let input = json!({ "task_description": "", "final_solution": script });
    let submitting = code(&ask(&playbook, "test", None, input));
    assert!(!submitting.contains("train.sample(") && submitting.contains("./final/submission.csv"));
    let whole = ask(
        &playbook,
        "test",
        Some("subsampling_extract"),
        json!({ "final_solution": submitting }),
    );
    assert_eq!(whole.text, "None");
}

#[test]
fn leaks_are_reported_and_a_clean_script_is_not() {
    let playbook = testing::binary();
    let detect = |code: &str| -> LeakageDetectionOutput {
        let reply = ask(&playbook, "leakage", Some("detection"), json!({ "code": code }));
        parse_structured(&reply, Some("answers")).unwrap()
    };
    let script = "import pandas as pd\n\
                  from sklearn.model_selection import train_test_split\ndf = pd.read_csv('train.csv')\ny = df.pop('t')\n\
                  s = StandardScaler()\ndf = s.fit_transform(df)\n\
                  a, b, c, d = train_test_split(df, y, random_state=1)\n";
    let found = detect(script);
    assert_eq!(found.answers.len(), 1);
    assert_eq!(found.answers[0].code_block, "df = s.fit_transform(df)");
    let input = json!({ "code": script, "code_block": found.answers[0].code_block });
    let corrected = ask(&playbook, "leakage", Some("correction"), input);
    let corrected = try_extract_code(&corrected.text).unwrap();
    assert_eq!(corrected, "s.fit(train_test_split(df, random_state=1)[0])\ndf = s.transform(df)");
    let clean = detect(&script.replacen("df = s.fit_transform(df)\n", "", 1));
    assert_eq!(serde_json::to_value(clean.answers[0].leakage_status).unwrap(), "No Data Leakage");
}

#[test]
fn unused_files_are_named() {
    let train = testing::rows(60, |row| (row % 2).to_string());
    let test = testing::test_rows(30);
    let mut files = vec![("train.csv", train.as_bytes()), ("test.csv", test.as_bytes())];
    let input =
        json!({ "initial_solution": "pd.read_csv('./input/train.csv')", "task_description": "" });
    let playbook = testing::playbook("accuracy", &files).unwrap();
    assert_eq!(
        ask(&playbook, "data", None, input.clone()).text,
        "All the provided information is used."
    );
    files.push(("weather.csv", b"day,rain\n1,2\n2,3\n"));
    let playbook = testing::playbook("accuracy", &files).unwrap();
    assert!(ask(&playbook, "data", None, input).text.contains("`weather.csv`"));
}

#[test]
fn tables_that_belong_are_taken_in_once() {
    let train = testing::rows(60, |row| (row % 2).to_string());
    let test = testing::test_rows(30);
    let about = (0..60).map(|row| format!("{row},{}.5\n", row * 3)).collect::<String>();
    let about = format!("id,height\n{about}");
    let files = [
        ("train.csv", train.as_bytes()),
        ("test.csv", test.as_bytes()),
        ("about.csv", about.as_bytes()),
    ];
    let playbook = testing::playbook("accuracy", &files).unwrap();
    let script = merged(&playbook);
    assert!(!script.contains("about.csv"));
    let input = json!({ "initial_solution": script, "task_description": "" });
    let revised = code(&ask(&playbook, "data", None, input));
    assert!(
        revised
            .contains("made = looked_up(further.dropna(subset=[\"id\"]), [\"id\"], [\"height\"]")
    );
    assert_eq!(Script::parse(&revised).names(Kind::Model).len(), 2);
    let input = json!({ "initial_solution": revised, "task_description": "" });
    assert_eq!(ask(&playbook, "data", None, input).text, "All the provided information is used.");
}

#[test]
fn a_role_that_is_not_known_gets_no_answer() {
    let playbook = testing::binary();
    assert!(playbook.answer(&call("dreamer", None, json!({}))).is_err());
    assert!(playbook.answer(&call("coder", None, json!({ "plan": 3 }))).is_err());
}
