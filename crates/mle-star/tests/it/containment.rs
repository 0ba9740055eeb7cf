//! Scripts in their box, seen from the command line.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_exec::sandbox::{Tier, Wish};
use mle_star_exec::{Ended, Outcome};
use mle_star_search::event::{Event, Output, Record};
use serde_json::Value;

use crate::shop::{Shop, records, skipped, with_reply};

const SMALL: &str = "M=1 T=1 K=1 L=1 R=1";

/// How the scripts of a run ended, in order.
fn outcomes(run: &Utf8Path) -> Vec<Outcome> {
    let ran = |record: Record| match record {
        Record::Finished { output: Output::Ran { outcome, .. }, .. } => Some(outcome),
        _ => None,
    };
    records(run).into_iter().filter_map(ran).collect()
}

/// The first lines of what was wrong with scripts in the end.
fn errors(run: &Utf8Path) -> Vec<String> {
    let told = |record: Record| match record {
        Record::Happened { event: Event::Evaluated { error, .. }, .. } => error,
        _ => None,
    };
    records(run).into_iter().filter_map(told).collect()
}

fn stderr(shop: &Shop, settings: &str, arguments: &[&str]) -> String {
    let output = shop.run(settings).args(arguments).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// What a job was started with; the file is another one after another start.
fn specs(run: &Utf8Path) -> Vec<(Utf8PathBuf, u64)> {
    let jobs = run.join("jobs").read_dir_utf8().unwrap();
    let spec = |job: std::io::Result<camino::Utf8DirEntry>| {
        let file = job.unwrap().into_path().join("spec.json");
        let number = std::fs::metadata(&file).ok()?.ino();
        Some((file, number))
    };
    let mut specs: Vec<_> = jobs.filter_map(spec).collect();
    specs.sort();
    specs
}

/// A run that is killed while a script runs.
fn killed_in_a_script() -> (Shop, Utf8PathBuf) {
    let shop = Shop::new();
    shop.close();
    let mut run = shop.start(&shop.run(SMALL), Stdio::null());
    shop.wait_for_script();
    run.kill().unwrap();
    run.wait().unwrap();
    let run = shop.only_run();
    (shop, run)
}

#[test]
fn a_script_that_ends_after_its_run_was_killed_is_not_run_again() {
    let (shop, run) = killed_in_a_script();
    let begun = specs(&run);
    assert_eq!(begun.len(), 1);
    shop.open();
    shop.wait_for_the_end_of_scripts();

    shop.command().args(["resume", run.as_str()]).assert().success();

    assert!(specs(&run).contains(&begun[0]), "the script was started again");
    assert!(run.join("final/submission.csv").is_file());
}

#[test]
fn a_script_that_still_runs_is_waited_for() {
    let (shop, run) = killed_in_a_script();
    let begun = specs(&run);
    let mut command = shop.command();
    command.args(["resume", run.as_str()]);
    let resumed = shop.start(&command, Stdio::null());
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(specs(&run), begun, "another script was started");
    shop.open();
    let ended = resumed.wait_with_output().unwrap();

    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(specs(&run).contains(&begun[0]), "the script was started again");
}

#[test]
fn the_sandbox_is_named_at_the_start_in_each_result_and_afterwards() {
    let shop = Shop::new();
    let said = stderr(&shop, SMALL, &[]);
    let run = shop.only_run();
    let Record::Opened { header, .. } = &records(&run)[0] else { panic!("no header") };
    let containment = header.containment.clone().unwrap();
    assert!(said.contains(&containment.summary()), "{said}");
    let outcomes = outcomes(&run);
    assert!(!outcomes.is_empty());
    for outcome in &outcomes {
        assert_eq!(outcome.tier, containment.tier);
        assert_eq!(outcome.limits, Some(containment.limits));
    }
    let shown = shop.command().args(["show", run.as_str()]).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains(&containment.summary()));
}

#[test]
fn no_sandbox_is_said_loudly_and_stays_in_the_result() {
    let shop = Shop::new();
    let said = stderr(&shop, SMALL, &["--sandbox", "off"]);
    assert!(said.contains("WARNING: sandbox: off; scripts can change your files"), "{said}");
    let run = shop.only_run();
    assert!(outcomes(&run).iter().all(|outcome| outcome.tier == Tier::Off));
    let result: Value =
        serde_json::from_str(&fs_err::read_to_string(run.join("result.json")).unwrap()).unwrap();
    let notes = result["phase_status"]["notes"].to_string();
    assert!(notes.contains("scripts ran in a weak sandbox (`off`)"), "{notes}");

    // It was asked for once, and stays for whoever resumes the run.
    let Record::Opened { header, .. } = &records(&run)[0] else { panic!("no header") };
    assert_eq!(header.sandbox, Wish::Exactly(Tier::Off));
    let mut resume = shop.command();
    resume.args(["resume", run.as_str(), "--json"]).assert().success();
}

/// Runs the program where user namespaces are used up, as containers do.
#[test]
fn a_sandbox_that_is_required_and_not_there_is_an_error_that_leaves_nothing() {
    let shop = Shop::new();
    let mut run = assert_cmd::Command::new("unshare");
    run.args([
        "-Ur",
        "sh",
        "-c",
        "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"",
        "-",
    ]);
    let program = shop.run(SMALL);
    run.arg(program.get_program()).args(program.get_args());
    run.current_dir(shop.path()).env("MLE_STAR_PYTHON", "python3").env("NO_COLOR", "1");
    let output = run.args(["--require-sandbox", "strong"]).output();
    let said = match output {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("unshare") => output,
        Ok(_) | Err(_) => return skipped("user namespaces cannot be made here"),
    };
    assert_eq!(said.status.code(), Some(1));
    let said = String::from_utf8(said.stderr).unwrap();
    let expected = "error: this machine cannot run the scripts: the sandbox that was asked for \
                    does not work here: strong: the script could not be run: ";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("hint: `mle-star doctor` says what is missing"), "{said}");
    assert!(
        !shop.path().join("runs").exists()
            || shop.path().join("runs").read_dir().unwrap().next().is_none()
    );
}

#[test]
fn a_script_that_takes_too_much_memory_is_stopped_and_told_why() {
    let shop = Shop::new();
    let greedy = "```python\nall = []\nwhile len(all) < 100: all.append(b'x' * (64 << 20))\n```";
    shop.write("replies.yaml", &with_reply("init", greedy));
    let said = stderr(&shop, SMALL, &["-s", "script_memory_limit=300MB"]);

    let run = shop.only_run();
    let Some(Outcome { ended: Ended::Exceeded { used, limit, .. }, usage, .. }) =
        outcomes(&run).into_iter().next()
    else {
        panic!("{said}")
    };
    assert_eq!(limit, 300_000_000);
    assert!((limit..2 * limit).contains(&used) && usage.memory_bytes >= used, "{used}");
    let error = errors(&run).into_iter().next().unwrap_or_else(|| panic!("{said}"));
    assert!(
        error.starts_with("Killed: the script used ")
            && error.ends_with(" of memory, limit 300.0 MB"),
        "{error}"
    );
}

#[test]
fn scripts_have_a_network_only_where_the_task_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let call = format!(
        "```python\nimport socket\ntry: socket.create_connection(('127.0.0.1', {}), 2)\n\
         except OSError as error: print(error)\nprint('Final Validation Performance: 0.5')\n```",
        address.port()
    );
    for (network, expected) in [("deny", false), ("allow", true)] {
        let shop = Shop::new();
        shop.write("replies.yaml", &with_reply("init", &call));
        let task = shop.path().join("shop/task.yaml");
        let text = fs_err::read_to_string(&task).unwrap() + &format!("network: {network}\n");
        fs_err::write(task, text).unwrap();
        shop.run(SMALL).assert().success();
        assert_eq!(listener.accept().is_ok(), expected, "network: {network}");
    }
}

#[test]
fn doctor_says_what_works() {
    let shop = Shop::new();
    let healthy = shop.command().args(["doctor", "--json"]).assert().success();
    let checks: Vec<Value> = serde_json::from_slice(&healthy.get_output().stdout).unwrap();
    let count = |name: &str| checks.iter().filter(|check| check["name"] == name).count();
    for name in ["python", "packages", "sandbox", "limits", "gpu", "memory", "disk"] {
        assert_eq!(count(name), 1, "{name}");
    }
    assert_eq!(count("protection"), mle_star_exec::sandbox::Gap::ALL.len());

    let plain = shop.command().arg("doctor").assert().success();
    let text = String::from_utf8(plain.get_output().stdout.clone()).unwrap();
    assert_eq!(text.lines().filter(|line| !line.starts_with(' ')).count(), checks.len());
}

#[test]
fn doctor_says_what_is_missing_and_what_to_do() {
    let shop = Shop::new();
    let ill = shop.command().args(["doctor", "--python", "./no-python"]).assert().code(1);
    let text = String::from_utf8(ill.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("MISSING  python     this machine cannot run the scripts"), "{text}");
    assert!(text.contains("-> install Python 3.10 or later"), "{text}");

    let weak = shop.command().args(["doctor", "--sandbox", "off"]).assert().success();
    let text = String::from_utf8(weak.get_output().stdout.clone()).unwrap();
    assert!(text.contains("weak     sandbox    off"), "{text}");
    assert!(text.contains("weak     protection scripts can read your files"), "{text}");
}
