//! What a run says to whoever listens, beside its record.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

use jiff::Timestamp;
use mle_star_exec::Ended;
use mle_star_search::Run;
use mle_star_search::evaluate::{EvalOptions, evaluate_with_retry};
use mle_star_search::models::{SolutionPhase, SolutionScript};

use crate::world::{World, broken, fenced, outcome, script};

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

    /// What was logged, but for prompts, which are long.
    fn text() -> String {
        let text = String::from_utf8(LOGGED.take()).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("DEBUG prompt"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    fn prompts() -> usize {
        let text = String::from_utf8(LOGGED.take()).unwrap();
        text.lines().filter(|line| line.starts_with("DEBUG prompt step=")).count()
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

/// Runs a broken script, which the debugger mends.
async fn evaluate(run: &Run) {
    let ctx = run.ctx();
    let script = SolutionScript::new(broken(), SolutionPhase::Init, Timestamp::UNIX_EPOCH);
    let options = EvalOptions::validation(ctx.config());
    evaluate_with_retry(&ctx.scope("evaluation"), &script, options).await.unwrap();
}

const MENDED: &str = " INFO execution complete exit_code=1 duration_seconds=0.01\n \
     WARN error detected exit_code=1 traceback=\"Traceback (most recent call last):\" \
     error=\"ValueError: no such column\"\n \
     INFO retry attempt attempt=1 max=3\n \
     INFO execution complete exit_code=0 duration_seconds=0.01 score=0.4\n";

/// REQ-EX-039
#[tokio::test]
async fn runs_errors_and_repairs_are_logged_as_they_happen() {
    let world = World::new("");
    Log::listen();
    evaluate(&world.open()).await;
    assert_eq!(Log::text(), MENDED);
}

/// REQ-EX-039
#[tokio::test]
async fn a_failure_without_a_traceback_is_logged_by_its_cause() {
    let world = World::new("max_debug_attempts=1").on("debugger", |_| fenced(&script(0.4)));
    let world = world.on_job(|job| {
        let late = || outcome(Ended::TimedOut { after_seconds: 5.0 }, "", "");
        job.script.starts_with("raise").then(|| Ok(late()))
    });
    Log::listen();
    evaluate(&world.open()).await;
    let expected = " INFO execution complete exit_code=-1 duration_seconds=0.01\n \
         WARN error detected exit_code=-1 error=\"TimeoutError: exceeded 5 s\"\n \
         INFO retry attempt attempt=1 max=1\n \
         INFO execution complete exit_code=0 duration_seconds=0.01 score=0.4\n";
    assert_eq!(Log::text(), expected);
}

#[tokio::test]
async fn a_resumed_run_does_not_log_again_what_is_on_record() {
    let world = World::new("");
    evaluate(&world.open()).await;
    let run = world.reopen();
    Log::listen();
    evaluate(&run).await;
    assert_eq!(Log::text(), "");
}

/// REQ-OR-047
#[tokio::test]
async fn a_prompt_is_logged_when_it_is_sent_and_not_when_its_reply_is_on_record() {
    let world = World::new("");
    Log::listen();
    evaluate(&world.open()).await;
    assert_eq!(Log::prompts(), world.calls_of("debugger").len() + world.calls_of("leakage").len());
    let run = world.reopen();
    Log::listen();
    evaluate(&run).await;
    assert_eq!(Log::prompts(), 0);
}
