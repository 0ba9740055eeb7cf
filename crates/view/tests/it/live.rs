//! What stands in a terminal while a run goes on.

use jiff::{SignedDuration, Timestamp};
use mle_star_search::event::{Begun, Record};
use mle_star_view::{Colour, Overview, Window, live, preparing};
use unicode_width::UnicodeWidthStr;

use crate::fixture::{asking, rent, until};

fn window(columns: usize, colour: Colour) -> Window {
    Window { columns, rows: 24, colour }
}

/// What is shown some time after the last of `records`, with what a terminal obeys made visible.
fn seen(records: &[Record], columns: usize, colour: Colour) -> String {
    let now = after(records, 12);
    let lines = live(&Overview::of(records), now, window(columns, colour));
    lines.join("\n").replace('\u{1b}', "^")
}

fn after(records: &[Record], seconds: i64) -> Timestamp {
    records.last().unwrap().at() + SignedDuration::from_secs(seconds)
}

#[test]
fn a_run_is_seen_in_a_few_lines_at_every_width() {
    let refining = asking("phase2/path-1/outer-2/inner-1/coder");
    for columns in [20, 40, 80, 120] {
        let name = format!("refining_at_{columns}_columns");
        insta::assert_snapshot!(name, seen(&refining, columns, Colour::Never));
    }
    insta::assert_snapshot!("refining_in_colour", seen(&refining, 80, Colour::Always));
}

#[test]
fn a_running_script_is_shown_with_its_limit() {
    let running = until(|record| {
        matches!(record, Record::Started { key, begun: Some(Begun::Run { .. }), .. }
            if key.as_str().starts_with("phase1/candidate-1"))
    });
    insta::assert_snapshot!("a_script_runs", seen(&running, 80, Colour::Never));
}

#[test]
fn before_a_run_it_is_seen_for_how_long_it_is_made_ready() {
    assert_eq!(preparing(72.9, window(80, Colour::Never)), ["", "getting ready · 1 min 12 s"]);
    assert_eq!(preparing(72.9, window(10, Colour::Never)), ["", "getting …"]);
}

#[test]
fn nothing_is_wider_or_higher_than_the_window_at_any_moment_of_a_run() {
    let (records, mut overview) = (rent(), Overview::default());
    for (number, record) in records.iter().enumerate() {
        overview.apply(record);
        // All sizes at every moment would take a while and show no more.
        let columns = 1 + (number * 7) % 130;
        let window = Window { columns, rows: 1 + number % 30, colour: Colour::Never };
        let now = record.at() + SignedDuration::from_secs(100_000);
        let lines = live(&overview, now, window);
        assert!(lines.len() < window.rows.max(2), "{window:?}: {lines:#?}");
        for line in lines {
            let is_narrow = line.width() < columns && !line.contains(char::is_control);
            assert!(is_narrow, "{window:?}: {line}");
        }
    }
}

#[test]
fn hostile_names_cannot_command_the_terminal() {
    let mut records = asking("phase2/path-1/outer-2/inner-1/coder");
    for record in &mut records {
        match record {
            Record::Opened { header, .. } => {
                header.task.evaluation_metric = "r\u{1b}[2Jm\u{9b}s\ne".to_owned();
            }
            Record::Started { begun: Some(Begun::Ask { lane, .. }), .. } => {
                lane.push_str("\u{1b}]0;owned\u{7}模型");
            }
            _ => {}
        }
    }
    let lines = live(&Overview::of(&records), after(&records, 1), window(80, Colour::Never));
    assert!(lines.iter().any(|line| line.contains("模型")), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.contains(char::is_control)), "{lines:#?}");
}
