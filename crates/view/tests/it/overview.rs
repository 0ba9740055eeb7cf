//! The one fold over the records.

use mle_star_search::event::{Event, Output, Record};
use mle_star_search::models::Score;
use mle_star_view::{Condition, LaneState, Overview, Solution, State, TroubleKind, Work};
use serde_json::json;

use crate::fixture::{asking, rent, until, with_events};

fn line(solution: &Solution) -> String {
    let score = solution.score.map_or_else(|| "-".to_owned(), |it| it.to_string());
    format!(
        "{} · {} · {score} · ${:.2} · from {}",
        solution.id,
        solution.outcome.in_words(),
        solution.cost_usd,
        solution.parents.join(" + "),
    )
}

/// REQ-OR-037, REQ-OR-038
#[test]
fn the_sums_of_a_view_are_those_that_the_run_came_to() {
    let records = rent();
    let overview = Overview::of(&records);
    let mut summaries = records.iter().filter_map(|record| match record {
        Record::Happened { event: Event::Summarized { summary }, .. } => Some(summary),
        _ => None,
    });
    let summary = summaries.next_back().unwrap();
    assert_eq!(overview.tally.costs, summary.costs);
    let durations = overview.durations();
    assert_eq!(durations.phase2_duration_seconds, summary.durations.phase2_duration_seconds);
    let late = durations.total_duration_seconds - summary.durations.total_duration_seconds;
    assert!((0.0..0.1).contains(&late), "only the summary itself comes later: {late}");
    assert_eq!(overview.lineage, summary.lineage);
}

/// REQ-OR-039
#[test]
fn the_submission_is_traced_back_to_the_models() {
    let overview = Overview::of(&rent());
    insta::assert_snapshot!(
        overview.ancestors().into_iter().map(line).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn every_script_that_was_tried_is_in_the_tree() {
    let overview = Overview::of(&rent());
    let tree: Vec<String> = overview.solutions().iter().map(line).collect();
    insta::assert_snapshot!(tree.join("\n"));
    assert!(overview.solutions().iter().all(|it| it.ended_seconds.is_some()));
}

#[test]
fn the_ablation_ledger_says_what_each_part_contributes() {
    let overview = Overview::of(&rent());
    let lines = overview.studies().iter().map(|study| {
        let effects = study
            .effects
            .iter()
            .map(|effect| format!("{} {:+.2}", effect.component, effect.effect.unwrap_or(0.0)));
        format!(
            "path {} outer {}: {} · {} -> {}",
            study.path,
            study.outer,
            effects.collect::<Vec<_>>().join(", "),
            study.before.unwrap(),
            study.after.unwrap(),
        )
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_run_can_be_looked_at_after_any_record() {
    let mut overview = Overview::default();
    assert_eq!(overview.state(), State::Empty);
    for record in &rent() {
        overview.apply(record);
        let mut stopped = overview.clone();
        let at_rest = stopped.settle(Work::Rests);
        let is_over = stopped.state() == State::Finished;
        let expected = match is_over {
            true => (Condition::Finished, Condition::Finished),
            false => (Condition::Stopped, Condition::Running),
        };
        assert_eq!((at_rest, overview.clone().settle(Work::GoesOn)), expected);
        assert!(stopped.open_steps().is_empty());
        assert!(stopped.lanes().iter().all(|lane| lane.state != LaneState::Working));
        serde_json::to_string(&stopped.whole()).unwrap();
    }
    assert_eq!(overview.state(), State::Finished);
    assert!(overview.open_steps().is_empty());
}

#[test]
fn a_script_that_runs_is_shown_with_its_limit() {
    let records = until(|record| {
        matches!(record, Record::Started { key, .. }
            if key.as_str() == "phase2/path-0/outer-0/study/attempt-0/run")
    });
    let overview = Overview::of(&records);
    let step = overview.open_steps().last().unwrap();
    assert_eq!((step.lane.as_str(), step.limit_seconds), ("path-0", Some(600.0)));
    let lane = overview.lanes().iter().find(|it| it.name == "path-0").unwrap();
    assert_eq!((lane.state, lane.step.as_str()), (LaneState::Working, step.key.as_str()));
}

#[test]
fn the_best_of_a_path_is_never_worse_than_what_it_began_with() {
    let first = |record: &Record| match record {
        Record::Happened { key, event: Event::Refined { score, accepted, .. }, .. }
            if key.as_str() == "phase2/path-0/outer-0/inner-0" =>
        {
            Some((*score, *accepted))
        }
        _ => None,
    };
    let records = until(|record| first(record).is_some());
    assert_eq!(records.last().and_then(first), Some((Score::new(129.27), false)));
    let overview = Overview::of(&records);
    let lane = overview.lanes().iter().find(|it| it.name == "path-0").unwrap();
    let trend: Vec<Score> = lane.trend.iter().map(|it| it.score).collect();
    let began = Score::new(129.21);
    assert_eq!((lane.best, trend), (began, began.into_iter().collect()));
}

#[test]
fn a_script_that_waits_for_the_machine_has_not_begun_to_run() {
    let opened = until(|record| matches!(record, Record::Opened { .. }));
    let Some(Record::Opened { header, .. }) = opened.first() else { panic!("no beginning") };
    let slots = header.config.num_parallel_solutions.min(header.machine.cores);
    assert_eq!(slots, 2, "what follows is for two");
    let at = |second: i64| opened[0].at() + jiff::SignedDuration::from_secs(second);
    let begin = |key: &str, second| -> Record {
        let record = json!({"record": "started", "key": key, "at": at(second), "begun": {"what": "run",
            "lane": key, "script": "a.py", "characters": 9, "time_limit_seconds": 60.0}});
        serde_json::from_value(record).unwrap()
    };
    let mut overview = Overview::of(&opened);
    for (key, second) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        overview.apply(&begin(key, second));
    }
    let since = |overview: &Overview| -> Vec<(String, Option<f64>)> {
        let steps = overview.open_steps().iter();
        steps.map(|it| (it.key.clone(), it.runs_since_seconds)).collect()
    };
    let step = |key: &str, since: Option<f64>| (key.to_owned(), since);
    assert_eq!(
        since(&overview),
        [step("a", Some(1.0)), step("b", Some(2.0)), step("c", None), step("d", None)]
    );
    let end = json!({"record": "abandoned", "key": "b", "at": at(9)});
    overview.apply(&serde_json::from_value(end).unwrap());
    assert_eq!(since(&overview), [step("a", Some(1.0)), step("c", Some(9.0)), step("d", None)]);
}

#[test]
fn a_call_that_was_in_flight_at_a_kill_is_taken_to_have_cost_something() {
    let records = asking("phase2/path-0/outer-1/ablation");
    let paid: f64 = records.iter().filter_map(|it| it.finished()?.1.cost_usd()).sum();
    let mut overview = Overview::of(&records);
    assert!((overview.tally.cost_usd().unwrap() - paid).abs() < 1e-9);
    let in_flight: Vec<String> = overview.open_steps().iter().map(|it| it.key.clone()).collect();
    overview.settle(Work::Rests);
    let costs = &overview.tally.costs;
    let calls = in_flight.iter().filter(|it| !it.ends_with("/run")).count();
    assert!(calls > 0 && costs.estimated_cost_usd > 0.15, "{in_flight:?} {costs:?}");
    assert!((costs.total_cost_usd - paid - costs.estimated_cost_usd).abs() < 1e-9);
    overview.settle(Work::Rests);
    assert!((overview.tally.cost_usd().unwrap() - paid - costs_of(&records)).abs() < 1e-9);
}

/// What the calls are estimated at that are in flight at the end.
fn costs_of(records: &[Record]) -> f64 {
    let mut overview = Overview::of(records);
    overview.settle(Work::Rests);
    overview.tally.costs.estimated_cost_usd
}

#[test]
fn what_is_told_again_after_new_limits_changes_nothing() {
    let records = rent();
    let once = Overview::of(&records);
    let mut again = once.clone();
    let (at, config) = (records.last().unwrap().at(), &once.subject.as_ref().unwrap().settings);
    again.apply(&Record::Resumed { at, containment: None });
    again.apply(&Record::Settings { at, config: config.clone() });
    for record in &records {
        if let Record::Happened { key, index, event, .. } = record {
            let (key, index, event) = (key.clone(), *index, event.clone());
            again.apply(&Record::Happened { at, key, index, event });
        }
    }
    assert_eq!(again.solutions(), once.solutions());
    assert_eq!(again.studies(), once.studies());
    assert_eq!(again.phases(), once.phases());
    assert_eq!(again.troubles, once.troubles);
    let points = |overview: &Overview| -> Vec<usize> {
        overview.lanes().iter().map(|lane| lane.trend.len()).collect()
    };
    assert_eq!(points(&again), points(&once));
}

#[test]
fn failures_and_what_stands_in_for_them_are_kept_apart_from_warnings() {
    let records = with_events(rent(), |event| match event {
        Event::PathEnded { path: 1, failure, .. } => *failure = Some("no disk".to_owned()),
        Event::Evaluated { score, error, .. } if *score == Score::new(171.84) => {
            *score = None;
            *error = Some("ValueError: no".to_owned());
        }
        _ => {}
    });
    let overview = Overview::of(&records);
    let kinds: Vec<(TroubleKind, &str)> =
        overview.troubles.iter().map(|it| (it.kind, it.place.as_str())).collect();
    assert_eq!(
        kinds,
        [(TroubleKind::Failure, "phase1/candidate-2"), (TroubleKind::Fallback, "phase2/path-1"),]
    );
}

#[test]
fn no_text_is_kept_that_is_longer_than_a_view_would_show() {
    let long = "x".repeat(1 << 20);
    let mut records = with_events(rent(), |event| match event {
        Event::Refined { plan, .. } | Event::Ensembled { plan, .. } => plan.clone_from(&long),
        Event::Retrieved { models } => models.iter_mut().for_each(|it| it.clone_from(&long)),
        _ => {}
    });
    for record in &mut records {
        if let Record::Finished { output: Output::Asked { reply, .. }, .. } = record {
            reply.text.clone_from(&long);
        }
    }
    let overview = Overview::of(&records);
    let kept = serde_json::to_string(&overview.whole()).unwrap().len();
    assert!(kept < 300_000, "{kept} bytes");
}
