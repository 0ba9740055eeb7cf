//! Time limits hold whatever hangs.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use mle_star_chaos::answers::{Answers, is_whole_submission};
use mle_star_chaos::place::{Agents, Place, Programs};
use mle_star_chaos::processes::{self, Part};
use mle_star_chaos::stand_in::{CALM, STALL, Temper};
use rustix::process::Signal;

/// REQ-OR-024
#[test]
fn a_cli_that_never_answers_ends_with_the_deadline() {
    let programs = Programs::find(Utf8Path::new(env!("CARGO_BIN_EXE_chaos"))).unwrap();
    let temper = Temper { seed: 3, share: 12, kind: STALL, ..CALM };
    let mut place = Place::new(&programs, Agents::OverCli, &Answers::good(), temper).unwrap();
    place.time_limit_seconds = 20;
    let began = Instant::now();
    let ended = place.live().unwrap().finish(Duration::from_secs(90)).unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20 + 30), "{took:?}");
    // With a solution it ends early, without one it has failed; both say so.
    assert!(matches!(ended.code, Some(1 | 3)), "{:?}: {}", ended.code, ended.said);
    assert!(ended.said.contains("time"), "{}", ended.said);
    let left = processes::outlasting(place.root(), Duration::from_secs(10));
    assert_eq!(left, []);
}

/// REQ-OR-024
#[test]
fn a_supervisor_that_is_stopped_for_good_ends_with_the_deadline() {
    let programs = Programs::find(Utf8Path::new(env!("CARGO_BIN_EXE_chaos"))).unwrap();
    let mut place = Place::new(&programs, Agents::Scripted, &Answers::good(), CALM).unwrap();
    place.time_limit_seconds = 15;
    let began = Instant::now();
    let mut life = place.live().unwrap();
    let supervisors = || processes::playing(Part::Supervisor, place.root());
    let is_at_work = || place.run().is_some() && !supervisors().is_empty();
    assert!(life.wait_until(Duration::from_secs(30), is_at_work).unwrap());
    supervisors().iter().for_each(|it| processes::send(it.pid, Signal::STOP));
    let ended = life.finish(Duration::from_secs(90)).unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15 + 30), "{took:?}");
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{:?}: {}", ended.code, ended.said);
    assert_eq!(processes::outlasting(place.root(), Duration::from_secs(10)), []);
}

/// REQ-OR-024
#[test]
fn a_submission_script_that_hangs_ends_with_the_deadline_and_the_early_submission_stays() {
    let programs = Programs::find(Utf8Path::new(env!("CARGO_BIN_EXE_chaos"))).unwrap();
    let answers = Answers::with_flaw_at("finalization/test", "hang");
    let mut place = Place::new(&programs, Agents::Scripted, &answers, CALM).unwrap();
    place.time_limit_seconds = 25;
    let began = Instant::now();
    let ended = place.live().unwrap().finish(Duration::from_secs(90)).unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(25 + 30), "{took:?}");
    assert!(matches!(ended.code, Some(0 | 3)), "{:?}: {}", ended.code, ended.said);
    let submission = place.run().unwrap().join("final/submission.csv");
    assert!(is_whole_submission(&fs_err::read_to_string(submission).unwrap()));
    assert_eq!(processes::outlasting(place.root(), Duration::from_secs(10)), []);
}

/// REQ-P2O-035: with one outer step, half of the time is the most that a study gets.
#[test]
fn a_study_that_hangs_is_ended_in_time_for_the_run_to_have_its_result() {
    let programs = Programs::find(Utf8Path::new(env!("CARGO_BIN_EXE_chaos"))).unwrap();
    let answers = Answers::with_flaw_at("phase2/path-1/outer-0/ablation", "hang");
    let mut place = Place::new(&programs, Agents::Scripted, &answers, CALM).unwrap();
    place.time_limit_seconds = 25;
    let began = Instant::now();
    let ended = place.live().unwrap().finish(Duration::from_secs(90)).unwrap();
    let took = began.elapsed();
    assert!(took > Duration::from_secs(5), "nothing has hung: {took:?}");
    assert!(took < Duration::from_secs(25 + 30), "{took:?}");
    assert!(matches!(ended.code, Some(0 | 3)), "{:?}: {}", ended.code, ended.said);
    let submission = place.run().unwrap().join("final/submission.csv");
    assert!(is_whole_submission(&fs_err::read_to_string(submission).unwrap()));
    assert_eq!(processes::outlasting(place.root(), Duration::from_secs(10)), []);
}
