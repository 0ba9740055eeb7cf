//! Real scripts through a real Bash.

use std::cell::RefCell;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex, Once};

use futures::FutureExt;
use tokio::process::Command;

use super::*;

/// Runs commands with `bash -c`, and remembers them.
#[derive(Debug, Clone, Default)]
struct RealBash {
    requests: Arc<Mutex<Vec<BashRequest>>>,
}

impl BashTool for RealBash {
    fn run<'a>(&'a self, request: &'a BashRequest) -> BoxFuture<'a, Result<BashReply, ExecError>> {
        self.requests.lock().unwrap().push(request.clone());
        async {
            let seconds = request.timeout as f64 / 1000.0;
            let merged = format!("exec 2>&1\n{}", request.command);
            let output = Command::new("timeout")
                .args(["-s", "KILL", &seconds.to_string(), "bash", "-c", &merged])
                .kill_on_drop(true)
                .output()
                .await?;
            // Bash becomes the last command it runs, and dies of the same signal.
            let by_signal = output.status.signal().map(|signal| 128 + signal);
            Ok(BashReply {
                output: String::from_utf8_lossy(&output.stdout).into_owned(),
                exit_code: output.status.code().or(by_signal).unwrap(),
            })
        }
        .boxed()
    }
}

/// Stands where the subprocess executor does.
#[derive(Debug)]
struct Elsewhere;

impl Executor for Elsewhere {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        let ended = Ended::Exited { code: 0 };
        async move { Ok(outcome(job, ended, Duration::ZERO, "elsewhere")) }.boxed()
    }
}

struct Bench {
    _dir: tempfile::TempDir,
    bash: RealBash,
    executor: ViaBash,
    job: Job,
}

/// A script to run in a folder whose name ends with `name`.
fn bench(name: &str, script: &str) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
    let data_dir = root.join("data");
    fs::create_dir(&data_dir).unwrap();
    let bash = RealBash::default();
    let executor = ViaBash {
        tool: Box::new(bash.clone()),
        python: "python3".into(),
        otherwise: Box::new(Elsewhere),
    };
    let job = Job {
        script: script.to_owned(),
        filename: "solution.py".to_owned(),
        workspace: root.join(name),
        data_dir,
        time_limit: Duration::from_secs(60),
        records: "/jobs/1".into(),
    };
    Bench { _dir: dir, bash, executor, job }
}

impl Bench {
    async fn run(&self) -> Outcome {
        self.executor.run(&self.job).await.unwrap()
    }
}

/// REQ-EX-033
#[tokio::test]
async fn a_script_runs_in_its_folder_and_leaves_a_submission() {
    let bench = bench(
        "work",
        "import os, sys\n\
         open('final/submission.csv', 'w').write('id,y\\n1,2\\n')\n\
         print(os.path.basename(os.getcwd()), os.path.exists('input'), flush=True)\n\
         print('warning', file=sys.stderr)\n",
    );
    let outcome = bench.run().await;

    assert_eq!(outcome.ended, Ended::Exited { code: 0 });
    assert_eq!(outcome.stdout.text, "work True\nwarning\n");
    assert_eq!(outcome.stderr.text, "");
    assert!(outcome.submission.is_present());
    let workspace = &bench.job.workspace;
    let expected = BashRequest {
        command: format!("cd {workspace} && python3 {workspace}/solution.py"),
        timeout: 60_000,
    };
    assert_eq!(*bench.bash.requests.lock().unwrap(), [expected]);
}

/// REQ-EX-033
#[tokio::test]
async fn names_that_mean_something_to_the_shell_are_quoted() {
    let outcome = bench("it's $HOME; a \"b\"", "print('ran')").run().await;
    assert_eq!(outcome.stdout.text, "ran\n");
    assert_eq!(quoted("/a-b_c.d/e+f"), "/a-b_c.d/e+f");
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted(""), "''");
}

/// REQ-EX-033
#[tokio::test]
async fn a_failure_is_found_in_the_mixed_output() {
    let outcome = bench("work", "print('began', flush=True)\n1 / 0\n").run().await;
    assert_eq!(outcome.ended, Ended::Exited { code: 1 });
    assert!(outcome.stdout.text.starts_with("began\nTraceback (most"));
    assert!(outcome.stderr.text.starts_with("Traceback (most recent call last):\n"));
    assert!(outcome.stderr.text.ends_with("ZeroDivisionError: division by zero\n"));

    let outcome = bench("work", "x = (\n").run().await;
    assert!(outcome.stderr.text.starts_with("  File \""), "{outcome:?}");
    assert!(outcome.stderr.text.contains("SyntaxError:"), "{outcome:?}");
}

#[tokio::test]
async fn a_signal_is_told_from_an_exit() {
    let script = "import os\nos.kill(os.getpid(), 11)\n";
    assert_eq!(bench("work", script).run().await.ended, Ended::Signaled { signal: 11 });
}

/// REQ-EX-033
#[tokio::test]
async fn a_script_that_takes_too_long_keeps_what_it_printed() {
    let mut bench = bench("work", "import time\nprint('began', flush=True)\ntime.sleep(60)\n");
    bench.job.time_limit = Duration::from_millis(1500);
    let outcome = bench.run().await;
    assert_eq!(outcome.ended, Ended::TimedOut { after_seconds: 1.5 });
    assert_eq!(outcome.stdout.text.lines().next(), Some("began"));
}

/// REQ-EX-047
#[tokio::test]
async fn what_may_take_longer_than_ten_minutes_runs_elsewhere() {
    let mut bench = bench("work", "print('in bash')");
    bench.job.time_limit = Duration::from_secs(601);
    assert_eq!(bench.run().await.stdout.text, "elsewhere");
    assert!(bench.bash.requests.lock().unwrap().is_empty());

    bench.job.time_limit = Duration::from_secs(600);
    assert_eq!(bench.run().await.stdout.text, "in bash\n");
    assert_eq!(bench.bash.requests.lock().unwrap().len(), 1);
}

/// REQ-EX-034
#[test]
fn both_strategies_have_a_name_and_subprocess_is_the_default() {
    assert_eq!(ExecutorStrategy::default(), ExecutorStrategy::Subprocess);
    for name in ["subprocess", "sdk_bash"] {
        let strategy: ExecutorStrategy = name.parse().unwrap();
        assert_eq!(strategy.to_string(), name);
        assert_eq!(serde_json::to_value(strategy).unwrap(), name);
        assert_eq!(serde_json::from_value::<ExecutorStrategy>(name.into()).unwrap(), strategy);
    }
    let error = "docker".parse::<ExecutorStrategy>().unwrap_err();
    let expected = "`docker` is no executor strategy: it is `subprocess` or `sdk_bash`";
    assert_eq!(error.to_string(), expected);
}

/// REQ-EX-033
#[test]
fn requests_and_replies_are_in_the_words_of_the_tool() {
    let request = BashRequest { command: "ls".to_owned(), timeout: 5 };
    let expected = serde_json::json!({"command": "ls", "timeout": 5});
    assert_eq!(serde_json::to_value(request).unwrap(), expected);
    let reply = serde_json::json!({"output": "a\n", "exitCode": 2});
    let reply: BashReply = serde_json::from_value(reply).unwrap();
    assert_eq!(reply, BashReply { output: "a\n".to_owned(), exit_code: 2 });
}

/// Takes in what is logged on this thread.
///
/// The subscriber is that of the whole process: with one per thread, a place that another thread
/// logs from first is taken for one that nobody listens to.
struct Log;

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Log {
    fn listen() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(tracing::Level::DEBUG)
                .with_writer(|| Self)
                .with_ansi(false)
                .with_target(false)
                .without_time()
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
        tracing::callsite::rebuild_interest_cache();
        LOGGED.take();
    }

    fn text() -> String {
        String::from_utf8(LOGGED.take()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// REQ-EX-039
#[tokio::test]
async fn a_run_is_logged_from_its_script_to_its_timeout() {
    let mut bench = bench("work", "import time\ntime.sleep(60)\n");
    bench.job.time_limit = Duration::from_millis(500);
    Log::listen();
    bench.run().await;
    let dir = &bench.job.workspace;
    let expected = format!(
        "DEBUG script written path={dir}/solution.py content_length=27\n \
         INFO execution started path={dir}/solution.py dir={dir} timeout_seconds=0.5\n \
         WARN execution timed out path={dir}/solution.py timeout_seconds=0.5\n"
    );
    assert_eq!(Log::text(), expected);
}
