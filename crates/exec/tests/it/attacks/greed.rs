//! Scripts that want more of the machine than their share.

use std::process::Command;
use std::time::{Duration, Instant};

use mle_star_exec::limits::{Limits, Resource};
use mle_star_exec::sandbox::{Gap, Tier, Wish};
use mle_star_exec::{Ended, Outcome, Setup};

use super::attack::Attack;
use super::attack::Unheld::Succeeds;
use super::stage::{CONTENT, Stage};
use crate::bench::{Bench, ample, setup};

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 256 * MIB;
/// How far beyond its limit a script may get before it is stopped. Looks are 20 ms apart when
/// memory gets tight, and the machine may be busy.
const OVERSHOOT: u64 = 768 * MIB;

/// A script that takes memory step by step, far beyond its limit, but never all that there is.
const STEPS: &str = "
import ctypes, mmap, os, sys, time
MIB = 1 << 20
kept = []
def steps():
    for _ in range((256 + 2048) // 32): yield 32 * MIB
    print('stopped by itself', flush=True)
    time.sleep(3)
";

/// Ways to take memory.
const HOGS: [(&str, &str); 7] = [
    ("its own", "for size in steps(): kept.append(b'x' * size)"),
    (
        "its children's",
        "
for size in steps():
    if os.fork() == 0:
        kept = b'x' * size
        time.sleep(30)",
    ),
    (
        "shared with children",
        "
for size in steps():
    kept.append(mmap.mmap(-1, size)); kept[-1].write(b'x' * size)",
    ),
    (
        "a nameless file",
        "
file = os.memfd_create('x')
for size in steps(): os.write(file, b'x' * size)",
    ),
    (
        "nameless files, mapped",
        "
for size in steps():
    file = os.memfd_create('x'); os.ftruncate(file, size)
    kept.append(mmap.mmap(file, size)); kept[-1].write(b'x' * size); os.close(file)",
    ),
    (
        "shared memory with a name",
        "
from multiprocessing import shared_memory
for size in steps():
    name = 'mle-star-hog-' + os.getcwd().replace('/', '-') + str(len(kept))
    kept.append(shared_memory.SharedMemory(name, create=True, size=size))
    kept[-1].buf[:] = b'x' * size",
    ),
    (
        "that does not show",
        "
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for size in steps():
    at = libc.mmap(None, ctypes.c_size_t(size), 3, 0x21, -1, 0)
    ctypes.memset(at, 1, size)
    libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), 4)",
    ),
];

/// Shared memory that stays when the script is gone, and that of others.
pub(super) fn attacks() -> Vec<Attack> {
    let attack = |name, script, came_through| Attack {
        name,
        gap: Gap::SharedMemory,
        script,
        came_through,
        unheld: Succeeds,
    };
    vec![
        attack("leave a file in shared memory", "open(SHARED, 'w').write('mine')", |stage, _| {
            stage.shared().exists() && std::fs::read(stage.shared()).unwrap() == b"mine"
        }),
        attack(
            "change a file in shared memory",
            "
open(OF_OTHERS, 'r+').write('mine')",
            |stage, _| stage.of_others() != CONTENT,
        ),
        attack(
            "leave shared memory without a file",
            "
number = libc.shmget(KEY, 1 << 20, 0o1600)
libc.shmat.restype = ctypes.c_void_p
if number >= 0: ctypes.memset(libc.shmat(number, None, 0), 1, 1 << 20)",
            left_a_segment,
        ),
    ]
}

fn left_a_segment(stage: &Stage, _: &Outcome) -> bool {
    let key = stage.key();
    let segments = std::fs::read("/proc/sysvipc/shm").unwrap_or_default();
    let segments = String::from_utf8(segments).unwrap();
    let is_left =
        segments.lines().any(|line| line.split_whitespace().next() == Some(&key.to_string()));
    if is_left {
        Command::new("ipcrm").args(["-M", &key.to_string()]).status().unwrap();
    }
    is_left
}

async fn bench(tier: Tier, limits: Limits) -> Bench {
    Bench::with(Setup { limits, ..setup(Wish::Exactly(tier)).await }).await
}

async fn every_hog_is_stopped(tier: Tier) {
    for (kind, script) in HOGS {
        let bench = bench(tier, Limits { memory_bytes: MEMORY, ..ample() }).await;
        let script = format!("{STEPS}{script}");
        let outcome = bench.run(&script).await;
        remove_shared(&bench);
        let said = format!("memory {kind}: {outcome:?}");
        let Ended::Exceeded { resource: Resource::Memory, used, limit } = outcome.ended else {
            // A file system of that size ends a script, too.
            assert!(tier == Tier::Strong && kind == "shared memory with a name", "{said}");
            assert_eq!(outcome.ended, Ended::Signaled { signal: 7 }, "{said}");
            continue;
        };
        assert!(limit == MEMORY && used > MEMORY && used < MEMORY + OVERSHOOT, "{said}");
        assert!(outcome.usage.memory_bytes < MEMORY + OVERSHOOT, "{said}");
        assert_eq!(bench.processes(), [0; 0], "{said}");
    }
}

/// Removes what a script left in the machine's shared memory.
fn remove_shared(bench: &Bench) {
    let prefix = format!("mle-star-hog-{}", bench.workspace().as_str().replace('/', "-"));
    for entry in std::fs::read_dir("/dev/shm").unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[tokio::test]
async fn memory_of_any_kind_is_counted_in_the_strong_tier() {
    every_hog_is_stopped(Tier::Strong).await;
}

#[tokio::test]
async fn memory_of_any_kind_is_counted_in_the_fallback_tier() {
    every_hog_is_stopped(Tier::Fallback).await;
}

#[tokio::test]
async fn memory_of_any_kind_is_counted_by_the_limits() {
    every_hog_is_stopped(Tier::Limits).await;
}

/// Doubles nine times, and ends by itself.
const BOMB: &str = "
import os, time
start = time.time()
for _ in range(9):
    try: os.fork()
    except OSError: time.sleep(0.05)
time.sleep(max(0, start + 2 - time.time()))
";

/// Starts five hundred threads, and ends by itself.
const THREADS: &str = "
import threading, time
for _ in range(500):
    try: threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
    except RuntimeError: break
time.sleep(2)
";

#[tokio::test]
async fn bombs_meet_their_limit() {
    for tier in [Tier::Strong, Tier::Fallback, Tier::Limits] {
        for script in [BOMB, THREADS] {
            let bench = bench(tier, Limits { processes: 350, ..ample() }).await;
            let start = Instant::now();
            let outcome = bench.run(script).await;
            // In namespaces, the kernel itself may not let it have more.
            let ended = outcome.ended;
            let was_refused = tier == Tier::Strong && matches!(ended, Ended::Exited { .. });
            let was_stopped =
                matches!(ended, Ended::Exceeded { resource: Resource::Processes, .. });
            assert!(was_refused || was_stopped, "{tier}: {ended:?} {}", outcome.stderr.text);
            assert!(outcome.usage.processes < 600, "{:?}", outcome.usage);
            assert!(outcome.usage.processes > 300, "{:?}", outcome.usage);
            assert_eq!(bench.processes(), [0; 0]);
            assert!(start.elapsed() < Duration::from_secs(30));
        }
    }
}

#[tokio::test]
async fn two_gigabytes_of_output_cost_little() {
    let bench = bench(Tier::Strong, Limits { output_bytes: 3_000_000_000, ..ample() }).await;
    let outcome = bench
        .run(
            "import os\n\
             chunk = b'x' * 1_000_000\n\
             for _ in range(2000):\n    \
                 rest = chunk\n    \
                 while rest: rest = rest[os.write(1, rest):]\n\
             print('\\nthe end')",
        )
        .await;
    assert_eq!(outcome.ended, Ended::Exited { code: 0 });
    assert_eq!(outcome.stdout.total_bytes, 2_000_000_009);
    assert!(outcome.stdout.text.len() < 70_000 && outcome.stdout.text.ends_with("\nthe end\n"));
    let kept = std::fs::metadata(outcome.stdout.file.unwrap()).unwrap().len();
    assert!(kept < 200 * MIB, "{kept}");
}

#[tokio::test]
async fn output_without_end_meets_its_limit() {
    for tier in [Tier::Strong, Tier::Fallback, Tier::Limits, Tier::Off] {
        let bench = bench(tier, Limits { output_bytes: 50_000_000, ..ample() }).await;
        let outcome = bench.run("import os\nwhile True: os.write(2, b'x' * 65536)").await;
        let Ended::Exceeded { resource: Resource::Output, used, .. } = outcome.ended else {
            panic!("{tier}: {:?}", outcome.ended)
        };
        assert!((50_000_001..60_000_000).contains(&used), "{used}");
        assert_eq!(bench.processes(), [0; 0]);
    }
}

/// Writes 192 MiB and waits to be found out.
const FILL: &str = "
import os, socket, time
def fill(file):
    for _ in range(12): os.write(file, b'x' * (16 << 20))
    return file
";

const FILLS: [(&str, &str); 6] = [
    ("a file", "fill(os.open('x', os.O_CREAT | os.O_WRONLY)); time.sleep(20)"),
    (
        "a removed file",
        "
file = os.open('x', os.O_CREAT | os.O_WRONLY); os.remove('x'); fill(file); time.sleep(20)",
    ),
    (
        "a file that never had a name",
        "
fill(os.open('.', os.O_TMPFILE | os.O_WRONLY)); time.sleep(20)",
    ),
    (
        "many files",
        "
for number in range(6000):
    file = os.open(str(number), os.O_CREAT | os.O_WRONLY)
    os.write(file, b'x' * 16_000)
    os.close(file)
time.sleep(20)",
    ),
    (
        "a file in a folder that cannot be listed",
        "
os.makedirs('d/d', 0o300); os.chmod('d', 0o300)
fill(os.open('d/d/x', os.O_CREAT | os.O_WRONLY)); time.sleep(20)",
    ),
    (
        "a file deeper than any path",
        "
for _ in range(3000): os.mkdir('d'); os.chdir('d')
fill(os.open('x', os.O_CREAT | os.O_WRONLY)); time.sleep(20)",
    ),
];

#[tokio::test]
async fn whoever_fills_the_disk_is_stopped() {
    let fills = FILLS.iter().map(|(kind, script)| async move {
        let limits = Limits { workspace_bytes: 64 * MIB, ..ample() };
        let tier = Tier::Fallback;
        let bench = bench(tier, limits).await;
        let outcome = bench.run(&format!("{FILL}{script}")).await;
        let Ended::Exceeded { resource: Resource::Workspace, used, .. } = outcome.ended else {
            panic!("{kind} in {tier}: {:?} {}", outcome.ended, outcome.stderr.text)
        };
        assert!((64 * MIB..256 * MIB).contains(&used), "{kind}: {used}");
    });
    futures::future::join_all(fills).await;
}

#[tokio::test]
async fn a_file_that_is_mostly_nothing_is_no_large_file() {
    let limits = Limits { workspace_bytes: 64 * MIB, file_bytes: 4096 * MIB, ..ample() };
    for tier in [Tier::Strong, Tier::Fallback] {
        let bench = bench(tier, limits).await;
        let script =
            "import os, time; open('x', 'w').close(); os.truncate('x', 3 << 30); time.sleep(2.5)";
        let outcome = bench.run(script).await;
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{}", outcome.stderr.text);
        assert!(outcome.usage.workspace_bytes < MIB, "{:?}", outcome.usage);
    }
}

#[tokio::test]
async fn no_file_grows_beyond_its_limit_whatever_a_script_says() {
    for tier in [Tier::Strong, Tier::Fallback, Tier::Limits] {
        let bench = bench(tier, Limits { file_bytes: 8 * MIB, ..ample() }).await;
        let outcome = bench
            .run(
                "import resource\n\
                 try: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)); print('raised')\n\
                 except (ValueError, OSError): pass\n\
                 open('x', 'wb').write(b'x' * (9 << 20))",
            )
            .await;
        assert_eq!(outcome.stdout.text, "", "{tier}");
        assert!(outcome.stderr.text.contains("File too large"), "{}", outcome.stderr.text);
        let size = std::fs::metadata(bench.workspace().join("x")).unwrap().len();
        assert!(size <= 8 * MIB, "{size}");
    }
}
