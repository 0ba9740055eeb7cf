//! Phase 2, inner loop: Algorithm 2, lines 9-25.

use jiff::Timestamp;
use mle_star_agent::{AgentError, Call, Reply};
use mle_star_exec::Ended;
use mle_star_search::event::{Event, Record};
use mle_star_search::models::{
    AgentConfig, AgentType, InnerLoopResult, MetricDirection, RefinementAttempt, Score,
    SolutionPhase, SolutionScript,
};
use mle_star_search::phase2::run_phase2_inner_loop;
use mle_star_search::prompt::PromptRegistry;
use mle_star_search::roles::{invoke_coder, invoke_planner};
use mle_star_search::{Error, RunCtx};
use serde_json::json;

use crate::world::{World, block, code_block, fenced, index, outcome, score, script, solution};

/// The plan that the outer loop hands in.
const FIRST_PLAN: &str = "raise the score";

/// A solution that scores 0.5, refined with the plans and blocks of `world`.
async fn refine(world: &World) -> InnerLoopResult {
    let run = world.open();
    let result = refine_in(&run.ctx()).await.unwrap();
    // When it was written is another test's matter.
    let best_solution =
        SolutionScript { created_at: Timestamp::UNIX_EPOCH, ..result.best_solution };
    InnerLoopResult { best_solution, ..result }
}

async fn refine_in(ctx: &RunCtx<'_>) -> Result<InnerLoopResult, Error> {
    let target = code_block(&block(0.5));
    run_phase2_inner_loop(&ctx.scope("here"), &solution(0.5), &target, FIRST_PLAN, score(0.5)).await
}

/// A world where the coder's block scores `scores[k]` at inner step k.
fn scoring<const K: usize>(scores: [f64; K]) -> World {
    World::new(&format!("K={K}"))
        .on("coder", move |call| fenced(&block(scores[index(call, "inner")])))
}

/// What the coder writes where its block shall fail.
const BROKEN_BLOCK: &str = "raise ValueError('no such column')";

/// A debugger that changes the script at every attempt, and never mends it.
fn helpless(call: &Call) -> String {
    fenced(&format!("raise ValueError('still broken after {}')", index(call, "attempt")))
}

/// A rule: `role` does not answer at inner step `inner_step`.
fn refuses(
    role: &'static str,
    inner_step: usize,
) -> impl Fn(&Call) -> Option<Result<Reply, AgentError>> {
    let error = AgentError::NoAnswer { reason: "refused".to_owned(), cost_usd: None };
    fails(role, inner_step, error)
}

/// A rule: asking `role` at inner step `inner_step` gives `error`.
fn fails(
    role: &'static str,
    inner_step: usize,
    error: AgentError,
) -> impl Fn(&Call) -> Option<Result<Reply, AgentError>> {
    move |call| {
        (call.role == role && index(call, "inner") == inner_step).then(|| Err(error.clone()))
    }
}

/// A solution of the inner loop that scores `value`.
fn refined(value: f64) -> SolutionScript {
    SolutionScript { phase: SolutionPhase::Refined, ..solution(value) }
}

/// An attempt that became the best.
fn accepted(plan: &str, value: f64) -> RefinementAttempt {
    RefinementAttempt { was_improvement: true, ..rejected(plan, value) }
}

/// An attempt that scored, but not enough.
fn rejected(plan: &str, value: f64) -> RefinementAttempt {
    RefinementAttempt { score: Some(score(value)), ..failed(plan, &block(value)) }
}

/// An attempt without a score.
fn failed(plan: &str, code: &str) -> RefinementAttempt {
    RefinementAttempt {
        plan: plan.to_owned(),
        score: None,
        code_block: code.to_owned(),
        was_improvement: false,
    }
}

/// The result where nothing was accepted.
fn untouched(attempts: Vec<RefinementAttempt>) -> InnerLoopResult {
    InnerLoopResult {
        best_solution: solution(0.5),
        best_score: score(0.5),
        attempts,
        improved: false,
    }
}

/// Who was asked, at which inner step.
fn asked(calls: &[Call]) -> Vec<(&str, usize)> {
    calls.iter().map(|call| (call.role.as_str(), index(call, "inner"))).collect()
}

// The two agents.

/// REQ-P2I-001, REQ-P2I-008
#[test]
fn coder_and_planner_have_neither_tools_nor_a_schema() {
    let prompts = PromptRegistry::builtin();
    for (agent, description, figure) in [
        (
            AgentType::Coder,
            "Agent that implements a refinement plan on a target code block",
            "Figure 15",
        ),
        (
            AgentType::Planner,
            "Agent that proposes the next refinement strategy using feedback from previous \
             attempts",
            "Figure 16",
        ),
    ] {
        let config = AgentConfig::for_agent(agent);
        let expected = AgentConfig {
            agent_type: agent,
            description: description.to_owned(),
            system_prompt: None,
            tools: None,
            model: None,
            output_schema: None,
            max_turns: None,
        };
        assert_eq!(config, expected);
        assert_eq!(config.to_output_format(), None);

        let template = prompts.get(agent).unwrap();
        assert_eq!(template.figure_ref, figure);
        assert_eq!(
            config.to_agent_definition(&template.template),
            json!({
                "description": description,
                "prompt": template.template,
                "tools": null,
                "model": null,
            })
        );
    }
}

/// REQ-P2I-044
#[tokio::test]
async fn coder_and_planner_are_reached_through_the_agent_port_alone() {
    let world = World::new("K=3");
    refine(&world).await;
    let calls: Vec<Call> = world
        .calls()
        .into_iter()
        .filter(|call| ["coder", "planner"].contains(&call.role.as_str()))
        .collect();
    assert_eq!(
        asked(&calls),
        [("coder", 0), ("planner", 1), ("coder", 1), ("planner", 2), ("coder", 2)]
    );
    for call in &calls {
        assert_eq!(call.tools, Vec::<String>::new(), "{}", call.step);
        assert_eq!((&call.schema, &call.variant), (&None, &None), "{}", call.step);
        assert_eq!(call.model, world.config.model, "{}", call.step);
    }
    // And nothing that the journal knows of was asked elsewhere.
    let steps: Vec<String> = world.calls().into_iter().map(|call| call.step).collect();
    let recorded: Vec<String> =
        world.steps().into_iter().filter(|step| !step.ends_with("/run")).collect();
    assert_eq!(recorded, steps);
}

/// REQ-P2I-002, REQ-P2I-006, REQ-P2I-007
#[tokio::test]
async fn the_coder_is_shown_the_block_the_plan_and_the_rules() {
    let world = World::new("K=1");
    let run = world.open();
    let target = "    rows = frame[{plan}]\n    x = {'a': 1}";
    let plan = "Replace {code_block} by something\nbetter.";
    invoke_coder(&run.ctx(), target, plan).await.unwrap();

    let call = world.calls().remove(0);
    assert_eq!(call.input, json!({"code_block": target, "plan": plan}));
    for shown in [
        "Kaggle grandmaster",
        "refine a block of code",
        "performs better",
        &format!("\n{target}\n"),
        plan,
        "Implement the improvement plan on the code block",
        "Do not remove subsampling if exists.",
        "All variables, including the actual data, are defined earlier",
        "do not introduce dummy variables",
        "One markdown code block",
        "no headings",
    ] {
        assert!(call.prompt.contains(shown), "{shown:?} is not in\n{}", call.prompt);
    }
    // What was filled in is not looked at again.
    assert_eq!(call.prompt.matches("rows = frame").count(), 1, "{}", call.prompt);
    assert_eq!(call.prompt.matches("Replace {code_block} by").count(), 1, "{}", call.prompt);
}

/// REQ-P2I-003
#[tokio::test]
async fn the_coder_needs_a_block_and_a_plan() {
    let world = World::new("K=1");
    let run = world.open();
    for (target, plan, message) in [
        ("", "a plan", "A_coder requires a non-empty code block"),
        (" \n", "a plan", "A_coder requires a non-empty code block"),
        ("x = 1", "", "A_coder requires a non-empty plan"),
        ("x = 1", "\t", "A_coder requires a non-empty plan"),
    ] {
        let error = invoke_coder(&run.ctx(), target, plan).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(world.calls(), []);
}

/// REQ-P2I-004, REQ-P2I-005
#[tokio::test]
async fn the_coder_gives_what_stands_between_the_fences() {
    for (reply, code) in [
        ("```python\nx = 1\ny = 2\n```", Some("x = 1\ny = 2")),
        ("```\nx = 1\n```", Some("x = 1")),
        ("Here you are:\n```python\n    x = 1\n```\nGood luck!", Some("    x = 1")),
        ("```python\nx = 1\n```\nor better\n```python\nx = longer\n```", Some("x = longer")),
        ("```python\nx = 1", Some("x = 1")),
        ("x = 1\n", Some("x = 1")),
        ("I am sorry, but I cannot improve this block.", None),
        ("Sorry", None),
        ("", None),
        (" \n\t\n", None),
        ("```python\n```", None),
        ("```python\n\n  \n```", None),
    ] {
        let world = World::new("K=1").on("coder", move |_| reply.to_owned());
        let run = world.open();
        let given = invoke_coder(&run.ctx(), "x = 0", "set x").await.unwrap();
        assert_eq!(given.as_deref(), code, "{reply:?}");
        assert_eq!(world.warnings().is_empty(), code.is_some(), "{reply:?}");
    }
}

/// REQ-P2I-009, REQ-P2I-014, REQ-P2I-015
#[tokio::test]
async fn the_planner_is_shown_the_block_the_history_and_the_rules() {
    for (world, direction) in [
        (World::new("K=2"), "higher is better"),
        (World::new("K=2").minimizing(), "lower is better"),
    ] {
        refine(&world).await;
        let prompt = world.calls_of("planner").remove(0).prompt;
        for shown in [
            "Kaggle grandmaster",
            "improve a block of code",
            "\nscore = 0.5\n",
            "# Improvement plans you have tried\n\n## Plan: raise the score\n## Score: 0.6\n",
            "must be novel and effective",
            "must differ from every plan tried so far",
            &format!("promise a better score ({direction}) than "),
            "Avoid plans that make the solution run for too long",
            "a hyperparameter search over a very large space",
            "brief outline",
            "in natural language, 3-5 sentences",
            "no headings",
        ] {
            assert!(prompt.contains(shown), "{shown:?} is not in\n{prompt}");
        }
    }
}

/// REQ-P2I-010
#[tokio::test]
async fn the_history_shows_every_plan_with_its_score_in_order() {
    let world = World::new("K=1");
    let run = world.open();
    let plans = ["plan A", "plan B", "plan C with {plans}"].map(str::to_owned);
    let scores = [Some(score(0.82)), None, Some(score(1.0))];
    invoke_planner(&run.ctx(), "x = 0", &plans, &scores).await.unwrap();
    let prompt = world.calls().remove(0).prompt;
    let expected = "# Improvement plans you have tried\n\n\
                    ## Plan: plan A\n## Score: 0.82\n\n\
                    ## Plan: plan B\n## Score: N/A (evaluation failed)\n\n\
                    ## Plan: plan C with {plans}\n## Score: 1.0\n";
    assert!(prompt.contains(expected), "{prompt}");
}

/// REQ-P2I-011, REQ-P2I-013
#[tokio::test]
async fn the_planner_needs_a_block_and_one_score_per_plan() {
    let world = World::new("K=1");
    let run = world.open();
    let plans = ["plan A".to_owned()];
    let none: [String; 0] = [];
    for (target, plans, scores, message) in [
        ("x = 0", &none[..], &[][..], "At least one previous plan is required for A_planner"),
        ("x = 0", &plans[..], &[][..], "A_planner requires one score per plan"),
        ("x = 0", &plans[..], &[None, None][..], "A_planner requires one score per plan"),
        (" ", &plans[..], &[None][..], "A_planner requires a non-empty code block"),
    ] {
        let error = invoke_planner(&run.ctx(), target, plans, scores).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(world.calls(), []);
}

/// REQ-P2I-012, REQ-P2I-013
#[tokio::test]
async fn a_plan_is_the_whole_reply_without_the_blanks_around_it() {
    for (reply, plan) in [
        ("\n  Use more trees. Then stop.\n\n", Some("Use more trees. Then stop.")),
        ("Try:\n```python\nx = 1\n```", Some("Try:\n```python\nx = 1\n```")),
        ("", None),
        (" \n\t", None),
    ] {
        let world = World::new("K=1").on("planner", move |_| reply.to_owned());
        let run = world.open();
        let given = invoke_planner(&run.ctx(), "x = 0", &["plan A".to_owned()], &[None]).await;
        assert_eq!(given.unwrap().as_deref(), plan, "{reply:?}");
    }
}

// The loop.

/// REQ-P2I-016, REQ-P2I-045
#[tokio::test]
async fn the_inner_loop_is_one_function_of_phase_2() {
    let world = World::new("K=4");
    let run = world.open();
    let result: Result<InnerLoopResult, Error> = mle_star_search::phase2::run_phase2_inner_loop(
        &run.ctx(),
        &solution(0.5),
        &code_block(&block(0.5)),
        FIRST_PLAN,
        score(0.5),
    )
    .await;
    // The useful coder of this world does a little better at every step.
    let result = result.unwrap();
    assert_eq!(result.best_score, score(0.603));
    assert_eq!(result.attempts.len(), 4);
}

/// REQ-P2I-017, REQ-P2I-018, REQ-P2I-028
#[tokio::test]
async fn the_first_attempt_carries_out_the_plan_of_the_extractor() {
    let world = scoring([0.7]);
    assert_eq!(
        refine(&world).await,
        InnerLoopResult {
            best_solution: refined(0.7),
            best_score: score(0.7),
            attempts: vec![accepted(FIRST_PLAN, 0.7)],
            improved: true,
        }
    );
    assert_eq!(asked(&world.calls()), [("coder", 0), ("leakage", 0)]);
    assert_eq!(
        world.calls()[0].input,
        json!({"code_block": block(0.5), "plan": "raise the score"})
    );
    assert_eq!(
        world.steps(),
        ["here/inner-0/coder", "here/inner-0/leakage", "here/inner-0/attempt-0/run"]
    );
}

/// REQ-P2I-019, REQ-P2I-048, REQ-P2I-029
#[tokio::test]
async fn the_planner_is_asked_before_every_attempt_but_the_first() {
    let world = scoring([0.6, 0.4, 0.7, 0.5]);
    assert_eq!(
        refine(&world).await,
        InnerLoopResult {
            best_solution: refined(0.7),
            best_score: score(0.7),
            attempts: vec![
                accepted(FIRST_PLAN, 0.6),
                rejected("plan 1", 0.4),
                accepted("plan 2", 0.7),
                rejected("plan 3", 0.5),
            ],
            improved: true,
        }
    );
    assert_eq!(
        asked(&world.calls()),
        [
            ("coder", 0),
            ("leakage", 0),
            ("planner", 1),
            ("coder", 1),
            ("leakage", 1),
            ("planner", 2),
            ("coder", 2),
            ("leakage", 2),
            ("planner", 3),
            ("coder", 3),
            ("leakage", 3),
        ]
    );
    let plans: Vec<_> =
        world.calls_of("coder").iter().map(|call| call.input["plan"].clone()).collect();
    assert_eq!(plans, ["raise the score", "plan 1", "plan 2", "plan 3"]);
}

/// REQ-P2I-046
#[tokio::test]
async fn no_step_begins_before_the_one_before_it_has_ended() {
    let world = World::new("K=3");
    refine(&world).await;
    let steps = world.beginnings_and_ends();
    assert_eq!(steps.len(), 2 * (3 + 4 + 4));
    for pair in steps.chunks(2) {
        assert_eq!((pair[0].0, pair[1].0), ("started", "finished"));
        assert_eq!(pair[0].1, pair[1].1);
    }
}

/// REQ-P2I-020, REQ-P2I-035, REQ-P2I-034
#[tokio::test]
async fn the_planner_sees_all_that_was_tried_and_what_came_of_it() {
    let world = World::new("K=6")
        .on("coder", |call| match index(call, "inner") {
            0 => fenced(&block(0.7)),
            1 => "I would rather not.".to_owned(),
            2 => fenced(BROKEN_BLOCK),
            4 => fenced(&block(0.25)),
            inner_step => panic!("no coder is asked at step {inner_step}"),
        })
        .on("debugger", helpless)
        .on("planner", |call| match index(call, "inner") {
            3 | 5 => String::new(),
            inner_step => format!("plan {inner_step}"),
        });
    let result = refine(&world).await;

    let history = [
        (FIRST_PLAN, json!(0.7)),
        ("plan 1", json!(null)),
        ("plan 2", json!(null)),
        ("[planner failed]", json!(null)),
        ("plan 4", json!(0.25)),
    ];
    let given: Vec<_> = world.calls_of("planner").into_iter().map(|call| call.input).collect();
    let expected: Vec<_> = (1..6)
        .map(|inner_step| {
            let (plans, scores): (Vec<_>, Vec<_>) = history[..inner_step].iter().cloned().unzip();
            json!({"code_block": block(0.5), "plans": plans, "scores": scores})
        })
        .collect();
    assert_eq!(given, expected);

    let last = world.calls_of("planner").remove(4).prompt;
    assert!(
        last.contains(
            "## Plan: plan 2\n## Score: N/A (evaluation failed)\n\n\
             ## Plan: [planner failed]\n## Score: N/A (evaluation failed)\n\n\
             ## Plan: plan 4\n## Score: 0.25\n"
        ),
        "{last}"
    );
    assert_eq!(
        result.attempts,
        [
            accepted(FIRST_PLAN, 0.7),
            failed("plan 1", ""),
            failed("plan 2", BROKEN_BLOCK),
            failed("[planner failed]", ""),
            rejected("plan 4", 0.25),
            failed("[planner failed]", ""),
        ]
    );
}

/// REQ-P2I-021, REQ-P2I-023, REQ-P2I-049, REQ-P2I-050
#[tokio::test]
async fn every_attempt_starts_from_the_block_and_the_solution_that_were_handed_in() {
    let world = scoring([0.6, 0.7, 0.8]);
    let run = world.open();
    let (original, target) = (solution(0.5), code_block(&block(0.5)));
    let result = run_phase2_inner_loop(&run.ctx(), &original, &target, FIRST_PLAN, score(0.5))
        .await
        .unwrap();

    let blocks: Vec<_> = world
        .calls_of("coder")
        .iter()
        .chain(&world.calls_of("planner"))
        .map(|call| call.input["code_block"].clone())
        .collect();
    assert_eq!(blocks, [block(0.5), block(0.5), block(0.5), block(0.5), block(0.5)]);
    let scripts: Vec<String> = world.jobs().into_iter().map(|job| job.script).collect();
    assert_eq!(scripts, [script(0.6), script(0.7), script(0.8)]);
    assert_eq!(result.best_solution.content, script(0.8));
    assert_eq!((original, target), (solution(0.5), code_block(&block(0.5))));
}

/// REQ-P2I-022
#[tokio::test]
async fn the_first_occurrence_of_the_block_is_replaced() {
    let world = World::new("K=1").on("coder", |_| fenced("score = 0.1 + 0.2\nscore = 0.3"));
    let run = world.open();
    let twice = |first: &str| {
        let rest = "score = 0.5\nprint(f\"Final Validation Performance: {score}\")\n";
        format!("import math\n{first}\n{rest}")
    };
    let original = SolutionScript {
        content: twice("score = 0.5"),
        source_model: Some("gbm".to_owned()),
        ..solution(0.5)
    };
    let target = code_block("score = 0.5");
    let result =
        run_phase2_inner_loop(&run.ctx(), &original, &target, FIRST_PLAN, score(0.5)).await;
    assert_eq!(
        SolutionScript { created_at: Timestamp::UNIX_EPOCH, ..result.unwrap().best_solution },
        SolutionScript {
            content: twice("score = 0.1 + 0.2\nscore = 0.3"),
            phase: SolutionPhase::Refined,
            score: Some(score(0.5)),
            ..original
        }
    );
}

/// REQ-P2I-024, REQ-P2I-025
#[tokio::test]
async fn the_best_follows_the_scores_upwards_only() {
    let up = refine(&scoring([0.82, 0.85])).await;
    assert_eq!((up.best_solution, up.best_score), (refined(0.85), score(0.85)));
    assert_eq!(up.attempts, [accepted(FIRST_PLAN, 0.82), accepted("plan 1", 0.85)]);

    let down = refine(&scoring([0.85, 0.82])).await;
    assert_eq!((down.best_solution, down.best_score), (refined(0.85), score(0.85)));
    assert_eq!(down.attempts, [accepted(FIRST_PLAN, 0.85), rejected("plan 1", 0.82)]);

    let below = refine(&scoring([0.3, 0.4])).await;
    assert_eq!(below, untouched(vec![rejected(FIRST_PLAN, 0.3), rejected("plan 1", 0.4)]));
}

/// REQ-P2I-025, REQ-P2I-036, REQ-P2I-047
#[tokio::test]
async fn lower_scores_are_better_where_the_metric_is_minimized() {
    assert_eq!(
        refine(&scoring([0.6, 0.4, 0.45]).minimizing()).await,
        InnerLoopResult {
            best_solution: refined(0.4),
            best_score: score(0.4),
            attempts: vec![
                rejected(FIRST_PLAN, 0.6),
                accepted("plan 1", 0.4),
                rejected("plan 2", 0.45),
            ],
            improved: true,
        }
    );
}

/// REQ-P2I-026, REQ-P2I-036, REQ-P2I-037
#[tokio::test]
async fn a_tie_is_kept_but_is_no_improvement() {
    let world = World::new("K=2")
        .on("coder", |call| fenced(&format!("score = 0.5  # way {}", index(call, "inner"))));
    let result = refine(&world).await;
    let tied = |plan: &str, code: &str| RefinementAttempt {
        code_block: code.to_owned(),
        ..accepted(plan, 0.5)
    };
    assert_eq!(
        result,
        InnerLoopResult {
            best_solution: SolutionScript {
                content: script(0.5).replace("0.5", "0.5  # way 1"),
                ..refined(0.5)
            },
            best_score: score(0.5),
            attempts: vec![
                tied(FIRST_PLAN, "score = 0.5  # way 0"),
                tied("plan 1", "score = 0.5  # way 1"),
            ],
            improved: false,
        }
    );
}

/// REQ-P2I-038, REQ-P2I-037
#[tokio::test]
async fn what_was_handed_in_comes_back_where_nothing_is_as_good() {
    assert_eq!(
        refine(&scoring([0.1, 0.2, 0.3, 0.4])).await,
        untouched(vec![
            rejected(FIRST_PLAN, 0.1),
            rejected("plan 1", 0.2),
            rejected("plan 2", 0.3),
            rejected("plan 3", 0.4),
        ])
    );
}

/// REQ-P2I-024, REQ-P2I-025, REQ-P2I-026, REQ-P2I-027, REQ-P2I-036, REQ-P2I-037, REQ-P2I-047
#[tokio::test]
async fn whatever_the_attempts_score_the_last_of_the_best_is_kept() {
    const OUTCOMES: [Option<f64>; 4] = [None, Some(0.4), Some(0.5), Some(0.6)];
    for direction in [MetricDirection::Maximize, MetricDirection::Minimize] {
        for first in OUTCOMES {
            for second in OUTCOMES {
                check_against_hindsight(direction, [first, second]).await;
            }
        }
    }
}

/// Runs the loop on `outcomes`, and compares it with what looking at all of them at once gives.
#[expect(clippy::float_cmp, reason = "these are copied, never computed")]
async fn check_against_hindsight(direction: MetricDirection, outcomes: [Option<f64>; 2]) {
    let code = |step: usize, value: f64| format!("score = {value:?}  # step {step}");
    let world = World::new("K=2").on("coder", move |call| {
        let step = index(call, "inner");
        outcomes[step].map_or_else(|| "No idea.".to_owned(), |it| fenced(&code(step, it)))
    });
    let world = match direction {
        MetricDirection::Maximize => world,
        MetricDirection::Minimize => world.minimizing(),
    };
    let better = match direction {
        MetricDirection::Maximize => f64::max,
        MetricDirection::Minimize => f64::min,
    };
    // The best of the score that was handed in and the first `count` outcomes.
    let best_of = |count: usize| outcomes[..count].iter().flatten().copied().fold(0.5, better);
    let is_best_so_far = |step: usize| outcomes[step].is_some_and(|it| it == best_of(step + 1));

    let kept = (0..2).rev().find(|step| is_best_so_far(*step));
    let best = best_of(2);
    let expected = InnerLoopResult {
        best_solution: kept.map_or_else(
            || solution(0.5),
            |step| SolutionScript {
                content: script(0.5).replace(&block(0.5), &code(step, best)),
                ..refined(best)
            },
        ),
        best_score: score(best),
        attempts: [FIRST_PLAN, "plan 1"]
            .into_iter()
            .enumerate()
            .map(|(step, plan)| RefinementAttempt {
                plan: plan.to_owned(),
                score: outcomes[step].map(score),
                code_block: outcomes[step].map_or_else(String::new, |it| code(step, it)),
                was_improvement: is_best_so_far(step),
            })
            .collect(),
        improved: best != 0.5,
    };
    assert_eq!(refine(&world).await, expected, "{direction} {outcomes:?}");
    let bests: Vec<Score> = world.refinements().into_iter().map(|(_, best)| best).collect();
    assert_eq!(bests, [1, 2].map(|count| score(best_of(count))), "{direction} {outcomes:?}");
}

impl World {
    /// The score of every inner step that was judged, and the best at that time.
    fn refinements(&self) -> Vec<(Option<Score>, Score)> {
        let refinements = self.events().into_iter().filter_map(|(_, event)| {
            let Event::Refined { score, best, .. } = event else { return None };
            Some((score, best))
        });
        refinements.collect()
    }
}

/// REQ-P2I-042
#[tokio::test]
async fn attempts_that_get_better_and_better_take_the_best_with_them() {
    let world = scoring([0.5, 0.563, 0.588, 0.604]);
    let result = refine(&world).await;
    assert!(result.attempts.iter().all(|attempt| attempt.was_improvement));
    let [a, b, c, d] = [0.5, 0.563, 0.588, 0.604].map(score);
    assert_eq!(world.refinements(), [(Some(a), a), (Some(b), b), (Some(c), c), (Some(d), d)]);
    assert_eq!((result.best_solution, result.improved), (refined(0.604), true));
}

/// REQ-P2I-022
#[tokio::test]
async fn a_refined_solution_is_as_old_as_the_step_that_wrote_it() {
    let world = scoring([0.7]);
    let run = world.open();
    let result = refine_in(&run.ctx()).await.unwrap();
    // C-57 and C-101: a replaced block makes a new script, with the time at which it was recorded.
    let written = world.records().into_iter().find_map(|record| {
        let Record::Finished { key, at, .. } = record else { return None };
        (key.as_str() == "here/inner-0/coder").then_some(at)
    });
    assert_eq!(Some(result.best_solution.created_at), written);
}

// Safety.

/// REQ-P2I-030
#[tokio::test]
async fn every_script_is_checked_for_leakage_before_it_is_run() {
    let world = World::new("K=3").on("coder", |call| match index(call, "inner") {
        1 => fenced(BROKEN_BLOCK),
        inner_step => fenced(&block(0.6 + f64::from(u32::try_from(inner_step).unwrap()) / 10.0)),
    });
    refine(&world).await;
    assert_eq!(
        world.steps(),
        [
            "here/inner-0/coder",
            "here/inner-0/leakage",
            "here/inner-0/attempt-0/run",
            "here/inner-1/planner",
            "here/inner-1/coder",
            "here/inner-1/leakage",
            "here/inner-1/attempt-0/run",
            "here/inner-1/attempt-0/debugger",
            "here/inner-1/attempt-0/leakage",
            "here/inner-1/attempt-1/run",
            "here/inner-2/planner",
            "here/inner-2/coder",
            "here/inner-2/leakage",
            "here/inner-2/attempt-0/run",
        ]
    );
    let checked: Vec<_> =
        world.calls_of("leakage").iter().map(|call| call.input["code"].clone()).collect();
    let ran: Vec<String> = world.jobs().into_iter().map(|job| job.script).collect();
    assert_eq!(checked, ran);
}

/// REQ-P2I-030, REQ-P2I-028
#[tokio::test]
async fn the_corrected_script_is_the_one_that_is_scored_and_kept() {
    let world = World::new("K=1").on("coder", |_| fenced(&block(0.99))).on_call(|call| {
        let reply = match call.variant.as_deref()? {
            "detection" => json!({"answers": [
                {"leakage_status": "Yes Data Leakage", "code_block": block(0.99)}
            ]})
            .to_string(),
            "correction" => fenced(&block(0.6)),
            _ => return None,
        };
        Some(Ok(Reply::text(reply)))
    });
    assert_eq!(
        refine(&world).await,
        InnerLoopResult {
            best_solution: refined(0.6),
            best_score: score(0.6),
            // What the coder wrote, and what came of it.
            attempts: vec![RefinementAttempt {
                code_block: block(0.99),
                ..accepted(FIRST_PLAN, 0.6)
            }],
            improved: true,
        }
    );
    let ran: Vec<String> = world.jobs().into_iter().map(|job| job.script).collect();
    assert_eq!(ran, [script(0.6)]);
}

/// REQ-P2I-031
#[tokio::test]
async fn a_script_that_the_debugger_mends_counts_with_the_score_of_the_mended_one() {
    let world = World::new("K=2")
        .on("coder", |call| match index(call, "inner") {
            0 => fenced(BROKEN_BLOCK),
            _ => fenced(&block(0.6)),
        })
        .on("debugger", |_| fenced(&script(0.8)));
    assert_eq!(
        refine(&world).await,
        InnerLoopResult {
            best_solution: refined(0.8),
            best_score: score(0.8),
            attempts: vec![
                RefinementAttempt {
                    code_block: BROKEN_BLOCK.to_owned(),
                    ..accepted(FIRST_PLAN, 0.8)
                },
                rejected("plan 1", 0.6),
            ],
            improved: true,
        }
    );
    assert_eq!(world.calls_of("debugger").len(), 1);
}

/// REQ-P2I-027, REQ-P2I-031, REQ-P2I-035
#[tokio::test]
async fn an_attempt_that_cannot_be_mended_has_no_score() {
    let world = World::new("K=2 max_debug_attempts=2")
        .on("coder", |call| match index(call, "inner") {
            0 => fenced(BROKEN_BLOCK),
            _ => fenced(&block(0.7)),
        })
        .on("debugger", helpless);
    let result = refine(&world).await;
    assert_eq!(result.attempts, [failed(FIRST_PLAN, BROKEN_BLOCK), accepted("plan 1", 0.7)]);
    assert_eq!(result.best_solution, refined(0.7));
    assert_eq!(world.calls_of("debugger").len(), 2);
    assert_eq!(world.jobs().len(), 3 + 1);
    assert_eq!(
        world.calls_of("planner")[0].input,
        json!({"code_block": block(0.5), "plans": [FIRST_PLAN], "scores": [null]})
    );
}

/// REQ-P2I-027, REQ-P2I-041
#[tokio::test]
async fn a_script_without_a_usable_score_is_a_failed_attempt() {
    for printed in [
        "",
        "done\n",
        "Final Validation Performance: nan\n",
        "Final Validation Performance: inf\n",
        "Final Validation Performance: -inf\n",
        "Final Validation Performance: 1e999\n",
        "Final Validation Performance: 1,234.5\n",
        "Final Validation Performance: None\n",
    ] {
        let world = scoring([0.9])
            .on("debugger", |_| "I see nothing wrong.".to_owned())
            .on_job(move |_| Some(Ok(outcome(Ended::Exited { code: 0 }, printed, ""))));
        let result = refine(&world).await;
        assert_eq!(result, untouched(vec![failed(FIRST_PLAN, &block(0.9))]), "{printed:?}");
        assert_eq!(world.calls_of("debugger").len(), 3, "{printed:?}");
        assert_eq!(world.jobs().len(), 1, "{printed:?}");
    }
}

/// REQ-P2I-027, REQ-P2I-031
#[tokio::test]
async fn a_score_printed_by_a_script_that_failed_does_not_count() {
    let printed = "Final Validation Performance: 0.9\n";
    let traceback =
        "Traceback (most recent call last):\n  File \"solution.py\", line 3\nKeyError: 1";
    for (ended, stderr) in [
        (Ended::Exited { code: 1 }, ""),
        (Ended::Exited { code: 0 }, traceback),
        (Ended::Signaled { signal: 9 }, ""),
        (Ended::TimedOut { after_seconds: 60.0 }, ""),
    ] {
        let world = scoring([0.9])
            .on("debugger", |call| fenced(call.input["code"].as_str().unwrap()))
            .on_job(move |_| Some(Ok(outcome(ended, printed, stderr))));
        let result = refine(&world).await;
        assert_eq!(result, untouched(vec![failed(FIRST_PLAN, &block(0.9))]), "{ended:?}");
    }
}

/// REQ-P2I-031
#[tokio::test]
async fn a_script_that_runs_out_of_time_is_mended_like_any_other() {
    let world = scoring([0.9]).on("debugger", |_| fenced(&script(0.7))).on_job(|job| {
        (job.script == script(0.9))
            .then(|| Ok(outcome(Ended::TimedOut { after_seconds: 90.0 }, "", "epoch 1\n")))
    });
    let result = refine(&world).await;
    assert_eq!((result.best_solution, result.best_score), (refined(0.7), score(0.7)));
    assert_eq!(
        world.calls_of("debugger")[0].input["bug"],
        "Traceback (most recent call last):\nTimeoutError: exceeded 90 s\n\n\
         The script wrote:\nepoch 1"
    );
}

// What goes wrong with the agents.

/// REQ-P2I-032, REQ-P2I-041
#[tokio::test]
async fn an_attempt_without_code_is_recorded_and_the_next_one_made() {
    for reply in ["I would rather not.", "", " \n", "```python\n```", "```\n\n```"] {
        let world = World::new("K=3").on("coder", move |call| match index(call, "inner") {
            1 => reply.to_owned(),
            _ => fenced(&block(0.6)),
        });
        check_skipped(&world, failed("plan 1", "")).await;
        let warned = format!("A_coder wrote no code: {reply}");
        assert!(world.warnings().contains(&warned), "{:?}", world.warnings());
    }
}

/// REQ-P2I-032, REQ-P2I-041
#[tokio::test]
async fn a_coder_that_refuses_fails_its_attempt_only() {
    let world = scoring([0.6, 0.6, 0.6]).on_call(refuses("coder", 1));
    check_skipped(&world, failed("plan 1", "")).await;
    assert!(world.warnings().contains(&"A_coder gave no answer: refused".to_owned()));
}

/// REQ-P2I-034, REQ-P2I-041
#[tokio::test]
async fn an_attempt_without_a_plan_is_recorded_and_the_next_one_made() {
    for reply in ["", " \n\t"] {
        let world =
            scoring([0.6, 0.6, 0.6]).on("planner", move |call| match index(call, "inner") {
                1 => reply.to_owned(),
                _ => "plan 2".to_owned(),
            });
        check_skipped(&world, failed("[planner failed]", "")).await;
        assert_eq!(world.warnings(), ["A_planner gave no plan; this attempt is skipped"]);
        assert_eq!(world.calls_of("coder").len(), 2);
    }
}

/// REQ-P2I-034, REQ-P2I-041
#[tokio::test]
async fn a_planner_that_refuses_fails_its_attempt_only() {
    let world = scoring([0.6, 0.6, 0.6]).on_call(refuses("planner", 1));
    check_skipped(&world, failed("[planner failed]", "")).await;
    assert!(world.warnings().contains(&"A_planner gave no answer: refused".to_owned()));
}

/// The second of three attempts is `skipped`, and the others score 0.6.
async fn check_skipped(world: &World, skipped: RefinementAttempt) {
    let history = json!([FIRST_PLAN, skipped.plan]);
    assert_eq!(
        refine(world).await,
        InnerLoopResult {
            best_solution: refined(0.6),
            best_score: score(0.6),
            attempts: vec![accepted(FIRST_PLAN, 0.6), skipped, accepted("plan 2", 0.6)],
            improved: true,
        }
    );
    let last = world.calls_of("planner").pop().unwrap().input;
    assert_eq!((&last["plans"], &last["scores"]), (&history, &json!([0.6, null])));
    // Neither a replacement nor an evaluation was tried.
    assert_eq!(world.jobs().len(), 2);
    assert_eq!(world.calls_of("leakage").len(), 2);
}

/// REQ-P2I-033, REQ-P2I-041
#[tokio::test]
async fn a_block_that_is_not_in_the_solution_fails_the_attempt_and_keeps_the_code() {
    let world = scoring([0.8, 0.9]);
    let run = world.open();
    let target = code_block("depth = 3");
    let result =
        run_phase2_inner_loop(&run.ctx(), &solution(0.5), &target, FIRST_PLAN, score(0.5)).await;
    assert_eq!(
        result.unwrap(),
        untouched(vec![failed(FIRST_PLAN, &block(0.8)), failed("plan 1", &block(0.9))])
    );
    let warned = "the code block is not in the script: `depth = 3`";
    assert_eq!(world.warnings(), [warned, warned]);
    assert_eq!((world.jobs().len(), world.calls_of("leakage").len()), (0, 0));
    assert_eq!(world.calls_of("planner")[0].input["scores"], json!([null]));
}

/// REQ-P2I-003, REQ-P2I-041
#[tokio::test]
async fn an_empty_plan_from_the_extractor_is_a_failed_attempt() {
    for plan in ["", "  \n"] {
        let world = scoring([0.8, 0.9]);
        let run = world.open();
        let target = code_block(&block(0.5));
        let result =
            run_phase2_inner_loop(&run.ctx(), &solution(0.5), &target, plan, score(0.5)).await;
        assert_eq!(result.unwrap().attempts, [failed(plan, ""), accepted("plan 1", 0.9)]);
        assert_eq!(world.warnings(), ["A_coder requires a non-empty plan"]);
        assert_eq!(asked(&world.calls()), [("planner", 1), ("coder", 1), ("leakage", 1)]);
    }
}

/// REQ-P2I-003, REQ-P2I-011, REQ-P2I-041
#[tokio::test]
async fn an_empty_block_fails_every_attempt_but_not_the_loop() {
    for target in ["", " \n"] {
        let world = scoring([0.8, 0.9]);
        let run = world.open();
        let target = code_block(target);
        // C-59: inside a loop, an unmet precondition is the agent's failure.
        let result =
            run_phase2_inner_loop(&run.ctx(), &solution(0.5), &target, FIRST_PLAN, score(0.5))
                .await
                .unwrap();
        assert_eq!(result.attempts.len(), 2);
        assert_eq!(result, untouched(result.attempts.clone()));
        assert!(result.attempts.iter().all(|attempt| attempt.score.is_none()));
        assert_eq!(world.jobs().len(), 0);
    }
}

/// REQ-P2I-041, REQ-P2I-048, REQ-P2I-028, REQ-P2I-038
#[tokio::test]
async fn a_loop_in_which_everything_fails_gives_back_what_it_was_given() {
    let garbage = World::new("K=4").on("coder", |_| "%$§ garbage !!".to_owned());
    assert_eq!(
        refine(&garbage).await,
        untouched(vec![
            failed(FIRST_PLAN, ""),
            failed("plan 1", ""),
            failed("plan 2", ""),
            failed("plan 3", ""),
        ])
    );

    let refusing = World::new("K=4").on_call(|call| {
        let refused = AgentError::NoAnswer { reason: call.role.clone(), cost_usd: None };
        Some(Err(refused))
    });
    assert_eq!(
        refine(&refusing).await,
        untouched(vec![
            failed(FIRST_PLAN, ""),
            failed("[planner failed]", ""),
            failed("[planner failed]", ""),
            failed("[planner failed]", ""),
        ])
    );

    let broken = World::new("K=4 max_debug_attempts=1")
        .on("coder", |_| fenced(BROKEN_BLOCK))
        .on("debugger", |_| String::new())
        .on("leakage", |_| String::new());
    assert_eq!(
        refine(&broken).await,
        untouched(vec![
            failed(FIRST_PLAN, BROKEN_BLOCK),
            failed("plan 1", BROKEN_BLOCK),
            failed("plan 2", BROKEN_BLOCK),
            failed("plan 3", BROKEN_BLOCK),
        ])
    );
}

/// REQ-P2I-041
#[tokio::test]
async fn an_agent_that_cannot_be_reached_stops_the_loop_and_records_nothing() {
    for (role, steps) in [("planner", 3), ("coder", 4), ("leakage", 5)] {
        let gone = AgentError::Unauthorized { reason: "overloaded".to_owned() };
        let world = scoring([0.6, 0.7]).on_call(fails(role, 1, gone));
        let run = world.open();
        let error = refine_in(&run.ctx()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("could not ask the agent at step `here/inner-1/{role}`")
        );
        assert!(error.stops_the_run());
        assert_eq!(world.steps().len(), steps, "{role}: {:?}", world.steps());
        // The first attempt is on record; of the second, no verdict and no warning.
        assert_eq!(world.refinements(), [(Some(score(0.6)), score(0.6))], "{role}");
        assert_eq!(world.warnings(), Vec::<String>::new(), "{role}");
    }
}
