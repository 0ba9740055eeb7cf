//! What the orchestrator itself costs: `cargo bench -p mle-star --bench overhead`.
//!
//! Agents answer at once and scripts end at once, so that what is left is ours. Machines are
//! noisy: every figure that the disk or the kernel dominates stands beside the bare operation,
//! measured in the same run. `docs/benchmarks.md` keeps the figures and says how to read them.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints or fails")]

#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod world;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use jiff::Timestamp;
use mle_star_search::block::validate_code_block;
use mle_star_search::event::Record;
use mle_star_search::models::{CodeBlock, Score, SolutionPhase, SolutionScript, parse_score};
use mle_star_search::reply::try_extract_code;
use mle_star_search::{OnChange, Run};
use serde_json::json;

use world::{World, count, cpu_seconds, millis, reply, row, script};

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("| what | figure |\n| --- | --- |");
    time_per_step(&runtime);
    inner_loop(&runtime);
    ensemble_rounds(&runtime);
    resume_of_a_thousand_steps(&runtime);
    reading_replies();
    block_validation();
    score_parsing();
    help();
    whole_run();
}

/// Median time of `work`, over enough repetitions to fill about half a second.
fn median(mut work: impl FnMut()) -> Duration {
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || (began.elapsed() < Duration::from_millis(500) && times.len() < 2000) {
        let start = Instant::now();
        work();
        times.push(start.elapsed());
    }
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// REQ-OR-048
fn time_per_step(runtime: &tokio::runtime::Runtime) {
    let world = World::new("");
    let start = Instant::now();
    world.run(runtime);
    let (elapsed, steps) = (start.elapsed(), world.steps());
    let sync = bare_append_and_sync(world.folder.path().join("sync"));
    row(
        &format!("default run, {steps} steps, effects at zero cost"),
        &format!(
            "{:.2} ms a step, of which one append and fdatasync on this disk is {:.2} ms",
            millis(elapsed) / count(steps),
            millis(sync)
        ),
    );
}

/// The least that durability costs here.
fn bare_append_and_sync(path: std::path::PathBuf) -> Duration {
    let mut file = std::fs::File::create(path).unwrap();
    let line = vec![b'x'; 2000];
    median(|| {
        file.write_all(&line).unwrap();
        file.sync_data().unwrap();
    })
}

/// REQ-P2I-039, REQ-P2I-040, REQ-P2O-031
fn inner_loop(runtime: &tokio::runtime::Runtime) {
    let world = World::new("K=4");
    let run = world.open();
    let solution = SolutionScript {
        score: Score::new(0.5),
        ..SolutionScript::new(script(0.5), SolutionPhase::Merged, Timestamp::UNIX_EPOCH)
    };
    let block =
        CodeBlock { content: "score = 0.5".to_owned(), category: None, outer_step: Some(0) };
    let mut number = 0;
    let time = median(|| {
        number += 1;
        let ctx = run.ctx().scope(format_args!("inner-loop-{number}"));
        let refined = mle_star_search::phase2::run_phase2_inner_loop(
            &ctx,
            &solution,
            &block,
            "raise it",
            solution.score.unwrap(),
        );
        assert_eq!(runtime.block_on(refined).unwrap().attempts.len(), 4);
    });
    row("inner loop, K=4: 11 calls, 4 scripts", &format!("{:.1} ms", millis(time)));
}

/// REQ-P3-036, REQ-P3-037
fn ensemble_rounds(runtime: &tokio::runtime::Runtime) {
    let world = World::new("R=5");
    let run = world.open();
    let solution = |value| SolutionScript {
        score: Score::new(value),
        ..SolutionScript::new(script(value), SolutionPhase::Refined, Timestamp::UNIX_EPOCH)
    };
    let solutions = [solution(0.5), solution(0.6)];
    let mut number = 0;
    let time = median(|| {
        number += 1;
        let ctx = run.ctx().scope(format_args!("phase3-{number}"));
        let result = runtime.block_on(mle_star_search::phase3::run_phase3(&ctx, &solutions));
        assert_eq!(result.unwrap().attempts.len(), 5);
    });
    row("Phase 3, R=5: 15 calls, 5 scripts", &format!("{:.1} ms", millis(time)));
}

fn resume_of_a_thousand_steps(runtime: &tokio::runtime::Runtime) {
    let world = World::new("T=10 K=8 L=4 R=9");
    world.run(runtime);
    let steps = world.steps();
    let time = median(|| {
        let dir = world.dir();
        let header = Run::read_header(&dir).unwrap();
        let run = Run::resume(dir, header, world.ports(), OnChange::Stop).unwrap();
        run.rehearse(mle_star_search::run(&run.ctx())).unwrap();
        runtime.block_on(mle_star_search::run(&run.ctx())).unwrap();
    });
    let size = fs_err::metadata(world.dir().journal()).unwrap().len();
    row(
        &format!("resume of a finished run of {steps} steps ({} kB of journal)", size / 1000),
        &format!("{:.0} ms", millis(time)),
    );
}

/// REQ-P2O-031, REQ-P2I-039
fn reading_replies() {
    let code = script(0.5).repeat(600);
    let reply = format!("Here it is:\n```python\n{code}\n```\n");
    let time = median(|| assert!(try_extract_code(&reply).is_some()));
    row(
        &format!("reading a script of {} kB out of a reply", code.len() / 1000),
        &format!("{:.3} ms", millis(time)),
    );
}

/// REQ-P2O-032
fn block_validation() {
    let content = script(0.5).repeat(600) + "last = 1\n";
    let solution = SolutionScript::new(content, SolutionPhase::Init, Timestamp::UNIX_EPOCH);
    let time = median(|| assert!(validate_code_block("last = 1", &solution)));
    row(
        &format!("finding a block in a script of {} kB", solution.content.len() / 1000),
        &format!("{:.3} ms", millis(time)),
    );
}

/// REQ-EX-036
fn score_parsing() {
    let output = "epoch 1 loss 0.123456\n".repeat(45_000) + "Final Validation Performance: 0.5\n";
    let time = median(|| assert!(parse_score(&output).is_some()));
    row("score in 1 MB of output", &format!("{:.4} ms", millis(time)));
}

fn help() {
    let time = median(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mle-star"));
        assert!(command.arg("--help").stdout(Stdio::null()).status().unwrap().success());
    });
    let bare = median(|| assert!(Command::new("true").status().unwrap().success()));
    row("`mle-star --help`", &format!("{:.1} ms (`true`: {:.1} ms)", millis(time), millis(bare)));
}

/// The real binary on a whole default run with trivial Python scripts.
fn whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap();
    fs_err::create_dir_all(path.join("shop/input")).unwrap();
    fs_err::write(path.join("shop/input/train.csv"), "id,x,y\n1,2,3\n").unwrap();
    let task = "competition_id: shop\ntask_type: regression\ndata_modality: tabular\n\
                evaluation_metric: r2\ndescription: Predict y.\n";
    fs_err::write(path.join("shop/task.yaml"), task).unwrap();
    fs_err::write(path.join("replies.yaml"), replies()).unwrap();

    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mle-star"))
        .args(["run", "shop", "--agents", "scripted:replies.yaml", "--quiet"])
        .current_dir(path)
        .env("MLE_STAR_PYTHON", "python3")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut peak, mut cpu) = (0, 0.0);
    while child.try_wait().unwrap().is_none() {
        peak = peak_memory_kb(child.id()).unwrap_or(peak);
        cpu = cpu_seconds(child.id()).unwrap_or(cpu);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    let elapsed = start.elapsed();
    let mut runs = path.join("runs").read_dir_utf8().unwrap();
    let journal = runs.next().unwrap().unwrap().path().join("journal.jsonl");
    let records: Vec<Record> = mle_star_journal::read(&journal).unwrap();
    let steps = records.iter().filter_map(Record::finished).count();
    row(
        &format!("binary, default run, {steps} steps with real Python"),
        &format!(
            "{:.2} s, of which {cpu:.2} CPU-s are its own; {:.1} MB resident at most",
            elapsed.as_secs_f64(),
            count(peak) / 1000.0
        ),
    );
}

fn peak_memory_kb(pid: u32) -> Option<usize> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn replies() -> String {
    let roles = [
        "retriever",
        "init",
        "merger",
        "ablation",
        "summarize",
        "extractor",
        "planner",
        "coder",
        "ens_planner",
        "ensembler",
        "leakage",
        "data",
    ];
    let rule = |role: &str, text: &str| json!({"role": role, "reply": text});
    let mut rules: Vec<_> = roles.iter().map(|role| rule(role, &reply(role, &json!({})))).collect();
    rules.push(json!({"role": "test", "variant": "subsampling_extract", "reply": "```\n```"}));
    let submission = "```python\nopen('./final/submission.csv', 'w').write('id,y\\n1,2\\n')\n```";
    rules.push(rule("test", submission));
    json!({ "replies": rules }).to_string()
}
