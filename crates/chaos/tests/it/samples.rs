//! The real program, killed and disturbed by seed.

use std::io::Write as _;
use std::process::Command;

fn chaos(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_chaos")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if let Some(skipped) = said.lines().find(|line| line.starts_with("skipped")) {
        writeln!(std::io::stderr(), "{skipped}").ok();
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn killed_at_any_moment_a_run_ends_as_if_nothing_had_happened() {
    chaos(&["kill", "--runs", "4", "--seed", "1"]);
}

#[test]
fn whatever_befalls_a_run_it_ends_with_what_its_answers_are_worth() {
    // Seeds of many faults and few that hang: what hangs is waited for.
    chaos(&["mix", "--runs", "5", "--seed", "98"]);
}

#[test]
fn a_full_disk_stops_a_run_without_blame_and_room_lets_it_go_on() {
    chaos(&["one", "disk full", "--runs", "2", "--seed", "1"]);
}
