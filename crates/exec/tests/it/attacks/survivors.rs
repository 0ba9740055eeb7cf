//! Processes that try to outlive their script, its supervisor, or us.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use fs_err as fs;
use futures::future::join_all;
use mle_star_exec::sandbox::{Gap, Tier, Wish};
use mle_star_exec::{Ended, ExecError, Executor, Job, Outcome, Setup, Supervisor};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use crate::bench::{Bench, eventually, setup, supervisor};

const TIERS: [Tier; 4] = [Tier::Strong, Tier::Fallback, Tier::Limits, Tier::Off];

/// Leaves a process behind in a session of its own, child of nobody, deaf to requests and silent.
const DAEMON: &str = "
import os, signal, time
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.closerange(0, 100)
            open('daemon', 'w').close()
            time.sleep(120)
        os._exit(0)
    while not os.path.exists('daemon'): time.sleep(0.01)
daemon()
";

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).ok();
}

fn lives(pid: i32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.iter().rposition(|&byte| byte == b')').and_then(|at| stat.get(at + 2));
    state.is_some_and(|&state| state != b'Z')
}

#[tokio::test]
async fn a_daemon_does_not_outlive_the_time_limit() {
    let one = async |tier| {
        let bench = Bench::held(tier).await;
        let script = format!("{DAEMON}\nopen('on', 'w').write('on'); time.sleep(120)");
        let outcome = bench.run_for(Duration::from_secs(3), &script).await;
        assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 3.0 }, "{tier}");
        assert_eq!(bench.written("on"), "on", "{tier}");
        assert_eq!(bench.processes(), [0; 0], "{tier}");
    };
    join_all(TIERS.map(one)).await;
}

/// Each of these is gone by the time somebody looks at it: its child goes on.
const RELAYS: &str = "
import os, time
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        until = time.time() + 60
        while time.time() < until:
            if os.fork() > 0: os._exit(0)
time.sleep(0.5)
";

#[tokio::test]
async fn those_who_pass_their_life_on_are_caught() {
    for tier in TIERS {
        let bench = Bench::held(tier).await;
        let outcome = bench.run(RELAYS).await;
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{tier}");
        assert!(outcome.duration_seconds < 8.0, "{tier}: {}", outcome.duration_seconds);
        assert_eq!(bench.processes(), [0; 0], "{tier}");
    }
}

/// With their parent's death signal switched off and orphans of their own.
#[tokio::test]
async fn those_who_adopt_orphans_are_caught() {
    let adopt = "import ctypes; libc = ctypes.CDLL(None); libc.prctl(36, 1); libc.prctl(1, 0)";
    for tier in TIERS {
        let bench = Bench::held(tier).await;
        let script = format!("{adopt}\n{DAEMON}\nif os.fork() == 0: daemon(); time.sleep(120)");
        let outcome = bench.run(&script).await;
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{tier}");
        assert_eq!(bench.processes(), [0; 0], "{tier}");
    }
}

#[tokio::test]
async fn supervisors_that_are_all_killed_are_an_error_and_leave_nobody_or_say_that_they_would() {
    for tier in TIERS {
        let bench = Bench::held(tier).await;
        let job = bench.job(&format!("{DAEMON}\nopen('on', 'w').close(); time.sleep(120)"));
        let kill_it = async {
            let mut killed = Vec::new();
            while killed.len() < 3 {
                let next = || bench.supervisor_of(&job).filter(|it| !killed.contains(it));
                eventually("it runs", || next().is_some() && bench.workspace().join("on").exists())
                    .await;
                killed.extend(next());
                kill(killed[killed.len() - 1]);
            }
        };
        let start = Instant::now();
        let (result, ()) = futures::join!(bench.local.run(&job), kill_it);
        let error = result.unwrap_err();
        assert!(matches!(error, ExecError::Supervisor { .. }), "{tier}: {error}");
        assert!(error.to_string().contains("signal: 9"), "{tier}: {error}");
        assert!(start.elapsed() < Duration::from_secs(30), "{tier}");

        let gaps = &bench.local.containment().unwrap().gaps;
        if gaps.contains(&Gap::OutliveSupervisor) {
            bench.processes().into_iter().for_each(kill); // daemons, which have no parent
        }
        eventually("nobody is left", || bench.processes().is_empty()).await;
    }
}

/// A system short of memory may choose the supervisor as well as the script.
#[tokio::test]
async fn a_supervisor_that_is_killed_once_is_started_again() {
    for tier in TIERS {
        let bench = Bench::held(tier).await;
        let job = bench.job("import time; open('on', 'w').close(); time.sleep(2); print('done')");
        let kill_it = async {
            eventually("it runs", || bench.workspace().join("on").exists()).await;
            kill(bench.supervisor_of(&job).unwrap());
        };
        let (outcome, ()) = futures::join!(bench.local.run(&job), kill_it);
        let outcome = outcome.unwrap();
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{tier}");
        assert_eq!(outcome.stdout.text, "done\n", "{tier}");
        eventually("nobody is left", || bench.processes().is_empty()).await;
    }
}

/// The first time, what the supervisor starts is killed at once; after that nothing is wrong.
const UNLUCKY_ONCE: &str = r#"
if mkdir "$0" 2> /dev/null; then
    "$@" &
    until inner=$(cat /proc/$!/task/$!/children) && [ -n "$inner" ]; do :; done
    kill -9 $inner
    wait $!
    exit $?
fi
exec "$@"
"#;

/// Else a whole run would go on with less of a sandbox than the machine can give.
#[tokio::test]
async fn a_kill_while_the_sandbox_is_tried_does_not_lower_the_tier() {
    for wish in [Wish::Best, Wish::Exactly(Tier::Fallback)] {
        let dir = tempfile::tempdir().unwrap();
        let happened = Utf8PathBuf::from_path_buf(dir.path().join("happened")).unwrap();
        let Supervisor { program, arguments } = supervisor();
        let before = ["-c", UNLUCKY_ONCE, happened.as_str(), program.as_str()];
        let arguments = before.map(str::to_owned).into_iter().chain(arguments).collect();
        let unlucky = Supervisor { program: "/bin/sh".into(), arguments };
        let unlucky = Setup { supervisor: unlucky, ..setup(wish).await };
        let unlucky = unlucky.try_out().await.unwrap();
        assert!(happened.exists(), "nothing was killed");
        let lucky = setup(wish).await.try_out().await.unwrap();
        assert_eq!(unlucky.containment(), lucky.containment());
    }
}

/// The run that comes for the result wants the file, not only word of it.
#[tokio::test]
async fn a_result_whose_submission_is_gone_is_none() {
    let bench = Bench::new().await;
    let job = bench.job("open('final/submission.csv', 'w').write('id,y\\n1,2\\n')");
    let first = bench.local.run(&job).await.unwrap();
    assert!(first.submission.is_present());
    fs::remove_dir_all(bench.workspace()).unwrap();
    let second = bench.local.run(&job).await.unwrap();
    assert!(second.submission.is_present());
    assert!(bench.workspace().join("final/submission.csv").is_file());
}

/// Prints when it ran, which is another time if it runs again.
const ONCE: &str = "
open('on', 'w').close()
time.sleep(2)
print(time.time_ns())
";

/// Starts itself once more, as somebody who can be killed.
#[tokio::test]
async fn a_script_goes_on_without_us_and_is_not_run_again() {
    const INNER: &str = "MLE_STAR_EXEC_INNER_ORCHESTRATOR";
    let job_in = |root: &str| Job {
        script: format!("{DAEMON}{ONCE}"),
        filename: "solution.py".to_owned(),
        workspace: format!("{root}/work").into(),
        data_dir: format!("{root}/data").into(),
        time_limit: Duration::from_secs(60),
        records: format!("{root}/jobs/1").into(),
    };
    if let Ok(inner) = std::env::var(INNER) {
        let (tier, root) = inner.split_once(' ').unwrap();
        let bench = Bench::held(tier.parse().unwrap()).await;
        bench.local.run(&job_in(root)).await.unwrap();
        return;
    }
    let one = async |tier| {
        let bench = Bench::held(tier).await;
        let job = job_in(bench.root.as_str());
        let mut orchestrator = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "attacks::survivors::a_script_goes_on_without_us_and_is_not_run_again",
            ])
            .env(INNER, format!("{tier} {}", bench.root))
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        eventually("it runs", || bench.workspace().join("on").exists()).await;
        orchestrator.kill().await.unwrap(); // that is SIGKILL
        let supervisor = bench.supervisor_of(&job).unwrap();
        assert!(lives(supervisor), "{tier}");

        let report = job.records.join("exit.json");
        eventually("it ended", || report.exists()).await;
        assert_eq!(bench.processes(), [0; 0], "{tier}");
        eventually("its supervisor ended", || !lives(supervisor)).await;

        let written = fs::metadata(&report).unwrap();
        let outcome = bench.local.run(&job).await.unwrap();
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{tier}");
        assert!(fs::read_to_string(&report).unwrap().contains(outcome.stdout.text.trim()));
        let now = fs::metadata(&report).unwrap();
        assert_eq!((now.ino(), now.mtime_nsec()), (written.ino(), written.mtime_nsec()), "{tier}");
    };
    join_all(TIERS.map(one)).await;
}

#[tokio::test]
async fn a_job_that_is_started_twice_runs_once() {
    let bench = Bench::new().await;
    let job = bench.job(&format!("{DAEMON}{ONCE}"));
    let (first, second) = futures::join!(bench.local.run(&job), bench.local.run(&job));
    let first = first.unwrap();
    assert_eq!(first.ended, Ended::Exited { code: 0 });
    assert_eq!(first, second.unwrap());
    assert_eq!(first, bench.local.run(&job).await.unwrap());
}

#[tokio::test]
async fn a_result_that_cannot_be_read_is_none() {
    let bench = Bench::new().await;
    let job = bench.job("import time; print(time.time_ns())");
    let report = job.records.join("exit.json");
    let mut last = bench.local.run(&job).await.unwrap();
    let whole = fs::read(&report).unwrap();
    for torn in [&b"{"[..], b"", b"\xff\0", b"\"cancelled\"", &whole[..whole.len() / 2]] {
        fs::write(&report, torn).unwrap();
        let outcome: Outcome = bench.local.run(&job).await.unwrap();
        assert_ne!(outcome.stdout, last.stdout, "{torn:?}");
        assert_eq!(outcome.ended, Ended::Exited { code: 0 });
        last = outcome;
    }
}
