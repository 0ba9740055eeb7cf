//! Whatever is read from outside is hostile: no panic, and no time or memory without bound.
//!
//! Short here; `docs/reliability.md` has the command for as long as you like.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use fs_err as fs;
use mle_star::task_file::{TaskOptions, read_task};
use mle_star_agent::Reply;
use mle_star_chaos::simulation::Simulation;
use mle_star_exec::submission::compare_with_sample;
use mle_star_search::block::locate;
use mle_star_search::evaluate::extract_traceback;
use mle_star_search::event::Record;
use mle_star_search::models::{
    ConfigLayer, ExtractorOutput, LeakageDetectionOutput, RetrieverOutput, SolutionPhase,
    SolutionScript, parse_score,
};
use mle_star_search::reply::{extract_code_block, parse_structured, try_extract_code};
use mle_star_search::roles::parse_data_agent_response;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// What a reply, a script or its output is made of, where a parser would stumble.
const PIECES: [&str; 40] = [
    "```",
    "```python\n",
    "~~~",
    "````",
    "\n",
    "\r\n",
    "\r",
    " ",
    "    ",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "\"plans\":",
    "\"code_block\":",
    "\"x\"",
    ":",
    ",",
    "\\",
    "\\u12",
    "'''",
    "\"\"\"",
    "#",
    "def f():",
    "class A:",
    "if x:",
    "exit()",
    "try:",
    "except:",
    "pass",
    "import os",
    "(",
    ")",
    "\u{0}",
    "\u{feff}",
    "Ünï😀",
    "Traceback (most recent call last):\n",
    "Final Validation Performance: ",
    "1e999",
];

fn soup() -> impl Strategy<Value = String> {
    prop_oneof![
        vec(select(PIECES.to_vec()), 0..120).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

/// Reads a text and gives nothing.
type Reader = fn(&str);

/// Everything that reads what an agent wrote or a script printed.
const READERS: [(&str, Reader); 14] = [
    ("extract_code_block", |text| drop(extract_code_block(text))),
    ("try_extract_code", |text| drop(try_extract_code(text))),
    ("models", |text| {
        drop(parse_structured::<RetrieverOutput>(&Reply::text(text), Some("models")))
    }),
    ("plans", |text| drop(parse_structured::<ExtractorOutput>(&Reply::text(text), Some("plans")))),
    ("leaks", |text| {
        drop(parse_structured::<LeakageDetectionOutput>(&Reply::text(text), Some("answers")));
    }),
    ("data", |text| {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let script = SolutionScript::new("x = 1".to_owned(), SolutionPhase::Init, at);
        drop(parse_data_agent_response(text, &script));
    }),
    ("locate in it", |text| {
        let _place = locate(text, "x = 1\n\n ");
    }),
    ("locate it", |text| {
        let _place = locate("x = 1\ny = 2\n", text);
    }),
    ("parse_score", |text| {
        let _score = parse_score(text);
    }),
    ("extract_traceback", |text| drop(extract_traceback(text))),
    ("exit_calls", |text| drop(mle_star_python::exit_calls(text))),
    ("error_masking", |text| drop(mle_star_python::error_masking(text))),
    ("blocks", |text| drop(mle_star_python::blocks(text))),
    ("check_syntax", |text| drop(mle_star_python::check_syntax(text))),
];

/// How long this thread was at work, and not waiting for others on a busy machine.
fn time_at_work() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Eight times as much may take ten times as long, and not sixty-four times.
#[test]
fn long_replies_are_read_in_little_time() {
    for piece in PIECES {
        let text = |bytes: usize| piece.repeat(bytes / piece.len());
        let (short, long) = (text(1 << 12), text(1 << 15));
        for (name, read) in READERS {
            let time = |text: &str| {
                let before = time_at_work();
                read(text);
                time_at_work().saturating_sub(before)
            };
            let (little, much) = (time(&short), time(&long));
            // What is quick is not quadratic.
            let is_linear = much < Duration::from_millis(250) || much < 24 * little;
            assert!(is_linear, "{name} of {piece:?}: {little:?}, then {much:?}");
        }
    }
}

/// The journal of a small run.
fn journal() -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let simulation = Simulation::new("M=1 T=1 K=1 L=1 R=1", u64::MAX).unwrap();
    runtime.block_on(simulation.run()).unwrap();
    fs::read(simulation.journal()).unwrap()
}

/// One way to damage a file.
#[derive(Debug, Clone)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    DropLine(Index),
    RepeatLine(Index),
    SwapLines(Index, Index),
    Insert(Index, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), 1..=u8::MAX).prop_map(|(at, mask)| Damage::Flip(at, mask)),
        any::<Index>().prop_map(Damage::DropLine),
        any::<Index>().prop_map(Damage::RepeatLine),
        any::<(Index, Index)>().prop_map(|(a, b)| Damage::SwapLines(a, b)),
        (any::<Index>(), vec(any::<u8>(), 0..40)).prop_map(|(at, more)| Damage::Insert(at, more)),
    ]
}

fn damaged(bytes: &[u8], damage: &Damage) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    match damage {
        Damage::Cut(at) => bytes[..at.index(bytes.len())].to_vec(),
        Damage::Flip(at, mask) => {
            let mut bytes = bytes.to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
            bytes
        }
        Damage::DropLine(at) => {
            lines.remove(at.index(lines.len()));
            lines.concat()
        }
        Damage::RepeatLine(at) => {
            let line = lines[at.index(lines.len())].clone();
            lines.push(line);
            lines.concat()
        }
        Damage::SwapLines(a, b) => {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
            lines.concat()
        }
        Damage::Insert(at, more) => {
            let mut bytes = bytes.to_vec();
            let at = at.index(bytes.len());
            bytes.splice(at..at, more.iter().copied());
            bytes
        }
    }
}

/// A damaged journal is refused, or the run goes on from what is left of it; it may also find that
/// the two do not fit. It never panics.
#[test]
fn a_damaged_journal_is_refused_or_resumed() {
    let whole = journal();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    proptest!(|(damages in vec(damage(), 1..3))| {
        let simulation = Simulation::new("M=1 T=1 K=1 L=1 R=1", u64::MAX).unwrap();
        let bytes = damages.iter().filter(|_| !whole.is_empty()).fold(whole.clone(), |bytes, it| {
            if bytes.is_empty() { bytes } else { damaged(&bytes, it) }
        });
        fs::write(simulation.journal(), &bytes).unwrap();
        let _records = mle_star_journal::read::<Record>(&simulation.journal());
        let _resumed = runtime.block_on(simulation.run());
    });
}

/// What task files are made of.
const YAML: [&str; 24] = [
    "competition_id: a\n",
    "task_type: regression\n",
    "data_modality: tabular\n",
    "description: x\n",
    "evaluation_metric: r2\n",
    "metric_direction: maximize\n",
    "packages: [",
    "numpy",
    "]",
    "- ",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    ">\n",
    "  ",
    "{",
    "}",
    "!!binary ",
    "? ",
    "---\n",
    "%YAML 9\n",
    "\t",
    "'",
];

proptest! {
    #[test]
    fn replies_and_outputs_of_any_kind_are_read(text in soup()) {
        READERS.iter().for_each(|(_, read)| read(&text));
    }

    #[test]
    fn task_files_of_any_kind_are_read(
        pieces in vec(select(YAML.to_vec()), 0..40), rest: String, bytes: Vec<u8>,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("task.yaml");
        for text in [pieces.concat().into_bytes(), rest.into_bytes(), bytes] {
            fs::write(&path, &text).unwrap();
            let _task = read_task(&path, &TaskOptions::default());
            if let Ok(text) = String::from_utf8(text) {
                let _layer = ConfigLayer::from_pairs(text.lines());
            }
        }
    }

    #[test]
    fn submissions_of_any_kind_are_compared(
        submission in vec(select(b",;\"\r\n\t 0123abc.-\xff\0".to_vec()), 0..400),
        sample in vec(select(b",;\"\r\n\t 0123abc.-\xff\0".to_vec()), 0..400),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::write(root.join("submission.csv"), submission).unwrap();
        fs::write(root.join("sample.csv"), sample).unwrap();
        let _fit = compare_with_sample(&root.join("submission.csv"), &root.join("sample.csv"));
    }
}

/// A few bytes of YAML can stand for more than any memory holds.
#[test]
fn yaml_that_multiplies_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("task.yaml");
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let line = vec![before; 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{line}]").unwrap();
    }
    fs::write(&path, text).unwrap();
    let began = Instant::now();
    assert!(read_task(&path, &TaskOptions::default()).is_err());
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
