//! A run that dies is taken up where it stopped.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use mle_star_agent::{AgentError, Reply};
use mle_star_search::event::{Event, Output, Record};
use mle_star_search::{Completed, Error, OnChange, PipelineError, Run};
use serde_json::Value;

use crate::world::{World, fenced, script};

/// Small, but with every phase, concurrent paths, a repair and a correction in it.
fn small_world() -> World {
    World::new("M=2 T=1 K=2 L=2 R=1 max_debug_attempts=2").on_call(|call| {
        let reply = match (call.role.as_str(), call.step.as_str()) {
            ("init", "phase1/candidate-1/init") => fenced("raise ValueError('bad dtype')"),
            ("debugger", _) => fenced(&script(0.45)),
            _ => return None,
        };
        Some(Ok(Reply { cost_usd: Some(0.25), ..Reply::text(reply) }))
    })
}

/// A result without what depends on the clock.
fn timeless(completed: &Completed) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                // A call in flight at a kill is taken to have cost something.
                for key in [
                    "created_at",
                    "total_duration_seconds",
                    "total_cost_usd",
                    "submission_path",
                    "data_dir",
                ] {
                    map.remove(key);
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(&completed.result).unwrap();
    strip(&mut value);
    value
}

/// What a journal says happened, apart from when and in which life.
fn story(world: &World) -> BTreeSet<String> {
    let told = world.records().into_iter().filter_map(|record| match record {
        Record::Finished { key, input, .. } => {
            Some(format!("{key} {}", serde_json::to_value(input).unwrap()))
        }
        Record::Happened { event: Event::Summarized { .. }, .. } => None,
        Record::Happened { key, index, event, .. } => {
            Some(format!("{key} {index} {}", serde_json::to_value(event).unwrap()))
        }
        _ => None,
    });
    told.collect()
}

/// A world whose run stopped after the first `bytes` of the journal that `other` wrote.
fn stopped_after(other: &World, bytes: usize) -> World {
    let mut world = small_world();
    world.task.data_dir = other.task.data_dir.clone();
    let (from, to) = (other.dir(), world.dir());
    fs_err::create_dir_all(to.root().join("solutions")).unwrap();
    let journal = fs_err::read(from.journal()).unwrap();
    fs_err::write(to.journal(), &journal[..bytes]).unwrap();
    for entry in from.root().join("solutions").read_dir_utf8().unwrap() {
        let file = entry.unwrap().into_path();
        fs_err::copy(&file, to.root().join("solutions").join(file.file_name().unwrap())).unwrap();
    }
    world
}

async fn resume(world: &World) -> Result<Completed, PipelineError> {
    let run = world.reopen();
    run.rehearse(mle_star_search::run(&run.ctx()))?;
    mle_star_search::run(&run.ctx()).await
}

/// Dying right after any record was written, or in the middle of writing it, repeats nothing that
/// had finished and changes nothing of the result.
#[tokio::test]
async fn dying_at_any_step_boundary_changes_nothing() {
    let whole = small_world();
    let expected = whole.run().await.unwrap();
    let journal = fs_err::read(whole.dir().journal()).unwrap();
    let mut ends: Vec<usize> = Vec::new();
    let mut offset = 0;
    for line in journal.split_inclusive(|byte| *byte == b'\n') {
        offset += line.len();
        ends.push(offset);
    }
    assert!(ends.len() > 100, "the run is too small to prove much: {} records", ends.len());

    for (index, end) in ends.iter().enumerate() {
        let torn = ends.get(index + 1).map_or(*end, |next| end + (next - end) / 2);
        // Dying in mid-write leaves a torn line, which is cut: the same as not having begun it.
        let cuts = if index % 8 == 0 { vec![*end, torn] } else { vec![*end] };
        for cut in cuts {
            let world = stopped_after(&whole, cut);
            let finished = world.steps();
            let (asked, ran) = count(&world.records());

            let completed = resume(&world).await.unwrap();

            assert_eq!(timeless(&completed), timeless(&expected), "after record {index}");
            assert!(completed.result.total_cost_usd >= expected.result.total_cost_usd);
            assert_eq!(story(&world), story(&whole), "after record {index}");
            assert_eq!(world.calls().len(), whole.calls().len() - asked, "after record {index}");
            assert_eq!(world.jobs().len(), whole.jobs().len() - ran, "after record {index}");
            let all = world.steps();
            assert_eq!(all[..finished.len()], finished[..]);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "a step was redone");
        }
    }
}

fn count(records: &[Record]) -> (usize, usize) {
    let outputs = || records.iter().filter_map(Record::finished).map(|(_, output)| output);
    (
        outputs().filter(|output| matches!(output, Output::Asked { .. })).count(),
        outputs().filter(|output| matches!(output, Output::Ran { .. })).count(),
    )
}

#[tokio::test]
async fn a_finished_run_gives_its_result_again_and_is_not_touched() {
    let world = small_world();
    let first = world.run().await.unwrap();
    let journal = fs_err::read(world.dir().journal()).unwrap();
    let calls = world.calls().len();

    let again = resume(&world).await.unwrap();

    assert_eq!(again, first);
    assert_eq!(fs_err::read(world.dir().journal()).unwrap(), journal);
    assert_eq!(world.calls().len(), calls);
}

#[tokio::test]
async fn a_replay_needs_neither_agents_nor_scripts() {
    let world = small_world();
    let first = world.run().await.unwrap();
    let silent = small_world()
        .on_call(|call| panic!("{} was asked", call.step))
        .on_job(|job| panic!("{} was run", job.script));
    let run = Run::replay(world.dir(), silent.ports()).unwrap();

    assert_eq!(mle_star_search::run(&run.ctx()).await.unwrap(), first);
}

#[tokio::test]
async fn a_replay_of_an_unfinished_run_names_the_step_it_lacks() {
    let whole = small_world();
    whole.run().await.unwrap();
    let journal = fs_err::read_to_string(whole.dir().journal()).unwrap();
    let end = journal.find("\"merge-1/merger").or(journal.find("merge-1/merger")).unwrap();
    let world = stopped_after(&whole, journal[..end].rfind('\n').unwrap() + 1);
    let run = Run::replay(world.dir(), world.ports()).unwrap();

    let error = mle_star_search::run(&run.ctx()).await.unwrap_err();

    assert_eq!(error.cause().to_string(), "step `phase1/merge-1/merger` is not in the journal");
}

/// The journal of `world` with what a role was told changed after the fact.
fn with_another_reply(world: &World, from: &str, to: &str) {
    let text = fs_err::read_to_string(world.dir().journal()).unwrap();
    assert!(text.contains(from));
    fs_err::write(world.dir().journal(), text.replace(from, to)).unwrap();
}

#[tokio::test]
async fn a_step_that_no_longer_fits_stops_the_run_before_anything_is_spent() {
    let whole = small_world();
    whole.run().await.unwrap();
    let end = fs_err::read(whole.dir().journal()).unwrap().len();
    let world = stopped_after(&whole, end);
    // The repaired candidate: its run, and all that came later, was with another script.
    with_another_reply(&world, "score = 0.45", "score = 0.46");
    let journal = fs_err::read(world.dir().journal()).unwrap();

    let error = resume(&world).await.unwrap_err();

    let Error::Diverged { key, steps, dollars } = error.cause() else { panic!("{error:?}") };
    assert_eq!(key.as_str(), "phase1/candidate-1/attempt-0/leakage");
    assert!(*steps > 10 && *steps < world.steps().len(), "{steps}");
    assert!((*dollars - 0.0).abs() < 1e-9, "{dollars}");
    assert_eq!((world.calls().len(), world.jobs().len()), (0, 0));
    assert_eq!(fs_err::read(world.dir().journal()).unwrap(), journal);
}

#[tokio::test]
async fn rerunning_what_changed_redoes_only_what_follows_from_it() {
    let whole = small_world();
    whole.run().await.unwrap();
    let world = stopped_after(&whole, fs_err::read(whole.dir().journal()).unwrap().len());
    with_another_reply(&world, "average them, way 0", "average them, way zero");
    let run = Run::resume(world.dir(), world.header(), world.ports(), OnChange::Rerun).unwrap();
    run.rehearse(mle_star_search::run(&run.ctx())).unwrap();

    let completed = mle_star_search::run(&run.ctx()).await.unwrap();

    let asked: Vec<String> = world.calls().into_iter().map(|call| call.step).collect();
    assert_eq!(asked, ["phase3/round-0/ensembler"], "the rest got the same script as before");
    assert_eq!(completed.result.phase3.unwrap().ensemble_plans, ["average them, way zero"]);
}

#[tokio::test]
async fn an_agent_that_cannot_be_reached_stops_the_run_and_costs_no_step() {
    let world = small_world().on_call(|call| {
        call.step
            .starts_with("phase2/path-1/outer-0/inner-1")
            .then(|| Err(AgentError::Unauthorized { reason: "529 overloaded".to_owned() }))
    });
    let error = world.run().await.unwrap_err();
    assert!(matches!(error.cause(), Error::Agent { .. }), "{error:?}");
    assert!(!world.steps().iter().any(|key| key.contains("path-1/outer-0/inner-1")));
    let before = world.steps();

    // The same folder, with an agent that answers.
    let working = small_world();
    let run = Run::resume(world.dir(), world.header(), working.ports(), OnChange::Stop).unwrap();
    let completed = mle_star_search::run(&run.ctx()).await.unwrap();

    assert_eq!(timeless(&completed)["phase2_results"][1]["best_score"], 0.601);
    let again: Vec<_> =
        working.calls().into_iter().filter(|it| before.contains(&it.step)).collect();
    assert_eq!(again, []);
}

#[tokio::test]
async fn limits_folders_and_the_machine_may_change_between_lives() {
    let whole = small_world();
    let expected = whole.run().await.unwrap();
    let world = stopped_after(&whole, fs_err::read(whole.dir().journal()).unwrap().len());
    let mut header = world.header();
    header.config.time_limit_seconds = 99;
    header.config.script_timeout_seconds = Some(7);
    header.machine.cores = 64;
    header.task.data_dir = Utf8PathBuf::from("/elsewhere");

    let run = Run::resume(world.dir(), header, world.ports(), OnChange::Stop).unwrap();
    let completed = mle_star_search::run(&run.ctx()).await.unwrap();

    assert_eq!(timeless(&completed)["phase3"], timeless(&expected)["phase3"]);
    assert_eq!(world.calls().len(), 0);
}

#[tokio::test]
async fn running_time_counts_while_running_only_and_costs_once() {
    let whole = small_world();
    let expected = whole.run().await.unwrap();
    let journal = fs_err::read_to_string(whole.dir().journal()).unwrap();
    let half = journal[..journal.len() / 2].rfind('\n').unwrap() + 1;
    let world = stopped_after(&whole, half);

    let completed = resume(&world).await.unwrap();

    assert_eq!(expected.result.total_cost_usd, Some(0.5));
    // Never less: a call that was in flight is taken to have cost what its like do.
    assert!(completed.result.total_cost_usd >= Some(0.5));
    // The clock of the tests moves a second per look; both lives together looked a few times more.
    let (one, two) =
        (expected.result.total_duration_seconds, completed.result.total_duration_seconds);
    assert!((two - one).abs() < 20.0, "{one} and {two}");
}

// What follows needs a process of its own, whose files cannot grow for a while. It is this test
// binary again, asked for the ignored test below.

/// A life tells that it began, and with which settings, before anything else and only once, also if
/// the disk was full when it tried first.
#[test]
fn a_resume_is_recorded_once_although_its_first_records_could_not_be_written() {
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "resume::child_whose_journal_is_full_for_a_moment"])
        .env("RESUME_TEST_CHILD", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
#[ignore = "a child of a_resume_is_recorded_once…"]
async fn child_whose_journal_is_full_for_a_moment() {
    if std::env::var_os("RESUME_TEST_CHILD").is_none() {
        return;
    }
    let limit_files = |most: &str| {
        let arguments = [format!("--pid={}", std::process::id()), format!("--fsize={most}:")];
        let status = std::process::Command::new("prlimit").args(arguments).status().unwrap();
        assert!(status.success());
    };
    let whole = small_world();
    let expected = whole.run().await.unwrap();
    let journal = fs_err::read(whole.dir().journal()).unwrap();
    let lines = journal.split_inclusive(|byte| *byte == b'\n');
    let half: usize = lines.clone().take(lines.count() / 2).map(<[u8]>::len).sum();
    // Room for no record, and for the first but not for the settings.
    for room in [0, 200] {
        let mut world = stopped_after(&whole, half);
        world.config.time_limit_seconds += 60;
        let run = world.reopen();
        limit_files(&(half + room).to_string());
        let full = mle_star_search::run(&run.ctx()).await.unwrap_err();
        limit_files("unlimited");
        assert!(matches!(full.cause(), Error::Journal(_)), "{full}");
        let completed = mle_star_search::run(&run.ctx()).await.unwrap();
        let solution = |completed: &Completed| completed.result.final_solution.content.clone();
        assert_eq!(solution(&completed), solution(&expected), "with room for {room} bytes");
        let told: Vec<&str> = world
            .records()
            .iter()
            .filter_map(|record| match record {
                Record::Resumed { .. } => Some("resumed"),
                Record::Settings { .. } => Some("settings"),
                _ => None,
            })
            .collect();
        assert_eq!(told, ["resumed", "settings"], "with room for {room} bytes");
    }
}
