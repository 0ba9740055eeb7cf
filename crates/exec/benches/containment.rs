//! What holding a script costs: `cargo bench -p mle-star-exec --bench containment`.
//!
//! Machines are noisy: what is compared runs in turns, and stands beside the bare operation.
//! `docs/benchmarks.md` keeps the figures and says how to read them.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints or fails")]

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use futures::future::{Either, join_all, select};
use mle_star_exec::limits::Limits;
use mle_star_exec::sandbox::{Network, Tier, Wish};
use mle_star_exec::slots::{Slots, our_cores};
use mle_star_exec::{Ended, Executor, Job, Local, Outcome, Setup, Supervisor, machine, venv};

const HELD: [Tier; 2] = [Tier::Strong, Tier::Fallback];
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    // Names of parts, to measure only those.
    let parts: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|it| it == part);
    println!("| what | figure |\n| --- | --- |");
    if wanted("start") {
        start().await;
    }
    if wanted("flood") {
        flood().await;
    }
    if wanted("kill") {
        kill().await;
    }
    if wanted("watch") {
        watch().await;
    }
    if wanted("slots") {
        slots().await;
    }
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

/// From asking for an empty script until its outcome is there, against Python alone.
async fn start() {
    const ROUNDS: usize = 60;
    let tiers = [Tier::Strong, Tier::Fallback, Tier::Limits];
    let mut worlds = Vec::new();
    for tier in tiers {
        worlds.extend(World::held(tier).await);
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let empty = folder.path().join("empty.py");
    fs::write(&empty, "").unwrap();
    let python = python().await;

    let mut bare = Vec::new();
    let mut synced = Vec::new();
    let mut more = vec![Vec::new(); worlds.len()];
    for _ in 0..ROUNDS {
        let alone = time(|| {
            let mut command = Command::new(&python);
            let status = command.arg(&empty).stdin(Stdio::null()).status();
            assert!(status.unwrap().success());
        });
        bare.push(alone);
        synced.push(time(|| {
            let mut file = fs::File::create(folder.path().join("synced")).unwrap();
            file.write_all(&[b'x'; 2000]).unwrap();
            file.sync_all().unwrap();
        }));
        for (world, more) in worlds.iter().zip(&mut more) {
            let job = world.job("");
            let began = Instant::now();
            assert_eq!(world.run(&job).await.ended, Ended::Exited { code: 0 });
            // Neighbours in time are compared: what else the machine does slows both.
            more.push(millis(began.elapsed()) - millis(alone));
        }
    }
    row("python, empty script, bare", &format!("{:.1} ms", millis(median(bare))));
    row("writing and syncing 2 kB, bare", &format!("{:.1} ms", millis(median(synced))));
    for (world, mut more) in worlds.iter().zip(more) {
        more.sort_by(f64::total_cmp);
        let [first, middle, last] = [1, 2, 3]
            .map(|quarter| more.get(more.len() * quarter / 4).copied().unwrap_or(f64::NAN));
        row(
            &format!("the same script, {}", world.tier()),
            &format!("{middle:+.1} ms (half of them between {first:+.1} and {last:+.1} ms)"),
        );
    }
}

/// A script that prints 2 GB, against a reader that throws it away.
async fn flood() {
    const SCRIPT: &str = "import sys\n\
         line = b'x' * 99 + b'\\n'\n\
         for _ in range(20_000): sys.stdout.buffer.write(line * 1000)\n\
         sys.stdout.flush()\n\
         print('Final Validation Performance: 0.5')";
    let python = python().await;
    let mut worlds = Vec::new();
    for tier in HELD {
        worlds.extend(World::held(tier).await);
    }
    let mut bare = Vec::new();
    let mut held = vec![Vec::new(); worlds.len()];
    let peak = Cell::new(0);
    for _ in 0..5 {
        bare.push(time(|| {
            let mut command = Command::new(&python);
            let mut child = command.args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn().unwrap();
            let mut reader = child.stdout.take().unwrap();
            let mut chunk = vec![0; 64 * 1024];
            while reader.read(&mut chunk).unwrap() > 0 {}
            assert!(child.wait().unwrap().success());
        }));
        for (world, times) in worlds.iter().zip(&mut held) {
            let job = world.job(SCRIPT);
            let look = |supervisor: u32| {
                peak.set(peak.get().max(peak_memory_kb(supervisor).unwrap_or_default()));
            };
            let outcome = world.run_watched(&job, look).await;
            assert_eq!(outcome.stdout.total_bytes, 2_000_000_034);
            assert!(outcome.stdout.text.ends_with("\nFinal Validation Performance: 0.5\n"));
            times.push(Duration::from_secs_f64(outcome.duration_seconds));
        }
    }
    let rate = |times: Vec<Duration>| format!("{:.1} GB/s", 2.0 / median(times).as_secs_f64());
    row("2 GB of output, read and thrown away", &rate(bare));
    for (world, times) in worlds.iter().zip(held) {
        row(&format!("2 GB of output, {}, both ends kept", world.tier()), &rate(times));
    }
    let peak = f64::from(peak.get()) / 1000.0;
    row("memory of the supervisor meanwhile", &format!("{peak:.1} MB at most"));
}

/// From giving up on a script with 50 processes that do not want to end until there is none.
async fn kill() {
    const SCRIPT: &str = "import os, signal, time\n\
         signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         for number in range(49):\n    \
             if os.fork() == 0:\n        \
                 if number % 2: os.setsid()\n        \
                 while True: time.sleep(600)\n\
         open('on', 'w').close()\n\
         time.sleep(600)";
    for tier in HELD {
        let Some(world) = World::held(tier).await else { continue };
        let mut times = Vec::new();
        for _ in 0..7 {
            let job = world.job(SCRIPT);
            let is_on = async || {
                while !job.workspace.join("on").exists() || processes_in(&job.workspace) < 50 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            match select(world.local.run(&job), Box::pin(is_on())).await {
                Either::Left((outcome, _)) => panic!("{outcome:?}"),
                Either::Right(((), running)) => drop(running),
            }
            times.push(time(|| while processes_in(&job.workspace) > 0 {}));
            fs::remove_file(job.workspace.join("on")).unwrap();
        }
        let longest = times.iter().copied().max().unwrap_or_default();
        row(
            &format!("killing 50 processes, {tier}"),
            &format!("{:.0} ms, at most {:.0} ms", millis(median(times)), millis(longest)),
        );
    }
}

/// Processor time of a supervisor whose script has 20 processes and does nothing for 10 s.
async fn watch() {
    const SCRIPT: &str = "import os, time\n\
         for _ in range(19):\n    \
             if os.fork() == 0: break\n\
         time.sleep(10)";
    for tier in HELD {
        let Some(world) = World::held(tier).await else { continue };
        let job = world.job(SCRIPT);
        let used = Cell::new(Duration::ZERO);
        let watched = |supervisor: u32| used.set(processor_time(supervisor).unwrap_or(used.get()));
        let outcome = world.run_watched(&job, watched).await;
        let share = used.get().as_secs_f64() / outcome.duration_seconds;
        row(
            &format!("watching 20 processes, {tier}"),
            &format!("{:.2} % of a core", share * 100.0),
        );
    }
}

/// Two LightGBM scripts side by side, each on its share of the cores, against one after the other
/// on all of them.
async fn slots() {
    const SCRIPT: &str = "import lightgbm, numpy as np\n\
         random = np.random.default_rng(0)\n\
         X = random.normal(size=(200_000, 30))\n\
         y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + random.normal(size=200_000)\n\
         settings = {'objective': 'regression', 'verbose': -1, 'seed': 0, 'num_leaves': 63}\n\
         model = lightgbm.train(settings, lightgbm.Dataset(X, y), 40)\n\
         print(round(float(model.predict(X[:5]).sum()), 3))";
    let Some(python) = python_with_libraries().await else {
        row("two LightGBM scripts", "not measured: no environment with LightGBM");
        return;
    };
    let cores = our_cores();
    let setup = |slots: Slots| Setup { slots, ..setup(python.clone(), Wish::Best) };
    let both = World::new(setup(Slots::new(2, &cores, &[]))).await.unwrap();
    let one = World::new(setup(Slots::new(1, &cores, &[]))).await.unwrap();
    let (mut beside, mut after) = (Vec::new(), Vec::new());
    for round in 0..4 {
        for (world, times) in [(&both, &mut beside), (&one, &mut after)] {
            // The executor makes the second script wait where there is one slot.
            let jobs = [world.job(SCRIPT), world.job(SCRIPT)];
            let began = Instant::now();
            let outcomes = join_all(jobs.iter().map(|job| world.run(job))).await;
            if round > 0 {
                times.push(began.elapsed()); // the first reads everything from disk
            }
            assert!(outcomes.iter().all(|outcome| outcome.ended == Ended::Exited { code: 0 }));
        }
    }
    let (beside, after) = (median(beside).as_secs_f64(), median(after).as_secs_f64());
    row(
        &format!("two LightGBM scripts on {} cores", cores.len()),
        &format!(
            "side by side {beside:.2} s, one after the other {after:.2} s: {:.2} of the time",
            beside / after
        ),
    );
}

/// The Python of these scripts: the interpreter itself, not a shim in front of it.
async fn python() -> Utf8PathBuf {
    machine::detect(None).await.unwrap().python.into()
}

/// A Python with numpy and LightGBM.
async fn python_with_libraries() -> Option<Utf8PathBuf> {
    let cache = Utf8Path::new(env!("CARGO_TARGET_TMPDIR"));
    venv::provide_standard(cache, &|_| ()).await.ok()
}

fn setup(python: Utf8PathBuf, wish: Wish) -> Setup {
    Setup {
        python,
        supervisor: Supervisor {
            program: env!("CARGO_BIN_EXE_mle-star-shim").into(),
            arguments: Vec::new(),
        },
        wish,
        network: Network::Deny,
        readable: Vec::new(),
        devices: Vec::new(),
        limits: Limits {
            memory_bytes: 4 << 30,
            processes: 1024,
            output_bytes: 10_000_000_000,
            workspace_bytes: 2 << 30,
            file_bytes: 2 << 30,
        },
        slots: Slots::new(1, &our_cores(), &[]),
    }
}

/// A place to run scripts.
struct World {
    _folder: tempfile::TempDir,
    root: Utf8PathBuf,
    local: Local,
    jobs: Cell<usize>,
}

impl World {
    /// A place in this sandbox, if it works here.
    async fn held(tier: Tier) -> Option<Self> {
        let world = Self::new(setup(python().await, Wish::Exactly(tier))).await;
        if world.is_none() {
            row(&format!("{tier}"), "not measured: it does not work here");
        }
        world
    }

    async fn new(setup: Setup) -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        fs::create_dir(root.join("data")).unwrap();
        let local = setup.try_out().await.ok()?;
        Some(Self { _folder: folder, root, local, jobs: Cell::new(0) })
    }

    fn tier(&self) -> Tier {
        self.local.containment().unwrap().tier
    }

    fn job(&self, script: &str) -> Job {
        let number = self.jobs.replace(self.jobs.get() + 1);
        Job {
            script: script.to_owned(),
            filename: "solution.py".to_owned(),
            workspace: self.root.join(format!("work-{}", number % 2)),
            data_dir: self.root.join("data"),
            time_limit: PATIENCE,
            records: self.root.join(format!("jobs/{number}")),
        }
    }

    async fn run(&self, job: &Job) -> Outcome {
        self.local.run(job).await.unwrap()
    }

    /// Runs a job and looks at its supervisor again and again meanwhile.
    async fn run_watched(&self, job: &Job, look: impl Fn(u32)) -> Outcome {
        let watching = Box::pin(async {
            loop {
                let lock = fs::read_to_string(job.records.join("lock")).unwrap_or_default();
                if let Ok(supervisor) = lock.trim().parse() {
                    look(supervisor);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        match select(Box::pin(self.run(job)), watching).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(((), _)) => unreachable!("nobody stops looking"),
        }
    }
}

/// How many living processes work in `folder`.
fn processes_in(folder: &Utf8Path) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let place = |process: fs::DirEntry| std::fs::read_link(process.path().join("cwd")).ok();
    all.filter_map(place).filter(|place| place.starts_with(folder)).count()
}

fn peak_memory_kb(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Of a process with one thread.
fn processor_time(pid: u32) -> Option<Duration> {
    let times = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    times.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
