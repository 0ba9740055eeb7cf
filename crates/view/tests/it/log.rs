//! What a log says of a run.

use std::collections::BTreeSet;

use mle_star_search::block::Match;
use mle_star_search::event::{Event, Phase, Record};
use mle_star_search::models::{ContaminationVerdict, LogLevel, Score};
use mle_star_view::log::{Entry, Log, is_logged};

use crate::fixture::{rent, with_events};

fn log(records: &[Record]) -> Vec<Entry> {
    let mut log = Log::default();
    records.iter().flat_map(|record| log.entries(record)).collect()
}

/// The levels of all lines with this message, and the fields that each of them has.
#[track_caller]
fn lines(entries: &[Entry], message: &str) -> (LogLevel, BTreeSet<String>) {
    let found: Vec<&Entry> = entries.iter().filter(|it| it.message == message).collect();
    let first = found.first().unwrap_or_else(|| panic!("no line `{message}`"));
    assert!(found.iter().all(|it| it.level == first.level), "{message}");
    let fields = |entry: &Entry| entry.fields.keys().cloned().collect::<BTreeSet<String>>();
    let common = found.iter().map(|it| fields(it));
    (first.level, common.reduce(|a, b| &a & &b).unwrap_or_default())
}

/// Checks that every line of `table`, level · message · fields, is in the log.
#[track_caller]
fn check(entries: &[Entry], table: &str) {
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let [level, message, wanted] = row.split(" · ").collect::<Vec<_>>()[..] else {
            panic!("`{row}` is no row");
        };
        let (found, fields) = lines(entries, message);
        assert_eq!(serde_json::to_value(found).unwrap(), level, "{message}");
        let wanted: BTreeSet<String> = wanted.split_whitespace().map(str::to_owned).collect();
        let missing: Vec<_> = wanted.difference(&fields).collect();
        assert!(missing.is_empty(), "`{message}` lacks {missing:?}: {fields:?}");
    }
}

/// The same run with an event in the place of the first that is like `at`.
fn instead(at: impl Fn(&Event) -> bool, new: Vec<Event>) -> Vec<Record> {
    let mut records = rent();
    let position = records
        .iter()
        .position(|record| matches!(record, Record::Happened { event, .. } if at(event)))
        .unwrap();
    let Record::Happened { at, key, index, .. } = records.remove(position) else {
        panic!("an event")
    };
    let events =
        new.into_iter().map(|event| Record::Happened { at, key: key.clone(), index, event });
    records.splice(position..position, events);
    records
}

/// REQ-P1-038, REQ-SF-041
#[test]
fn phase_1_is_logged_from_its_start_to_its_score() {
    check(
        &log(&rent()),
        "INFO · === Phase 1: Initial Solution Generation === · competition_id M
         INFO · retrieval complete · count models
         INFO · A_init invocation start · candidate model_name
         INFO · A_init invocation complete · candidate code_length
         INFO · evaluation complete · name score duration_seconds is_error
         INFO · candidates sorted · candidates
         INFO · A_merger invocation start · merge base_score reference_model
         INFO · merge result · index base_score score accepted
         INFO · merge break · index reason
         INFO · A_data invocation start · initial_solution_length
         INFO · data check complete · modified
         INFO · leakage check start · code_length
         INFO · A_leakage invocation complete · answers leakage_found
         INFO · A_leakage (leakage correction) invocation start · code_block_length
         INFO · A_leakage (leakage correction) invocation complete · code_length
         INFO · leakage check complete · leakage_found content_changed
         WARNING · execution error · exit_code traceback error timed_out
         INFO · debug start · attempt bug code_length
         INFO · debug result · attempts fixed
         INFO · Phase 1: Initial Solution Generation complete · score duration_seconds merges",
    );
    let failed = instead(
        |event| matches!(event, Event::Ranked { .. }),
        vec![Event::PhaseFailed { phase: Phase::Phase1, reason: "all failed".to_owned() }],
    );
    check(&log(&failed), "ERROR · Phase 1: Initial Solution Generation failed · reason models");
}

/// REQ-P2O-037
#[test]
fn the_outer_loop_is_logged_step_by_step() {
    check(
        &log(&rent()),
        "INFO · outer step start · path outer_step best_score summaries
         INFO · A_abl invocation start · solution_script_length previous_ablations_count
         INFO · A_abl invocation complete · code_length
         INFO · ablation execution start · script timeout_seconds
         INFO · ablation execution complete · exit_code output_length duration_seconds
         INFO · A_summarize invocation start · ablation_code_length raw_result_length
         INFO · A_summarize invocation complete · summary_length
         INFO · A_extractor invocation start · ablation_summary_length solution_script_length previous_code_blocks_count
         INFO · A_extractor invocation complete · plans code_block_length
         INFO · code block validation result · passed match_method
         INFO · inner loop handoff · code_block_length plan
         INFO · inner loop return · best_score improved
         INFO · outer step complete · outer_step best_score duration_seconds
         INFO · outer loop complete · steps best_score duration_seconds",
    );
    let missing = Event::BlockChecked { matched: None, attempt: 1, begins: "x = 1".to_owned() };
    let skipped = Event::OuterStepSkipped { reason: "no block".to_owned() };
    let records =
        instead(|event| matches!(event, Event::BlockChecked { .. }), vec![missing, skipped]);
    check(
        &log(&records),
        "WARNING · code block validation failure · code_block attempt
         WARNING · outer step skipped · outer_step reason",
    );
    let whitespace = Event::BlockChecked {
        matched: Some(Match::TrailingWhitespace),
        attempt: 0,
        begins: "x".to_owned(),
    };
    let records = instead(|event| matches!(event, Event::BlockChecked { .. }), vec![whitespace]);
    let found = log(&records);
    let methods: BTreeSet<&str> =
        found.iter().filter_map(|it| it.fields.get("match_method")?.as_str()).collect();
    assert_eq!(methods, BTreeSet::from(["exact", "trailing_whitespace"]));
}

/// REQ-P2O-037
#[test]
fn a_study_that_fails_is_a_warning() {
    let mut records = rent();
    for record in &mut records {
        if let Record::Finished { key, output, .. } = record
            && key.as_str().contains("/study/")
            && let mle_star_search::event::Output::Ran { outcome, .. } = output
        {
            outcome.ended = mle_star_exec::Ended::Exited { code: 1 };
            outcome.stderr.text =
                "Traceback (most recent call last):\n  File x\nValueError: no".to_owned();
        }
    }
    check(&log(&records), "WARNING · ablation execution error · exit_code traceback error");
}

/// REQ-P2I-043
#[test]
fn the_inner_loop_is_logged_step_by_step() {
    check(
        &log(&rent()),
        "INFO · inner loop start · code_block_length plan best_score K
         INFO · A_coder invocation start · inner_step plan
         INFO · A_coder invocation complete · inner_step code_length
         INFO · A_planner invocation start · inner_step plans_count
         INFO · A_planner invocation complete · inner_step plan
         DEBUG · code block replacement success · inner_step original_length new_length
         INFO · leakage check start · code_length
         INFO · leakage check complete · leakage_found content_changed
         INFO · evaluation start · content_length
         INFO · evaluation complete · score is_error duration_seconds
         INFO · best score updated · inner_step old_best_score new_best_score
         INFO · inner loop complete · attempts successful_evaluations best_score improved",
    );
    let old = log(&rent());
    let first = old.iter().find(|it| it.message == "best score updated").unwrap();
    assert_eq!(first.fields["old_best_score"], 129.21);

    // An attempt that came to no evaluation, with the reason that was given for it.
    let mut records = rent();
    let place = "phase2/path-0/outer-0/inner-1";
    records.retain(|record| {
        !matches!(record, Record::Happened { key, event: Event::Evaluated { .. }, .. }
            if key.as_str() == place)
    });
    for record in &mut records {
        if let Record::Happened { key, event, .. } = record
            && key.as_str() == place
        {
            match event {
                Event::Refined { score, accepted, .. } => (*score, *accepted) = (None, false),
                Event::BlockReplaced { .. } => {
                    *event = Event::Warned { message: "A_coder wrote no code: hm".to_owned() };
                }
                _ => {}
            }
        }
    }
    let found = log(&records);
    check(
        &found,
        "WARNING · A_coder wrote no code: hm · inner_step
         WARNING · attempt skipped · inner_step reason",
    );
    let skipped = found.iter().find(|it| it.message == "attempt skipped").unwrap();
    assert_eq!(skipped.fields["reason"], "A_coder wrote no code: hm");
}

/// REQ-P3-039
#[test]
fn phase_3_is_logged_from_its_start_to_its_score() {
    check(
        &log(&rent()),
        "INFO · === Phase 3: Ensemble === · L R competition_id
         INFO · ensemble round start · round history_size
         INFO · A_ens_planner invocation start · round plans_count
         INFO · A_ens_planner invocation complete · round plan
         INFO · A_ensembler invocation start · round plan
         INFO · A_ensembler invocation complete · round code_length
         INFO · leakage check start · code_length
         INFO · leakage check complete · leakage_found content_changed
         INFO · evaluation start · content_length
         INFO · evaluation complete · score is_error duration_seconds
         INFO · best selection · best_round best_score successful_rounds
         INFO · Phase 3: Ensemble complete · score best_round duration_seconds rounds_attempted",
    );
    let skipped = Event::PhaseSkipped { phase: Phase::Phase3, best: Score::new(66.06) };
    let records = instead(
        |event| matches!(event, Event::PhaseStarted { phase: Phase::Phase3 }),
        vec![skipped],
    );
    check(&log(&records), "INFO · Phase 3: Ensemble skipped · score competition_id");

    let failing = with_events(rent(), |event| match event {
        Event::Ensembled { score, .. } => *score = None,
        Event::Evaluated { score, error, .. } if score.is_some_and(|it| it.get() < 66.0) => {
            *score = None;
            *error = Some("ValueError: no".to_owned());
        }
        _ => {}
    });
    let warned =
        Event::Warned { message: "the ensemble failed: no; its plan was: mean".to_owned() };
    let mut found = log(&failing);
    found.extend(log(&instead(|event| matches!(event, Event::Ensembled { .. }), vec![warned])));
    check(
        &found,
        "WARNING · all rounds failed · R fallback_score
         WARNING · the ensemble failed: no; its plan was: mean · round",
    );
}

/// REQ-FN-032, REQ-FN-042
#[test]
fn finalization_is_logged_from_its_start_to_its_result() {
    let checked = with_events(rent(), |event| match event {
        Event::ContaminationChecked { verdicts, overall } => {
            *verdicts = vec![Some(ContaminationVerdict::Novel), Some(ContaminationVerdict::Same)];
            *overall = Some(ContaminationVerdict::Same);
        }
        Event::SubsamplingChecked { before, after } => (*before, *after) = (Some(40), Some(20)),
        _ => {}
    });
    let found = log(&checked);
    check(
        &found,
        "INFO · === Finalization === · competition_id
         INFO · solution selected · phase score
         INFO · A_test (subsampling extract) invocation start · final_solution_length
         INFO · subsampling extraction result · found code_block_length
         INFO · subsampling removal result · original_length new_length replaced
         INFO · A_test invocation start · final_solution_length
         INFO · A_test invocation complete · code_length
         INFO · evaluation start · content_length timeout_seconds
         INFO · execution complete · exit_code duration_seconds submission
         INFO · submission verified · exists rows
         INFO · contamination check complete · references verdicts overall
         INFO · final result built · phase submission duration_seconds",
    );
    let verdict = found.iter().find(|it| it.message == "contamination check complete").unwrap();
    assert_eq!(verdict.fields["verdicts"], serde_json::json!(["Novel", "Same"]));
    assert_eq!(
        (&verdict.fields["references"], &verdict.fields["overall"]),
        (&2.into(), &"Same".into())
    );
    check(&log(&rent()), "INFO · contamination check skipped: no references · references");
}

/// REQ-OR-037, REQ-OR-038, REQ-OR-039, REQ-OR-047
#[test]
fn the_end_of_a_run_is_logged_with_its_sums_and_its_lineage() {
    check(
        &log(&rent()),
        "INFO · run opened · competition_id metric agents version sandbox
         INFO · === Phase 2: Refinement === · competition_id L T K
         INFO · cost summary · phase1_cost_usd phase2_per_path_cost_usd total_cost_usd
         INFO · duration summary · phase1_duration_seconds total_duration_seconds
         INFO · solution lineage · lineage
         DEBUG · response · step response",
    );
}

#[test]
fn a_level_lets_through_what_matters_as_much_or_more() {
    let levels = [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error];
    for (number, least) in levels.into_iter().enumerate() {
        let through: Vec<LogLevel> =
            levels.into_iter().filter(|level| is_logged(*level, least)).collect();
        assert_eq!(through, levels[number..]);
    }
}

#[test]
fn no_line_of_a_log_is_long() {
    let long = "x".repeat(1 << 20);
    let records = with_events(rent(), |event| match event {
        Event::Refined { plan, .. } | Event::Ensembled { plan, .. } => plan.clone_from(&long),
        _ => {}
    });
    let longest = log(&records)
        .iter()
        .filter(|it| it.level != LogLevel::Debug)
        .map(|it| serde_json::to_string(it).unwrap().len())
        .max();
    assert!(longest.unwrap() < 3000, "{longest:?}");
}
