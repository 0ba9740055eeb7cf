//! `kill -9` at any moment, then `resume`.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use serde_json::Value;

use crate::shop::{Shop, steps};

const SETTINGS: &str = "M=2 T=1 K=2 L=2 R=1";

/// The real binary, running in the background.
fn start(shop: &Shop) -> Child {
    let prepared = shop.run(SETTINGS);
    let mut command = Command::new(prepared.get_program());
    command.args(prepared.get_args()).current_dir(shop.path());
    command.env_remove("ANTHROPIC_API_KEY");
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until the only run has finished `wanted` steps, or the process has ended.
fn wait_for(shop: &Shop, child: &mut Child, wanted: usize) {
    let began = Instant::now();
    loop {
        let journal = shop.path().join("runs").read_dir_utf8().ok().and_then(|mut runs| {
            let run = runs.next()?.ok()?;
            fs_err::read_to_string(run.path().join("journal.jsonl")).ok()
        });
        // A kill can tear the last line; what is torn is not finished.
        let whole = journal.and_then(|text| Some(text.rsplit_once('\n')?.0.to_owned()));
        let finished = whole.map_or(0, |text| text.matches(r#""record":"finished""#).count());
        if finished >= wanted || child.try_wait().unwrap().is_some() {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no {wanted} steps in a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The result without what depends on the clock and the folder.
fn timeless(run: &Utf8Path) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                // A call in flight at a kill is taken to have cost something.
                let volatile = [
                    "created_at",
                    "total_duration_seconds",
                    "total_cost_usd",
                    "submission_path",
                    "data_dir",
                ];
                volatile.iter().for_each(|key| drop(map.remove(*key)));
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let text = fs_err::read_to_string(run.join("result.json")).unwrap();
    let mut value = serde_json::from_str(&text).unwrap();
    strip(&mut value);
    value
}

/// Processes whose working directory is inside `folder`.
fn processes_in(folder: &Utf8Path) -> Vec<String> {
    let folder = folder.canonicalize_utf8().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let inside = processes.filter(|process| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
    });
    inside.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

/// The real binary is killed at every step boundary of a small run, one life after the other.
/// Nothing that had finished is done again.
#[test]
fn killed_at_every_step_boundary_a_run_ends_with_the_same_result() {
    let undisturbed = Shop::new();
    undisturbed.run(SETTINGS).assert().success();
    let expected = timeless(&undisturbed.only_run());
    let expected_steps = steps(&undisturbed.only_run());

    let shop = Shop::new();
    let mut child = start(&shop);
    let mut kills = 0;
    let mut finished = Vec::new();
    loop {
        wait_for(&shop, &mut child, finished.len() + 1);
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        let run = shop.only_run();
        let done = steps(&run);
        assert_eq!(done[..finished.len()], finished[..], "a finished step was lost");
        finished = done;

        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("mle-star"));
        command.args(["resume", run.as_str()]).current_dir(shop.path());
        child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    }
    // Steps that follow each other at once can end in the same life.
    assert!(kills > expected_steps.len() / 2, "only {kills} kills");
    let run = shop.only_run();
    let (mut done, mut wanted) = (steps(&run), expected_steps);
    done.sort();
    wanted.sort();
    assert_eq!(done, wanted, "every step was finished exactly once");
    assert_eq!(timeless(&run), expected);
    assert_eq!(fs_err::read_to_string(run.join("final/submission.csv")).unwrap(), "id,y\n3,4\n");
    assert_eq!(processes_in(shop.path()), Vec::<String>::new());
}

#[test]
fn what_a_kill_left_half_written_is_gone_after_a_resume() {
    let shop = Shop::new();
    shop.run(SETTINGS).assert().success();
    let run = shop.only_run();
    let half = run.join("solutions/0123456789abcdef.py.1-0.tmp");
    fs_err::write(&half, "half").unwrap();
    shop.command().args(["resume", run.as_str()]).assert().success();
    assert!(!half.exists());
}

/// A record that does not fit is taken back, the run says what is wrong and how to go on, and a
/// resume ends as if nothing had happened.
#[test]
fn a_journal_that_may_not_grow_stops_the_run_and_a_resume_goes_on() {
    let undisturbed = Shop::new();
    undisturbed.run(SETTINGS).assert().success();
    let whole = fs_err::metadata(undisturbed.only_run().join("journal.jsonl")).unwrap().len();

    let shop = Shop::new();
    let prepared = shop.run(SETTINGS);
    let output = Command::new("prlimit")
        .arg(format!("--fsize={}:", whole * 3 / 4))
        .arg(prepared.get_program())
        .args(prepared.get_args())
        .current_dir(shop.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let run = shop.only_run();
    let journal = run.join("journal.jsonl");
    let error = format!(
        "error: the run at `{run}` has no result: the run was stopped: the journal of the run \
         cannot be used: failed to write to file `{journal}`: File too large (os error 27)\n\
         hint: when that is mended: mle-star resume {run}\n"
    );
    assert!(said.ends_with(&error), "{said}");
    let text = fs_err::read_to_string(&journal).unwrap();
    assert!(text.ends_with('\n'), "half a record is left");

    let done = steps(&run);
    shop.command().args(["resume", run.as_str()]).assert().success();
    assert_eq!(steps(&run)[..done.len()], done[..], "a finished step was lost");
    assert_eq!(timeless(&run), timeless(&undisturbed.only_run()));
}
