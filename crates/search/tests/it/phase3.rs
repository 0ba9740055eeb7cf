//! Phase 3: Algorithm 3 and its failure paths.

use std::future::Future;

use jiff::Timestamp;
use mle_star_agent::{AgentError, Call};
use mle_star_search::event::{Event, Output, Record};
use mle_star_search::models::{
    EnsembleAttempt, Phase3Result, PipelineConfig, Score, SolutionPhase, SolutionScript,
};
use mle_star_search::phase3::run_phase3;
use mle_star_search::roles::{invoke_ens_planner, invoke_ensembler};
use mle_star_search::{Error, RunCtx};
use serde_json::json;

use crate::world::{World, broken, fenced, index, score, script, solution, submitting};

/// The scores of REQ-P3-025's example.
const EXAMPLE: &[Option<f64>] = &[Some(0.85), Some(0.88), None, Some(0.87), Some(0.88)];

/// Two inputs, the second of which is the better one if more is better.
fn inputs() -> Vec<SolutionScript> {
    vec![solution(0.6), solution(0.7)]
}

/// An ensemble that tells its round, so that equal scores can be told apart.
fn ensemble(round: usize, value: f64) -> String {
    format!("# round {round}\n{}{}", script(value), submitting())
}

/// A world in which round `r` scores `scores[r]`, and where nobody can mend what fails.
fn scoring(settings: &str, scores: &'static [Option<f64>]) -> World {
    World::new(settings).on("debugger", |_| "I have no idea.".to_owned()).on(
        "ensembler",
        move |call| {
            let round = index(call, "round");
            fenced(&scores[round].map_or_else(broken, |value| ensemble(round, value)))
        },
    )
}

async fn combine(world: &World, solutions: &[SolutionScript]) -> Phase3Result {
    let run = world.open();
    run_phase3(&run.ctx(), solutions).await.unwrap()
}

fn some_scores(scores: &[Option<f64>]) -> Vec<Option<Score>> {
    scores.iter().map(|it| it.map(score)).collect()
}

/// The finished steps with what came of them.
fn finished(world: &World) -> Vec<(String, Timestamp, Output)> {
    let steps = world.records().into_iter().filter_map(|record| {
        let Record::Finished { at, key, output, .. } = record else { return None };
        Some((key.to_string(), at, output))
    });
    steps.collect()
}

/// When a step was recorded.
fn finished_at(world: &World, step: &str) -> Timestamp {
    finished(world).into_iter().find(|(key, ..)| key == step).unwrap().1
}

/// The record of a round of [`scoring`].
fn tried(world: &World, round: usize, value: Option<f64>) -> EnsembleAttempt {
    let code = value.map_or_else(broken, |value| ensemble(round, value));
    let at = finished_at(world, &format!("round-{round}/ensembler"));
    EnsembleAttempt {
        plan: format!("average them, way {round}"),
        score: value.map(score),
        solution: SolutionScript {
            score: value.map(score),
            is_executable: value.is_some(),
            ..SolutionScript::new(code, SolutionPhase::Ensemble, at)
        },
    }
}

/// The record of a round that came to no script.
fn nothing(plan: &str) -> EnsembleAttempt {
    EnsembleAttempt {
        plan: plan.to_owned(),
        score: None,
        solution: SolutionScript {
            is_executable: false,
            ..SolutionScript::new("", SolutionPhase::Ensemble, Timestamp::UNIX_EPOCH)
        },
    }
}

/// The warnings, each with the place where it was given.
fn warnings(world: &World) -> Vec<(String, String)> {
    let warned = world.events().into_iter().filter_map(|(key, event)| {
        let Event::Warned { message } = event else { return None };
        Some((key, message))
    });
    warned.collect()
}

fn warning(step: &str, message: &str) -> (String, String) {
    (step.to_owned(), message.to_owned())
}

/// What the prompt should say and does not.
fn missing<'a>(prompt: &str, wanted: &[&'a str]) -> Vec<&'a str> {
    wanted.iter().copied().filter(|it| !prompt.contains(it)).collect()
}

/// What the prompt of an ensemble planner says about earlier rounds.
fn history(call: &Call) -> Option<String> {
    let start = call.prompt.find("# Ensemble plans you have tried")?;
    let end = call.prompt.find("\n\n# What to do")?;
    Some(call.prompt[start..end].to_owned())
}

/// All scripts in full, as both prompts show them.
fn labelled(solutions: &[SolutionScript]) -> String {
    let shown = solutions.iter().enumerate().map(|(index, it)| {
        format!(
            "# {}th Python Solution\n\n<python_solution>\n{}\n</python_solution>",
            index + 1,
            it.content
        )
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

// The whole phase.

/// REQ-P3-017, REQ-P3-022, REQ-P3-024, REQ-P3-025, REQ-P3-032, REQ-P3-033, REQ-P3-034, REQ-P3-035, REQ-P3-042
#[tokio::test]
async fn the_last_of_the_best_rounds_wins() {
    let world = scoring("R=5", EXAMPLE);
    let result = combine(&world, &inputs()).await;
    let attempts: Vec<_> =
        EXAMPLE.iter().enumerate().map(|(round, value)| tried(&world, round, *value)).collect();
    let expected = Phase3Result {
        input_solutions: inputs(),
        ensemble_plans: (0..5).map(|round| format!("average them, way {round}")).collect(),
        ensemble_scores: some_scores(EXAMPLE),
        best_ensemble: attempts[4].solution.clone(),
        best_ensemble_score: score(0.88),
        attempts,
    };
    assert_eq!(result, expected);
}

/// REQ-P3-025, REQ-P3-035
#[tokio::test]
async fn the_lowest_score_wins_where_less_is_better() {
    let world = scoring("R=5", &[Some(0.85), Some(0.8), None, Some(0.87), Some(0.8)]).minimizing();
    let result = combine(&world, &inputs()).await;
    assert_eq!(result.best_ensemble, tried(&world, 4, Some(0.8)).solution);
    assert_eq!(result.best_ensemble_score, score(0.8));
}

/// REQ-P3-025, REQ-P3-042
#[tokio::test]
async fn the_best_ensemble_wins_even_over_a_better_input() {
    let world = scoring("R=2", &[Some(0.4), Some(0.3)]);
    let result = combine(&world, &inputs()).await;
    assert_eq!(result.best_ensemble, tried(&world, 0, Some(0.4)).solution);
}

/// REQ-P3-022, REQ-P3-033, REQ-P3-034, REQ-P3-044
#[tokio::test]
async fn there_are_as_many_rounds_as_configured_and_five_by_default() {
    assert_eq!(PipelineConfig::default().ensemble_rounds, 5);
    for (settings, rounds) in [("", 5), ("R=1", 1), ("R=3", 3)] {
        let world = World::new(settings);
        let result = combine(&world, &inputs()).await;
        let plans: Vec<_> = (0..rounds).map(|round| format!("average them, way {round}")).collect();
        assert_eq!(result.ensemble_plans, plans);
        assert_eq!(result.ensemble_scores, vec![Some(score(0.9)); rounds]);
        assert_eq!(result.attempts.len(), rounds);
        assert_eq!(world.calls_of("ens_planner").len(), rounds);
        assert_eq!(world.calls_of("ensembler").len(), rounds);
    }
}

/// REQ-P3-018
#[tokio::test]
async fn a_single_solution_is_returned_as_it_is_without_asking_anyone() {
    let world = World::new("R=5");
    let result = combine(&world, &[solution(0.6)]).await;
    let expected = Phase3Result {
        input_solutions: vec![solution(0.6)],
        ensemble_plans: Vec::new(),
        ensemble_scores: Vec::new(),
        best_ensemble: solution(0.6),
        best_ensemble_score: score(0.6),
        attempts: Vec::new(),
    };
    assert_eq!(result, expected);
    assert_eq!((world.calls(), world.jobs().len(), world.events()), (vec![], 0, vec![]));
}

/// REQ-P3-017, REQ-P3-018
#[tokio::test]
async fn a_solution_without_a_score_is_refused_before_anyone_is_asked() {
    let unscored = SolutionScript { score: None, ..solution(0.6) };
    let unscored_inputs = [vec![unscored.clone()], vec![solution(0.7), unscored], Vec::new()];
    for solutions in unscored_inputs {
        let world = World::new("R=2");
        let run = world.open();
        let error = run_phase3(&run.ctx(), &solutions).await.unwrap_err();
        assert!(matches!(error, Error::Precondition("Phase 3 requires scored solutions")));
        assert_eq!(world.calls(), []);
    }
}

/// REQ-P3-019, REQ-P3-020, REQ-P3-021, REQ-P3-027, REQ-P3-042, REQ-P3-045
#[tokio::test]
async fn a_round_plans_writes_checks_for_leakage_and_evaluates_in_this_order() {
    let world = World::new("R=2");
    combine(&world, &inputs()).await;
    let expected = [
        "round-0/ens_planner",
        "round-0/ensembler",
        "round-0/leakage",
        "round-0/attempt-0/run",
        "round-1/ens_planner",
        "round-1/ensembler",
        "round-1/leakage",
        "round-1/attempt-0/run",
    ];
    assert_eq!(world.steps(), expected);
}

/// REQ-P3-043
#[tokio::test]
async fn no_step_begins_before_the_one_before_it_has_ended() {
    let world = World::new("R=3");
    combine(&world, &inputs()).await;
    let steps = world.beginnings_and_ends();
    let one_by_one: Vec<_> = world
        .steps()
        .into_iter()
        .flat_map(|key| [("started", key.clone()), ("finished", key)])
        .collect();
    assert_eq!(steps, one_by_one);
}

/// REQ-P3-024, REQ-P3-032
#[tokio::test]
async fn every_round_is_told_with_its_plan_and_score() {
    let world = scoring("R=2", &[Some(0.8), None]);
    combine(&world, &inputs()).await;
    let told: Vec<_> = world
        .events()
        .into_iter()
        .filter(|(_, event)| matches!(event, Event::Ensembled { .. }))
        .collect();
    let ensembled = |round: usize, value: Option<f64>| {
        let plan = format!("average them, way {round}");
        (format!("round-{round}"), Event::Ensembled { plan, score: value.map(score) })
    };
    assert_eq!(told, [ensembled(0, Some(0.8)), ensembled(1, None)]);
}

/// REQ-P3-016, REQ-P3-020, REQ-P3-048
#[tokio::test]
async fn the_script_that_runs_is_the_whole_program_of_the_ensembler() {
    let world = scoring("R=1 script_timeout_seconds=77", &[Some(0.8)]);
    combine(&world, &inputs()).await;
    let jobs: Vec<_> =
        world.jobs().into_iter().map(|job| (job.script, job.time_limit.as_secs())).collect();
    assert_eq!(jobs, [(ensemble(0, 0.8), 77)]);
    let written = "Write the full new program, from imports and data loading to the submission";
    assert_eq!(missing(&world.calls_of("ensembler")[0].prompt, &[written]), [""; 0]);
}

/// REQ-P3-017, REQ-P3-041
#[test]
fn the_phase_is_one_function_from_scored_solutions_to_a_result() {
    fn is_the_entry_point<'a, F>(_: impl Fn(&'a RunCtx<'a>, &'a [SolutionScript]) -> F)
    where
        F: Future<Output = Result<Phase3Result, Error>>,
    {
    }
    is_the_entry_point(mle_star_search::phase3::run_phase3);
}

// A_ens_planner.

/// REQ-P3-004, REQ-P3-005, REQ-P3-019, REQ-P3-022, REQ-P3-023, REQ-P3-042
#[tokio::test]
async fn the_planner_sees_every_earlier_plan_with_its_score() {
    let world = scoring("R=5", &[Some(1.0), None, Some(0.87), None, Some(0.5)]);
    combine(&world, &inputs()).await;
    let calls = world.calls_of("ens_planner");

    let shown = ["1.0", "N/A (evaluation failed)", "0.87", "N/A (evaluation failed)"];
    let expected_history = |round: usize| {
        let tried: Vec<_> = (0..round)
            .map(|it| format!("## Plan: average them, way {it}\n## Score: {}", shown[it]))
            .collect();
        (round > 0).then(|| format!("# Ensemble plans you have tried\n\n{}", tried.join("\n\n")))
    };
    let histories: Vec<_> = calls.iter().map(history).collect();
    assert_eq!(histories, (0..5).map(expected_history).collect::<Vec<_>>());

    let scores = [Some(1.0), None, Some(0.87), None];
    let given: Vec<_> = calls.iter().map(|call| call.input.clone()).collect();
    let expected: Vec<_> = (0..5)
        .map(|round| {
            json!({
                "solutions": [script(0.6), script(0.7)],
                "plans": (0..round).map(|it| format!("average them, way {it}")).collect::<Vec<_>>(),
                "scores": scores[..round],
            })
        })
        .collect();
    assert_eq!(given, expected);
}

/// REQ-P3-004
#[tokio::test]
async fn the_first_planner_sees_no_trace_of_a_history() {
    let world = World::new("R=1");
    combine(&world, &inputs()).await;
    let prompt = &world.calls_of("ens_planner")[0].prompt;
    for trace in ["Plan:", "Score:", "plans you have tried", "\n\n\n"] {
        assert!(!prompt.contains(trace), "{trace:?} in {prompt}");
    }
}

/// REQ-P3-002, REQ-P3-003, REQ-P3-007, REQ-P3-008, REQ-P3-046
#[tokio::test]
async fn the_prompt_of_the_planner_says_what_figure_17_says() {
    let world = scoring("R=2", &[Some(0.8), Some(0.8)]);
    let solutions = [solution(0.6), solution(0.7), solution(0.65)];
    combine(&world, &solutions).await;
    let call = &world.calls_of("ens_planner")[1];
    let wanted = [
        "You are a Kaggle grandmaster",
        "Your goal is to ensemble 3 Python solutions",
        "better score (higher is better) in r2",
        &labelled(&solutions),
        "## Plan: average them, way 0\n## Score: 0.8",
        "Suggest a plan for ensembling the 3 solutions above.",
        "You should concentrate how to merge, not the other parts like hyperparameters.",
        "The plan must be easy to implement, novel and effective.",
        "If plans have been tried, it must differ from all of them",
        "promise a better score (higher is better) than the best of them",
        "Do not alter the original solutions too much: each change may cause an execution error.",
        "An outline of the plan in natural language. Add no headings, no code and no other text.",
    ];
    assert_eq!(missing(&call.prompt, &wanted), [""; 0]);
}

/// REQ-P3-002
#[tokio::test]
async fn the_planner_is_told_that_less_is_better_where_it_is() {
    let world = World::new("R=1").minimizing();
    combine(&world, &inputs()).await;
    let prompt = &world.calls_of("ens_planner")[0].prompt;
    assert_eq!(missing(prompt, &["better score (lower is better) in rmse"]), [""; 0]);
    assert!(!prompt.contains("higher"), "{prompt}");
}

/// REQ-P3-002, REQ-P3-009, REQ-P3-011, REQ-P3-016
#[tokio::test]
async fn both_prompts_come_from_the_registry_and_inserted_text_is_not_read_again() {
    let mut world = World::new("R=2").on("ens_planner", |_| " use {L} and {solutions}\n".into());
    let folder = world.dir().root().with_file_name("prompts");
    fs_err::create_dir_all(&folder).unwrap();
    fs_err::write(folder.join("ens_planner.md"), "{L}|{scores}\n{solutions}\n{plans}").unwrap();
    fs_err::write(folder.join("ensembler.md"), "{L}|{plan}\n{solutions}").unwrap();
    world.config.prompts_dir = Some(folder);
    combine(&world, &inputs()).await;

    let prompts = |role: &str| -> Vec<String> {
        world.calls_of(role).into_iter().map(|call| call.prompt).collect()
    };
    let solutions = labelled(&inputs());
    let history =
        "# Ensemble plans you have tried\n\n## Plan: use {L} and {solutions}\n## Score: 0.9";
    assert_eq!(
        prompts("ens_planner"),
        [format!("2|\n{solutions}\n"), format!("2|0.9\n{solutions}\n{history}")]
    );
    assert_eq!(
        prompts("ensembler"),
        vec![format!("2|use {{L}} and {{solutions}}\n{solutions}"); 2]
    );
}

/// REQ-P3-006, REQ-P3-009
#[tokio::test]
async fn a_plan_is_the_whole_reply_without_the_space_around_it() {
    let world = World::new("").on("ens_planner", |_| "\n  Average them.\n\nThen rank.  \n".into());
    let run = world.open();
    let first = invoke_ens_planner(&run.ctx().scope("first"), &inputs(), &[], &[]).await.unwrap();
    assert_eq!(first.as_deref(), Some("Average them.\n\nThen rank."));
    let (plans, scores) = (["plan A".to_owned()], [Some(score(0.85))]);
    let next = invoke_ens_planner(&run.ctx().scope("next"), &inputs(), &plans, &scores).await;
    assert_eq!(next.unwrap().as_deref(), Some("Average them.\n\nThen rank."));
    let histories: Vec<_> = world.calls_of("ens_planner").iter().map(history).collect();
    let tried = "# Ensemble plans you have tried\n\n## Plan: plan A\n## Score: 0.85".to_owned();
    assert_eq!(histories, [None, Some(tried)]);
}

/// REQ-P3-009, REQ-P3-031
#[tokio::test]
async fn a_blank_reply_or_none_at_all_is_no_plan() {
    let refused = || AgentError::NoAnswer { reason: "refused".into(), cost_usd: None };
    for world in [
        World::new("").on("ens_planner", |_| " \n\t".into()),
        World::new("").on_call(move |_| Some(Err(refused()))),
    ] {
        let run = world.open();
        assert_eq!(invoke_ens_planner(&run.ctx(), &inputs(), &[], &[]).await.unwrap(), None);
    }
}

/// REQ-P3-003, REQ-P3-009
#[tokio::test]
async fn the_planner_refuses_too_few_solutions_and_a_lopsided_history() {
    let world = World::new("");
    let run = world.open();
    let one = invoke_ens_planner(&run.ctx(), &[solution(0.6)], &[], &[]).await.unwrap_err();
    assert!(matches!(
        one,
        Error::Precondition("A_ens_planner requires at least 2 solutions for ensembling")
    ));
    let lopsided = invoke_ens_planner(&run.ctx(), &inputs(), &["plan A".into()], &[]).await;
    assert!(matches!(lopsided, Err(Error::Precondition(_))), "{lopsided:?}");
    assert_eq!(world.calls(), []);
}

// A_ensembler.

/// REQ-P3-011, REQ-P3-012, REQ-P3-014, REQ-P3-015, REQ-P3-047, REQ-P3-048, REQ-P3-049
#[tokio::test]
async fn the_prompt_of_the_ensembler_says_what_figure_18_says() {
    let world = World::new("R=1");
    let solutions = [solution(0.6), solution(0.7), solution(0.65)];
    combine(&world, &solutions).await;
    let call = &world.calls_of("ensembler")[0];
    let wanted = [
        "You are a Kaggle grandmaster",
        "Your goal is to ensemble 3 Python solutions by following a plan",
        "better score (higher is better) in r2",
        &labelled(&solutions),
        "# Ensemble plan\n\n<plan>\naverage them, way 0\n</plan>",
        "Implement the ensemble plan with the 3 solutions above, all of them.",
        "Where the plan does not ask for it, leave the original solutions mostly as they are",
        "All data is ready in the `./input/` directory; nothing needs unzipping.",
        "Do not load submissions made earlier.",
        "on the hold-out set",
        "Do not subsample or introduce dummy variables.",
        "Write the full new program",
        "`./final/submission.csv`",
        "`Final Validation Performance: {final_validation_score}`",
        "One markdown code block with the ensemble as a single-file Python program that is \
         self-contained and runs as it stands. Add no headings and no text around it.",
    ];
    assert_eq!(missing(&call.prompt, &wanted), [""; 0]);
    let input = json!({
        "plan": "average them, way 0",
        "solutions": [script(0.6), script(0.7), script(0.65)],
    });
    assert_eq!(call.input, input);
}

/// REQ-P3-014
#[tokio::test]
async fn neither_the_ensembler_nor_its_debugger_is_told_to_subsample() {
    let world = scoring("R=1 subsample_limit=12345", &[None]);
    combine(&world, &inputs()).await;
    for role in ["ensembler", "debugger"] {
        let prompt = &world.calls_of(role)[0].prompt;
        assert!(!prompt.contains("12345") && !prompt.contains("must subsample"), "{prompt}");
    }
}

/// REQ-P3-012, REQ-P3-042
#[tokio::test]
async fn the_ensembler_gets_the_plan_of_its_round_and_every_solution() {
    let world = World::new("R=3");
    combine(&world, &inputs()).await;
    let given: Vec<_> = world.calls_of("ensembler").into_iter().map(|call| call.input).collect();
    let expected: Vec<_> = (0..3)
        .map(|round| {
            json!({
                "plan": format!("average them, way {round}"),
                "solutions": [script(0.6), script(0.7)],
            })
        })
        .collect();
    assert_eq!(given, expected);
}

/// REQ-P3-013, REQ-P3-016
#[tokio::test]
async fn an_ensemble_is_the_code_of_the_reply_not_yet_evaluated() {
    let world = World::new("").on("ensembler", |_| {
        format!("First\n```python\nimport math\n```\nthen\n{}\nDone.", fenced(&script(0.9)))
    });
    let run = world.open();
    let written = invoke_ensembler(&run.ctx(), "average them", &inputs()).await.unwrap();
    let expected = SolutionScript {
        content: script(0.9),
        phase: SolutionPhase::Ensemble,
        score: None,
        is_executable: true,
        source_model: None,
        created_at: finished_at(&world, "ensembler"),
    };
    assert_eq!(written, Some(expected));
}

/// REQ-P3-016
#[tokio::test]
async fn a_reply_without_code_is_no_ensemble() {
    for prose in ["", "I would rather not.", "```python\n\n```"] {
        let world = World::new("").on("ensembler", |_| prose.to_owned());
        let run = world.open();
        let written = invoke_ensembler(&run.ctx(), "average them", &inputs()).await.unwrap();
        assert_eq!(written, None, "{prose}");
    }
}

/// REQ-P3-012, REQ-P3-016
#[tokio::test]
async fn the_ensembler_refuses_an_empty_plan_and_too_few_solutions() {
    let world = World::new("");
    let run = world.open();
    for blank in ["", " \n"] {
        let error = invoke_ensembler(&run.ctx(), blank, &inputs()).await.unwrap_err();
        assert!(matches!(
            error,
            Error::Precondition("A_ensembler requires a non-empty ensemble plan")
        ));
    }
    let error = invoke_ensembler(&run.ctx(), "average", &[solution(0.6)]).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Precondition("A_ensembler requires at least 2 solutions for ensembling")
    ));
    assert_eq!(world.calls(), []);
}

// Safety.

/// A world in which the ensemble scores 0.8 with a leak, and 0.65 without.
fn leaking() -> World {
    scoring("R=1", &[Some(0.8)]).on("leakage", |call| match call.variant.as_deref() {
        Some("detection") => {
            let leak = json!({"leakage_status": "Yes Data Leakage", "code_block": "score = 0.8"});
            json!({ "answers": [leak] }).to_string()
        }
        _ => fenced("score = 0.65"),
    })
}

/// REQ-P3-021, REQ-P3-027, REQ-P3-045
#[tokio::test]
async fn what_is_evaluated_is_the_ensemble_without_its_leak() {
    let world = leaking();
    let result = combine(&world, &inputs()).await;
    let steps = [
        "round-0/ens_planner",
        "round-0/ensembler",
        "round-0/leakage",
        "round-0/leak-0/leakage_correction",
        "round-0/attempt-0/run",
    ];
    assert_eq!(world.steps(), steps);
    let scripts: Vec<_> = world.jobs().into_iter().map(|job| job.script).collect();
    assert_eq!(scripts, [ensemble(0, 0.65)]);
    assert_eq!(result.best_ensemble.content, ensemble(0, 0.65));
    assert_eq!(result.ensemble_scores, [Some(score(0.65))]);
}

/// REQ-P3-028, REQ-P3-045
#[tokio::test]
async fn an_ensemble_that_fails_once_is_mended_checked_again_and_counted() {
    let world = World::new("R=1")
        .on("ensembler", |_| fenced(&broken()))
        .on("debugger", |_| fenced(&ensemble(0, 0.8)));
    let result = combine(&world, &inputs()).await;
    let steps = [
        "round-0/ens_planner",
        "round-0/ensembler",
        "round-0/leakage",
        "round-0/attempt-0/run",
        "round-0/attempt-0/debugger",
        "round-0/attempt-0/leakage",
        "round-0/attempt-1/run",
    ];
    assert_eq!(world.steps(), steps);
    let mended = SolutionScript {
        score: Some(score(0.8)),
        ..SolutionScript::new(
            ensemble(0, 0.8),
            SolutionPhase::Ensemble,
            result.best_ensemble.created_at,
        )
    };
    let attempt = EnsembleAttempt {
        plan: "average them, way 0".to_owned(),
        score: Some(score(0.8)),
        solution: mended.clone(),
    };
    assert_eq!(result.attempts, [attempt]);
    assert_eq!((result.best_ensemble, result.best_ensemble_score), (mended, score(0.8)));
    assert_eq!(world.warnings(), [""; 0]);
}

/// REQ-P3-027, REQ-P3-028
#[tokio::test]
async fn a_changed_ensemble_is_as_old_as_the_step_that_changed_it() {
    // Decisions C-57 and C-101: new source has a new time, that of the step which wrote it.
    let failing = World::new("R=1")
        .on("ensembler", |_| fenced(&broken()))
        .on("debugger", |_| fenced(&ensemble(0, 0.8)));
    let mended = combine(&failing, &inputs()).await.best_ensemble;
    let leaking = leaking();
    let corrected = combine(&leaking, &inputs()).await.best_ensemble;
    assert_eq!(
        [mended.created_at, corrected.created_at],
        [
            finished_at(&failing, "round-0/attempt-0/debugger"),
            finished_at(&leaking, "round-0/leak-0/leakage_correction"),
        ]
    );
}

/// REQ-P3-028, REQ-P3-029
#[tokio::test]
async fn an_ensemble_that_nobody_can_mend_fails_after_the_last_attempt() {
    let world = World::new("R=1 max_debug_attempts=2")
        .on("ens_planner", |_| "long ".repeat(100))
        .on("ensembler", |_| fenced(&broken()))
        .on("debugger", |call| {
            let attempt = index(call, "attempt");
            fenced(&format!("# Final Validation Performance {attempt}\n{}", broken()))
        });
    let result = combine(&world, &inputs()).await;
    assert_eq!((world.calls_of("debugger").len(), world.jobs().len()), (2, 3));
    let last = SolutionScript {
        is_executable: false,
        ..SolutionScript::new(
            format!("# Final Validation Performance 1\n{}", broken()),
            SolutionPhase::Ensemble,
            result.attempts[0].solution.created_at,
        )
    };
    let attempt = EnsembleAttempt {
        plan: "long ".repeat(100).trim().to_owned(),
        score: None,
        solution: last,
    };
    assert_eq!(result.attempts, [attempt]);
    let failed = format!(
        "the ensemble failed: ValueError: no such column; its plan was: {}",
        "long ".repeat(40)
    );
    let fallback = "Phase 3 ensemble: all 1 attempts failed; falling back to best input solution";
    assert_eq!(warnings(&world), [warning("round-0", &failed), warning("", fallback)]);
}

/// REQ-P3-015
#[tokio::test]
async fn an_ensemble_without_a_submission_counts_but_is_warned_about() {
    let world = World::new("R=1").on("ensembler", |_| fenced(&script(0.8)));
    let result = combine(&world, &inputs()).await;
    assert_eq!(result.ensemble_scores, [Some(score(0.8))]);
    assert_eq!(result.best_ensemble.content, script(0.8));
    let expected = warning("round-0", "the ensemble wrote no ./final/submission.csv");
    assert_eq!(warnings(&world), [expected]);
    assert_eq!(world.calls_of("debugger"), []);
}

/// REQ-P3-015
#[tokio::test]
async fn the_submission_of_every_ensemble_is_kept() {
    let world = scoring("R=2", &[Some(0.8), Some(0.7)]);
    combine(&world, &inputs()).await;
    let kept: Vec<_> = finished(&world)
        .into_iter()
        .filter_map(|(_, _, output)| {
            let Output::Ran { submission, .. } = output else { return None };
            Some(fs_err::read_to_string(world.dir().solution(&submission?)).unwrap())
        })
        .collect();
    assert_eq!(kept, ["id,y\n1,2\n"; 2]);
    assert_eq!(world.warnings(), [""; 0]);
}

// Failure.

/// REQ-P3-029, REQ-P3-038
#[tokio::test]
async fn failed_rounds_do_not_keep_the_others_from_running() {
    const SCORES: &[Option<f64>] = &[None, Some(0.75), None, Some(0.9), Some(0.8)];
    let world = scoring("R=5", SCORES);
    let result = combine(&world, &inputs()).await;
    assert_eq!(result.ensemble_scores, some_scores(SCORES));
    assert_eq!(result.best_ensemble, tried(&world, 3, Some(0.9)).solution);
    let failed = |round: usize| {
        let message = format!(
            "the ensemble failed: ValueError: no such column; its plan was: average them, way \
             {round}"
        );
        warning(&format!("round-{round}"), &message)
    };
    let told: Vec<_> = warnings(&world)
        .into_iter()
        .filter(|(_, message)| message.starts_with("the ensemble failed"))
        .collect();
    assert_eq!(told, [failed(0), failed(2)]);
}

/// REQ-P3-022, REQ-P3-023, REQ-P3-031, REQ-P3-032
#[tokio::test]
async fn a_round_without_a_plan_is_recorded_and_remembered() {
    let world = World::new("R=2").on("ens_planner", |call| match index(call, "round") {
        0 => "  \n".to_owned(),
        _ => "stack them".to_owned(),
    });
    let result = combine(&world, &inputs()).await;
    assert_eq!(result.attempts[0], nothing("[ens_planner failed]"));
    assert_eq!(result.ensemble_plans, ["[ens_planner failed]", "stack them"]);
    assert_eq!(result.ensemble_scores, [None, Some(score(0.9))]);
    let steps: Vec<_> = world.steps().into_iter().filter(|it| it.starts_with("round-0")).collect();
    assert_eq!(steps, ["round-0/ens_planner"]);
    assert_eq!(
        history(&world.calls_of("ens_planner")[1]).as_deref(),
        Some(
            "# Ensemble plans you have tried\n\n## Plan: [ens_planner failed]\n\
             ## Score: N/A (evaluation failed)"
        )
    );
    let expected = warning("round-0", "A_ens_planner gave no plan; this round is skipped");
    assert_eq!(warnings(&world), [expected]);
}

/// REQ-P3-022, REQ-P3-023, REQ-P3-030, REQ-P3-032
#[tokio::test]
async fn a_round_without_code_is_recorded_and_remembered() {
    let world = World::new("R=2").on("ensembler", |call| match index(call, "round") {
        0 => "I would rather not.".to_owned(),
        _ => fenced(&ensemble(1, 0.9)),
    });
    let result = combine(&world, &inputs()).await;
    assert_eq!(result.attempts, [nothing("average them, way 0"), tried(&world, 1, Some(0.9))]);
    let steps: Vec<_> = world.steps().into_iter().filter(|it| it.starts_with("round-0")).collect();
    assert_eq!(steps, ["round-0/ens_planner", "round-0/ensembler"]);
    assert_eq!(
        history(&world.calls_of("ens_planner")[1]).as_deref(),
        Some(
            "# Ensemble plans you have tried\n\n## Plan: average them, way 0\n\
             ## Score: N/A (evaluation failed)"
        )
    );
    let expected = warning("round-0", "A_ensembler wrote no code: I would rather not.");
    assert_eq!(warnings(&world), [expected]);
}

/// A world in which each of five rounds fails in its own way.
fn hopeless() -> World {
    World::new("R=5 max_debug_attempts=1")
        .on("ens_planner", |call| match index(call, "round") {
            0 => String::new(),
            round => format!("way {round}"),
        })
        .on("debugger", |_| "I have no idea.".to_owned())
        .on_call(|call| {
            let reply = match (call.role.as_str(), index(call, "round")) {
                ("ensembler", 1) => "I would rather not.".to_owned(),
                ("ensembler", 2) => {
                    let reason = "refused".to_owned();
                    return Some(Err(AgentError::NoAnswer { reason, cost_usd: None }));
                }
                ("ensembler", 3) => fenced(&broken()),
                ("ensembler", 4) => fenced("import sys\nsys.exit(0)"),
                _ => return None,
            };
            Some(Ok(mle_star_agent::Reply::text(reply)))
        })
}

/// REQ-P3-026, REQ-P3-034, REQ-P3-035, REQ-P3-038, REQ-P3-044
#[tokio::test]
async fn where_every_round_fails_the_best_input_stands_in() {
    for (world, best) in [(hopeless(), 0.7), (hopeless().minimizing(), 0.6)] {
        let result = combine(&world, &inputs()).await;
        let failed = |round: usize, code: &str| EnsembleAttempt {
            solution: SolutionScript {
                content: code.to_owned(),
                created_at: finished_at(&world, &format!("round-{round}/ensembler")),
                ..nothing("").solution
            },
            ..nothing(&format!("way {round}"))
        };
        let plans = ["[ens_planner failed]", "way 1", "way 2", "way 3", "way 4"];
        let expected = Phase3Result {
            input_solutions: inputs(),
            ensemble_plans: plans.map(str::to_owned).to_vec(),
            ensemble_scores: vec![None; 5],
            best_ensemble: solution(best),
            best_ensemble_score: score(best),
            attempts: vec![
                nothing("[ens_planner failed]"),
                nothing("way 1"),
                nothing("way 2"),
                failed(3, &broken()),
                failed(4, "import sys\nsys.exit(0)"),
            ],
        };
        assert_eq!(result, expected);
        assert_eq!(
            warnings(&world).last().unwrap(),
            &warning(
                "",
                "Phase 3 ensemble: all 5 attempts failed; falling back to best input solution"
            )
        );
    }
}

/// REQ-P3-024, REQ-P3-028
#[tokio::test]
async fn a_score_printed_by_a_script_that_fails_does_not_count() {
    let code = format!("{}{}", script(0.99), broken());
    let world = World::new("R=1 max_debug_attempts=1")
        .on("ensembler", move |_| fenced(&code))
        .on("debugger", |_| "I have no idea.".to_owned());
    let result = combine(&world, &inputs()).await;
    assert_eq!((result.ensemble_scores, result.best_ensemble), (vec![None], solution(0.7)));
}

/// REQ-P3-028
#[tokio::test]
async fn an_ensemble_that_prints_no_score_is_mended_too() {
    let world = World::new("R=1")
        .on("ensembler", |_| fenced("print('done')"))
        .on("debugger", |_| fenced(&ensemble(0, 0.8)));
    let result = combine(&world, &inputs()).await;
    assert_eq!(result.ensemble_scores, [Some(score(0.8))]);
    assert_eq!(world.calls_of("debugger").len(), 1);
}

/// REQ-P3-040
#[tokio::test]
async fn every_reply_comes_through_the_agent_port() {
    let world = scoring("R=2", &[Some(0.8), None]);
    combine(&world, &inputs()).await;
    let asked: Vec<_> = finished(&world)
        .into_iter()
        .filter(|(_, _, output)| matches!(output, Output::Asked { .. }))
        .map(|(key, ..)| key)
        .collect();
    let calls: Vec<_> = world.calls().into_iter().map(|call| call.step).collect();
    assert_eq!(calls, asked);
}

/// REQ-P3-040
#[tokio::test]
async fn without_the_agent_port_nothing_goes_on() {
    for role in ["ens_planner", "ensembler"] {
        let world = World::new("R=2").on_call(move |call| {
            let reason = "no connection".to_owned();
            (call.role == role).then_some(Err(AgentError::Unauthorized { reason }))
        });
        let run = world.open();
        let error = run_phase3(&run.ctx(), &inputs()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("could not ask the agent at step `round-0/{role}`"));
        assert!(error.stops_the_run());
        assert_eq!(world.jobs().len(), 0);
    }
}

// What the orchestrator makes of it.

/// What was chosen for finalization, and the script that A_test was then given.
fn selected(world: &World) -> (Vec<Event>, serde_json::Value) {
    let events = world.events().into_iter().map(|(_, event)| event);
    let chosen = events.filter(|event| matches!(event, Event::Selected { .. })).collect();
    let mut tests = world.calls_of("test").into_iter().filter(|call| call.variant.is_none());
    (chosen, tests.next_back().unwrap().input["final_solution"].clone())
}

fn chosen(from: SolutionPhase, value: f64) -> Vec<Event> {
    vec![Event::Selected { from, score: score(value) }]
}

/// REQ-P3-025, REQ-OR-014, REQ-OR-016
#[tokio::test]
async fn an_ensemble_at_least_as_good_as_every_path_is_finalized() {
    for value in [0.9, 0.6] {
        let world =
            World::new("M=1 T=1 K=1 L=2 R=1").on("ensembler", move |_| fenced(&ensemble(0, value)));
        let completed = world.run().await.unwrap();
        let phase3 = completed.result.phase3.unwrap();
        let paths: Vec<_> =
            completed.result.phase2_results.into_iter().map(|it| it.best_solution).collect();
        assert_eq!(phase3.input_solutions, paths);
        assert_eq!(phase3.best_ensemble_score, score(value));
        assert_eq!(
            selected(&world),
            (chosen(SolutionPhase::Ensemble, value), json!(ensemble(0, value)))
        );
    }
}

/// REQ-P3-025, REQ-OR-016
#[tokio::test]
async fn a_path_better_than_every_ensemble_is_finalized_instead() {
    let world = scoring("M=1 T=1 K=1 L=2 R=2", &[Some(0.3), Some(0.4)]);
    let completed = world.run().await.unwrap();
    assert_eq!(completed.result.phase3.unwrap().best_ensemble_score, score(0.4));
    assert_eq!(selected(&world), (chosen(SolutionPhase::Refined, 0.6), json!(script(0.6))));

    // The paths keep the initial 0.5, because all refinements are higher.
    let world = World::new("M=1 T=1 K=1 L=2 R=1").minimizing();
    let completed = world.run().await.unwrap();
    assert_eq!(completed.result.phase3.unwrap().best_ensemble_score, score(0.9));
    assert_eq!(selected(&world), (chosen(SolutionPhase::Init, 0.5), json!(script(0.5))));
}

/// REQ-P3-025, REQ-OR-016
#[tokio::test]
async fn strict_paper_selection_finalizes_the_ensemble_whatever_the_paths_scored() {
    let world = scoring("M=1 T=1 K=1 L=2 R=1 strict_paper_selection=true", &[Some(0.3)]);
    world.run().await.unwrap();
    assert_eq!(selected(&world), (chosen(SolutionPhase::Ensemble, 0.3), json!(ensemble(0, 0.3))));
}

/// REQ-P3-026, REQ-P3-038
#[tokio::test]
async fn a_run_whose_ensembles_all_fail_finalizes_its_best_path() {
    let world = World::new("M=1 T=1 K=1 L=2 R=2")
        .on("ensembler", |_| "I would rather not.".to_owned())
        .on("coder", |call| {
            fenced(if call.lane == "path-1" { "score = 0.8" } else { "score = 0.6" })
        });
    let completed = world.run().await.unwrap();
    let phase3 = completed.result.phase3.unwrap();
    assert_eq!(phase3.best_ensemble, completed.result.phase2_results[1].best_solution);
    assert_eq!(selected(&world).1, json!(script(0.8)));
    assert!(completed.submission.is_some());
    let fallback = "Phase 3 ensemble: all 2 attempts failed; falling back to best input solution";
    assert!(warnings(&world).contains(&warning("phase3", fallback)), "{:?}", warnings(&world));
}

/// REQ-P3-018, REQ-OR-015
#[tokio::test]
async fn a_run_with_a_single_path_has_no_phase_3() {
    let world = World::new("M=1 T=1 K=1 L=1 R=5");
    let completed = world.run().await.unwrap();
    assert_eq!(completed.result.phase3, None);
    assert_eq!((world.calls_of("ens_planner"), world.calls_of("ensembler")), (vec![], vec![]));
    assert_eq!(selected(&world), (chosen(SolutionPhase::Refined, 0.6), json!(script(0.6))));
}
