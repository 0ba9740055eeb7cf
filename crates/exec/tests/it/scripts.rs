//! What a script can count on, and what becomes of it.

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use fs_err as fs;
use mle_star_exec::sandbox::{Tier, Wish};
use mle_star_exec::{Captured, Ended, ExecError, Executor, Job, Outcome, Setup};
use tokio::process::Command;

use crate::bench::{Bench, eventually, setup};

/// Everything a stream carried.
fn whole(stream: &Captured) -> &str {
    assert!(!stream.truncated && stream.total_bytes == stream.text.len() as u64);
    &stream.text
}

/// REQ-EX-005, REQ-EX-008, REQ-EX-024
#[tokio::test]
async fn a_script_that_works_says_so_and_leaves_a_submission() {
    let bench = Bench::new().await;
    let outcome = bench
        .run(
            "import sys\n\
             open('final/submission.csv', 'w').write('id,y\\n1,2\\n')\n\
             print(open('input/train.csv').read(), end='')\n\
             print('warning', file=sys.stderr)\n\
             print(sys.stdin.read() == '')\n",
        )
        .await;

    assert_eq!(outcome.ended, Ended::Exited { code: 0 });
    assert_eq!(whole(&outcome.stdout), "id\n1\nTrue\n");
    assert_eq!(whole(&outcome.stderr), "warning\n");
    assert!(outcome.submission.is_present());
    assert_eq!(outcome.submission.row_count, Some(1));
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["ended"], serde_json::json!({ "kind": "exited", "code": 0 }));
    assert_eq!(serde_json::from_value::<Outcome>(json).unwrap(), outcome);
}

/// REQ-EX-007, REQ-EX-041
#[tokio::test]
async fn a_script_that_fails_is_an_outcome() {
    let bench = Bench::new().await;
    let raised = bench.run("1 / 0").await;
    assert_eq!(raised.ended, Ended::Exited { code: 1 });
    assert!(raised.stderr.text.ends_with("ZeroDivisionError: division by zero\n"));
    assert!(!raised.submission.is_present());

    assert_eq!(bench.run("raise SystemExit(3)").await.ended, Ended::Exited { code: 3 });
    let killed = bench.run("import os; os.kill(os.getpid(), 9)").await;
    assert_eq!(killed.ended, Ended::Signaled { signal: 9 });
    let crashed = bench.run("import os; os.abort()").await;
    assert_eq!(crashed.ended, Ended::Signaled { signal: 6 });
}

#[tokio::test]
async fn a_python_that_is_not_there_is_an_error() {
    let missing = Setup { python: "/nonexistent/python".into(), ..setup(Wish::Best).await };
    let error = missing.try_out().await.unwrap_err();
    assert!(matches!(error, ExecError::PythonBroken { .. }), "{error}");
}
/// REQ-EX-009, REQ-EX-037
#[tokio::test]
async fn a_script_past_its_limit_is_stopped_with_its_workers() {
    let bench = Bench::new().await;
    let start = Instant::now();
    let outcome = bench
        .run_for(
            Duration::from_secs(2),
            "import os, time\n\
             print('half', flush=True)\n\
             os.fork()\n\
             time.sleep(600)",
        )
        .await;

    assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 2.0 });
    assert_eq!(whole(&outcome.stdout), "half\n");
    assert_eq!(bench.processes(), [0; 0]);
    assert!(start.elapsed() < Duration::from_secs(6), "the grace ends with the last process");
}
#[tokio::test]
async fn a_script_that_ignores_the_request_to_stop_is_killed() {
    let bench = Bench::new().await;
    let outcome = bench
        .run_for(
            Duration::from_secs(3),
            "import signal, time\n\
             signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n\
             while True: time.sleep(600)",
        )
        .await;

    assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 3.0 });
    assert_eq!(whole(&outcome.stdout), "no\n", "what is said during the grace is heard, once");
    assert!((8.0..20.0).contains(&outcome.duration_seconds), "{}", outcome.duration_seconds);
    assert_eq!(bench.processes(), [0; 0]);
}
#[tokio::test]
async fn workers_left_behind_by_a_script_are_killed_and_do_not_hold_us_up() {
    let bench = Bench::new().await;
    let outcome = bench
        .run(
            "import os, time\n\
             if os.fork() == 0: time.sleep(600)\n\
             if os.fork() == 0: os.setsid(); time.sleep(600)\n\
             print('done')",
        )
        .await;

    assert_eq!(outcome.ended, Ended::Exited { code: 0 });
    assert_eq!(whole(&outcome.stdout), "done\n");
    assert!(outcome.duration_seconds < 10.0);
    assert_eq!(bench.processes(), [0; 0]);
}
#[tokio::test]
async fn nobody_waiting_any_longer_kills_every_process() {
    let bench = Bench::new().await;
    let job = bench.job("import os, time; os.fork(); open('on', 'w').close(); time.sleep(600)");
    tokio::select! {
        outcome = bench.local.run(&job) => panic!("{outcome:?}"),
        () = eventually("it runs", || bench.workspace().join("on").exists()) => {}
    }
    eventually("nobody runs", || bench.processes().is_empty()).await;

    // It was stopped, which is no result: it runs again.
    let again = async { bench.local.run(&job).await.map(drop) };
    tokio::select! {
        outcome = again => panic!("{outcome:?}"),
        () = eventually("it runs again", || bench.processes().len() > 1) => {}
    }
}
#[tokio::test]
async fn a_flood_of_output_costs_no_memory_and_keeps_its_last_line() {
    let bench = Bench::new().await;
    let outcome = bench
        .run(
            "import sys\n\
             line = b'x' * 99 + b'\\n'\n\
             for _ in range(2000): sys.stdout.buffer.write(line * 1000)\n\
             print('Final Validation Performance: 0.5')",
        )
        .await;

    assert_eq!(outcome.ended, Ended::Exited { code: 0 });
    assert!(outcome.stdout.truncated);
    assert_eq!(outcome.stdout.total_bytes, 200_000_000 + 34);
    assert!(outcome.stdout.text.len() < 70_000);
    assert!(outcome.stdout.text.ends_with("x\nFinal Validation Performance: 0.5\n"));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 64 * 1024, "{peak} kB");
}

#[tokio::test]
async fn a_flood_without_end_still_meets_its_limit() {
    let bench = Bench::new().await;
    let start = Instant::now();
    let flood = "while True: print('x' * 10_000)";
    let outcome = bench.run_for(Duration::from_secs(1), flood).await;
    assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 1.0 });
    assert!(start.elapsed() < Duration::from_secs(6));
}
/// REQ-EX-043
#[tokio::test]
async fn output_that_is_not_text_survives() {
    let bench = Bench::new().await;
    let outcome = bench.run("import sys; sys.stdout.buffer.write(b'a\\xffb\\0')").await;
    assert_eq!(outcome.stdout.text, "a\u{FFFD}b\0");
    assert_eq!(outcome.stdout.total_bytes, 4);
}

/// REQ-EX-002, REQ-EX-010, REQ-EX-042
#[tokio::test]
async fn scripts_do_not_see_what_others_left() {
    let bench = Bench::new().await;
    bench
        .run(
            "import os, shutil\n\
             os.rmdir('final'); os.symlink('/', 'final')\n\
             os.remove('input'); os.symlink(os.path.expanduser('~'), 'input')\n\
             os.makedirs('locked/inner'); os.chmod('locked', 0)\n\
             os.mkfifo('pipe')\n\
             open(b'\\xff', 'w').close()\n\
             for _ in range(3000): os.mkdir('d'); os.chdir('d')\n",
        )
        .await;
    let outcome = bench.run("import os; print(sorted(os.listdir()), os.listdir('input'))").await;

    let expected = "['.home', '.tmp', 'final', 'input', 'solution.py'] ['train.csv']\n";
    assert_eq!(whole(&outcome.stdout), expected);
    assert_eq!(fs::read_to_string(bench.root.join("data/train.csv")).unwrap(), "id\n1\n");
}

#[tokio::test]
async fn a_workspace_that_became_a_link_is_an_error() {
    let bench = Bench::new().await;
    symlink(bench.root.join("data"), bench.root.join("work")).unwrap();
    let error = bench.local.run(&bench.job("")).await.unwrap_err();
    assert!(error.to_string().contains("is a symbolic link"), "{error}");
    assert!(bench.root.join("data/train.csv").exists());
}
#[tokio::test]
async fn a_pipe_in_place_of_the_submission_is_not_opened() {
    let bench = Bench::new().await;
    let outcome = bench.run("import os; os.mkfifo('final/submission.csv')").await;
    assert!(!outcome.submission.exists);
    let reason = "`final/submission.csv` is not a plain file";
    assert_eq!(outcome.submission.parse_error.as_deref(), Some(reason));
}

/// Starts itself once more with credentials around it, which no test can give to itself.
#[tokio::test]
async fn scripts_see_listed_variables_only() {
    const CREDENTIALS: [&str; 2] = ["ANTHROPIC_API_KEY", "AWS_SECRET"];
    const INNER: &str = "MLE_STAR_EXEC_INNER_TEST";
    if std::env::var_os(INNER).is_none() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "scripts::scripts_see_listed_variables_only"])
            .envs(CREDENTIALS.map(|name| (name, "secret")))
            .env(INNER, "1")
            .status();
        assert!(status.await.unwrap().success());
        return;
    }
    assert!(CREDENTIALS.into_iter().all(|name| std::env::var_os(name).is_some()));

    let bench = Bench::new().await;
    let outcome = bench.run(
        "import os, tempfile\n\
         print([name for name, value in os.environ.items() if 'secret' in value.lower()])\n\
         print(os.environ['PYTHONHASHSEED'], 'PATH' in os.environ)\n\
         work = os.getcwd()\n\
         print(os.path.expanduser('~') == work + '/.home', tempfile.gettempdir() == work + '/.tmp')\n\
         print(os.environ['OMP_NUM_THREADS'])",
    ).await;

    assert_eq!(whole(&outcome.stdout), "[]\n0 True\nTrue True\n1\n", "{}", outcome.stderr.text);
}

#[tokio::test]
async fn several_scripts_run_side_by_side_on_one_thread() {
    let benches = [Bench::new().await, Bench::new().await, Bench::new().await];
    let script = "import time; time.sleep(3); print('x' * 1_000_000)";
    let start = Instant::now();
    let outcomes = futures::future::join_all(benches.iter().map(|bench| bench.run(script))).await;

    assert!(outcomes.iter().all(|outcome| outcome.ended == Ended::Exited { code: 0 }));
    assert!(outcomes.iter().all(|outcome| outcome.stdout.total_bytes == 1_000_001));
    assert!(start.elapsed() < Duration::from_millis(8_500), "{:?}", start.elapsed());
}

#[tokio::test]
async fn folders_may_be_named_with_detours() {
    let bench = Bench::new().await;
    symlink(&bench.root, bench.root.join("link")).unwrap();
    fs::create_dir(bench.root.join("deep")).unwrap();
    let job = Job {
        workspace: bench.root.join("deep/../link/deep/work"),
        data_dir: bench.root.join("link/deep/../data"),
        ..bench.job("print(open('input/train.csv').read()); open('final/submission.csv', 'w').write('a\\n1\\n')")
    };
    let outcome = bench.local.run(&job).await.unwrap();
    assert_eq!(whole(&outcome.stderr), "");
    assert!(bench.root.join("deep/work/final/submission.csv").is_file());
    assert!(outcome.submission.is_present());
}

#[tokio::test]
async fn data_may_be_linked_from_elsewhere() {
    let setup = setup(Wish::Best).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = camino::Utf8Path::from_path(elsewhere.path()).unwrap();
    fs::write(elsewhere.join("huge.csv"), "id\n7\n").unwrap();
    let readable = vec![elsewhere.join("huge.csv")];
    let bench = Bench::with(Setup { readable, ..setup }).await;
    symlink(elsewhere.join("huge.csv"), bench.root.join("data/huge.csv")).unwrap();
    let outcome = bench.run("print(open('input/huge.csv').read())").await;
    assert_eq!(whole(&outcome.stdout), "id\n7\n\n");
}

/// The driver of graphics cards does not work without.
#[tokio::test]
async fn with_a_device_a_script_may_name_itself_and_still_not_change_the_machine() {
    for tier in [Tier::Strong, Tier::Fallback] {
        let devices = vec!["/dev/null".into()];
        let setup = Setup { devices, ..setup(Wish::Exactly(tier)).await };
        let bench = Bench::with(setup).await;
        let outcome = bench
            .run(
                "open('/proc/self/comm', 'w').write('me')\n\
                 print(open('/proc/self/comm').read().strip())\n\
                 for name in ('sys/kernel/core_pattern', 'sysrq-trigger', 'sys/vm/swappiness'):\n\
                 \x20   try: open('/proc/' + name, 'r+').close(); print('open', name)\n\
                 \x20   except OSError as error: print(type(error).__name__)\n",
            )
            .await;
        let refused = ["PermissionError", "OSError", "FileNotFoundError"];
        let lines: Vec<&str> = outcome.stdout.text.lines().collect();
        assert_eq!(lines.first(), Some(&"me"), "{tier}: {}", outcome.stderr.text);
        assert!(lines[1..].len() == 3, "{tier}: {lines:?}");
        assert!(lines[1..].iter().all(|line| refused.contains(line)), "{tier}: {lines:?}");
    }
}

#[tokio::test]
async fn a_script_can_look_itself_up() {
    for tier in [Tier::Strong, Tier::Fallback] {
        let bench = Bench::held(tier).await;
        let outcome = bench
            .run("import getpass, os, pwd; pwd.getpwuid(os.getuid()); print(getpass.getuser())")
            .await;
        assert_eq!(whole(&outcome.stdout), "script\n", "{tier}: {}", outcome.stderr.text);
    }
}

#[tokio::test]
async fn a_machine_that_does_not_say_how_much_memory_it_has_is_no_obstacle() {
    let mut setup = setup(Wish::Best).await;
    setup.limits.memory_bytes = u64::MAX;
    let bench = Bench::with(setup).await;
    let outcome = bench.run("open('/dev/shm/x', 'w').write('y'); print('ok')").await;
    assert_eq!(whole(&outcome.stdout), "ok\n", "{}", outcome.stderr.text);
}

/// REQ-EX-035
#[tokio::test]
async fn a_script_takes_little_longer_than_it_runs() {
    let bench = Bench::new().await;
    let start = Instant::now();
    let outcome = bench.run("import time; time.sleep(1)").await;
    let beside = start.elapsed().as_secs_f64() - outcome.duration_seconds;
    assert!(outcome.duration_seconds >= 1.0 && beside < 2.0, "{beside} s");
}
