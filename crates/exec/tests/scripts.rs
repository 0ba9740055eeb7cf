//! Real scripts, run by a real Python.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use fs_err as fs;
use mle_star_exec::{Captured, Ended, ExecError, Executor, Job, Local, Outcome, machine};
use tokio::process::Command;
use tokio::sync::OnceCell;

const MINUTE: Duration = Duration::from_secs(60);

/// A folder with data and a place to work.
struct Bench {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        fs::create_dir(root.join("data")).unwrap();
        fs::write(root.join("data/train.csv"), "id\n1\n").unwrap();
        Self { _dir: dir, root }
    }

    fn job(&self, script: &str) -> Job {
        Job {
            script: script.to_owned(),
            filename: "solution.py".to_owned(),
            workspace: self.root.join("work"),
            data_dir: self.root.join("data"),
            time_limit: MINUTE,
            gpus: None,
        }
    }

    async fn run(&self, script: &str) -> Outcome {
        run(&self.job(script)).await
    }

    /// The number that a script wrote into a file of its workspace.
    fn number(&self, file: &str) -> i32 {
        let path = self.root.join("work").join(file);
        fs::read_to_string(path).unwrap().trim().parse().unwrap()
    }
}

async fn run(job: &Job) -> Outcome {
    // A shim would be a process and variables more than the tests count on.
    static PYTHON: OnceCell<String> = OnceCell::const_new();
    let detected = async { machine::detect(None).await.unwrap().python };
    let python = PYTHON.get_or_init(|| detected).await.into();
    let executor: &dyn Executor = &Local { python };
    executor.run(job).await.unwrap()
}

/// Whether a process is alive, and more than a zombie.
fn is_alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
}

fn whole(text: &str) -> Captured {
    Captured { text: text.to_owned(), total_bytes: text.len() as u64, truncated: false }
}

#[tokio::test]
async fn a_script_that_works_says_so_and_leaves_a_submission() {
    let bench = Bench::new();
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
    assert_eq!(outcome.stdout, whole("id\n1\nTrue\n"));
    assert_eq!(outcome.stderr, whole("warning\n"));
    assert!(outcome.submission.is_present());
    assert_eq!(outcome.submission.row_count, Some(1));
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["ended"], serde_json::json!({ "kind": "exited", "code": 0 }));
    assert_eq!(serde_json::from_value::<Outcome>(json).unwrap(), outcome);
}

#[tokio::test]
async fn a_script_that_fails_is_an_outcome() {
    let bench = Bench::new();
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
async fn a_script_that_cannot_be_started_is_an_error() {
    let bench = Bench::new();
    let local = Local { python: "/nonexistent/python".into() };
    let error = local.run(&bench.job("")).await.unwrap_err();
    assert!(matches!(error, ExecError::Spawn { .. }), "{error}");
    assert_eq!(error.to_string(), "failed to start `/nonexistent/python`");
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn a_script_past_its_limit_is_stopped_with_its_workers() {
    let bench = Bench::new();
    let mut job = bench.job(
        "import os, time\n\
         print('half', flush=True)\n\
         if os.fork() == 0: open('worker', 'w').write(str(os.getpid()))\n\
         time.sleep(600)",
    );
    job.time_limit = Duration::from_secs(2);
    let start = Instant::now();
    let outcome = run(&job).await;

    assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 2.0 });
    assert_eq!(outcome.stdout, whole("half\n"));
    assert!(!is_alive(bench.number("worker")));
    assert!(start.elapsed() < Duration::from_secs(6), "the grace ends with the last process");
}

#[tokio::test]
async fn a_script_that_ignores_the_request_to_stop_is_killed() {
    let bench = Bench::new();
    let mut job = bench.job(
        "import os, signal, time\n\
         signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n\
         open('self', 'w').write(str(os.getpid()))\n\
         while True: time.sleep(600)",
    );
    job.time_limit = Duration::from_secs(3);
    let outcome = run(&job).await;

    assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 3.0 });
    assert_eq!(outcome.stdout, whole("no\n"), "what is said during the grace is heard, once");
    assert!((8.0..20.0).contains(&outcome.duration_seconds), "{}", outcome.duration_seconds);
    assert!(!is_alive(bench.number("self")));
}

#[tokio::test]
async fn workers_left_behind_by_a_script_are_killed_and_do_not_hold_us_up() {
    let bench = Bench::new();
    let outcome = bench
        .run(
            "import os, time\n\
             if os.fork() == 0: time.sleep(600)\n\
             worker = os.fork()\n\
             if worker == 0: time.sleep(600)\n\
             open('worker', 'w').write(str(worker))\n\
             print('done')",
        )
        .await;

    assert_eq!(outcome.ended, Ended::Exited { code: 0 });
    assert_eq!(outcome.stdout, whole("done\n"));
    assert!(outcome.duration_seconds < 10.0);
    assert!(!is_alive(bench.number("worker")));
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_us_up() {
    let bench = Bench::new();
    let start = Instant::now();
    let outcome = bench
        .run(
            "import os, time\n\
             gone = os.fork()\n\
             if gone == 0:\n    os.setsid()\n    time.sleep(600)\n\
             time.sleep(0.5)\n\
             open('gone', 'w').write(str(gone))\n\
             print('done')",
        )
        .await;

    assert_eq!(outcome.stdout, whole("done\n"));
    assert!(start.elapsed() < Duration::from_secs(10));
    let gone = rustix::process::Pid::from_raw(bench.number("gone")).unwrap();
    rustix::process::kill_process(gone, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_script_that_joins_our_group_is_stopped_and_we_are_not() {
    let bench = Bench::new();
    let mut job = bench.job(
        "import os, time\n\
         open('self', 'w').write(str(os.getpid()))\n\
         os.setpgid(0, os.getpgid(os.getppid()))\n\
         time.sleep(600)",
    );
    job.time_limit = Duration::from_secs(2);
    assert_eq!(run(&job).await.ended, Ended::TimedOut { after_seconds: 2.0 });
    assert!(!is_alive(bench.number("self")));
}

#[tokio::test]
async fn nobody_waiting_any_longer_kills_the_whole_group() {
    let bench = Bench::new();
    let job = bench.job(
        "import os, time\n\
         worker = os.fork()\n\
         if worker == 0: time.sleep(600)\n\
         open('worker', 'w').write(str(worker))\n\
         open('self', 'w').write(str(os.getpid()))\n\
         time.sleep(600)",
    );
    let started = async {
        while fs::read_to_string(bench.root.join("work/self")).unwrap_or_default().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        outcome = run(&job) => panic!("{outcome:?}"),
        () = started => {}
    }

    let pids = [bench.number("worker"), bench.number("self")];
    let patience = Instant::now() + Duration::from_secs(10);
    while pids.into_iter().any(is_alive) {
        assert!(Instant::now() < patience, "{pids:?} go on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_flood_of_output_costs_no_memory_and_keeps_its_last_line() {
    let bench = Bench::new();
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
    let bench = Bench::new();
    let mut job = bench.job("while True: print('x' * 10_000)");
    job.time_limit = Duration::from_secs(1);
    let start = Instant::now();
    assert_eq!(run(&job).await.ended, Ended::TimedOut { after_seconds: 1.0 });
    assert!(start.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn output_that_is_not_text_survives() {
    let bench = Bench::new();
    let outcome = bench.run("import sys; sys.stdout.buffer.write(b'a\\xffb\\0')").await;
    assert_eq!(outcome.stdout.text, "a\u{FFFD}b\0");
    assert_eq!(outcome.stdout.total_bytes, 4);
}

#[tokio::test]
async fn scripts_do_not_see_what_others_left() {
    let bench = Bench::new();
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
    assert_eq!(outcome.stdout, whole(expected));
    assert_eq!(fs::read_to_string(bench.root.join("data/train.csv")).unwrap(), "id\n1\n");
}

#[tokio::test]
async fn a_workspace_that_became_a_link_is_an_error() {
    let bench = Bench::new();
    symlink(bench.root.join("data"), bench.root.join("work")).unwrap();
    let local = Local { python: "python3".into() };
    let error = local.run(&bench.job("")).await.unwrap_err();
    assert!(matches!(error, ExecError::Workspace { .. }), "{error}");
    assert!(bench.root.join("data/train.csv").exists());
}

#[tokio::test]
async fn a_pipe_in_place_of_the_submission_is_not_opened() {
    let bench = Bench::new();
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
            .args(["--exact", "scripts_see_listed_variables_only"])
            .envs(CREDENTIALS.map(|name| (name, "secret")))
            .env(INNER, "1")
            .status();
        assert!(status.await.unwrap().success());
        return;
    }
    assert!(CREDENTIALS.into_iter().all(|name| std::env::var_os(name).is_some()));

    let bench = Bench::new();
    let mut job = bench.job(
        "import os, tempfile\n\
         listed = ('PATH', 'LANG', 'TZ', 'VIRTUAL_ENV', 'LD_LIBRARY_PATH')\n\
         print(sorted(name for name in os.environ\n\
         \x20   if name not in listed and not name.startswith(('LC_', 'CUDA_'))))\n\
         work = os.getcwd()\n\
         print(os.path.expanduser('~') == work + '/.home', tempfile.gettempdir() == work + '/.tmp')\n\
         print(os.environ['CUDA_VISIBLE_DEVICES'], hash('x') == hash('x'))",
    );
    job.gpus = Some(vec![0, 2]);
    let outcome = run(&job).await;

    let expected = "['HOME', 'PYTHONDONTWRITEBYTECODE', 'PYTHONHASHSEED', 'PYTHONUNBUFFERED', \
                    'TMPDIR']\nTrue True\n0,2 True\n";
    assert_eq!(outcome.stdout, whole(expected), "{}", outcome.stderr.text);
}

#[tokio::test]
async fn several_scripts_run_side_by_side_on_one_thread() {
    let benches = [Bench::new(), Bench::new(), Bench::new()];
    let script = "import time; time.sleep(3); print('x' * 1_000_000)";
    let start = Instant::now();
    let outcomes = futures::future::join_all(benches.iter().map(|bench| bench.run(script))).await;

    assert!(outcomes.iter().all(|outcome| outcome.ended == Ended::Exited { code: 0 }));
    assert!(outcomes.iter().all(|outcome| outcome.stdout.total_bytes == 1_000_001));
    assert!(start.elapsed() < Duration::from_millis(8_500), "{:?}", start.elapsed());
}
