//! Every requirement of the user's documents is tested, or says which later work it waits for.
//!
//! A test names the requirements it exercises in the doc comment above it. `docs/requirements.md`
//! is made from those; `UPDATE_DOCS=1 cargo nextest run requirements` writes it anew.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

/// The user's documents: prefix, title and number of requirements.
const DOCUMENTS: [(&str, &str, usize); 5] = [
    ("REQ-EX", "02 Execution", 47),
    ("REQ-P2O", "05 Phase 2, outer loop", 44),
    ("REQ-P2I", "06 Phase 2, inner loop", 50),
    ("REQ-P3", "07 Phase 3", 49),
    ("REQ-OR", "09 Orchestrator", 57),
];

/// What waits for later work.
const PENDING: &[(&str, &str)] = &[];

fn root() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize_utf8().unwrap()
}

fn wanted() -> BTreeSet<String> {
    DOCUMENTS
        .iter()
        .flat_map(|(prefix, _, count)| (1..=*count).map(move |n| format!("{prefix}-{n:03}")))
        .collect()
}

fn rust_files(folder: &Utf8Path, files: &mut Vec<Utf8PathBuf>) {
    for entry in folder.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension() == Some("rs") {
            files.push(path);
        }
    }
}

/// The ids that the doc comment above each test names, and where that test is.
fn named() -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    let id = regex_lite::Regex::new(r"REQ-[A-Z0-9]+-\d{3}").unwrap();
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let in_bench = file.components().any(|part| part.as_str() == "benches");
        let (mut ids, mut is_test) = (BTreeSet::new(), false);
        for line in fs_err::read_to_string(&file).unwrap().lines().map(str::trim) {
            if line.starts_with("///") {
                ids.extend(id.find_iter(line).map(|found| found.as_str().to_owned()));
            } else if line.starts_with("#[") {
                is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
            } else if let Some(name) = function_name(line) {
                if is_test || in_bench {
                    let place = file.strip_prefix(root().join("crates")).unwrap();
                    for id in &ids {
                        named.entry(id.clone()).or_default().insert(format!("{place} `{name}`"));
                    }
                }
                (ids, is_test) = (BTreeSet::new(), false);
            } else if !line.starts_with("reason") && !line.starts_with(")]") {
                (ids, is_test) = (BTreeSet::new(), false);
            }
        }
    }
    named
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start_matches("pub(crate) ").trim_start_matches("async ");
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[test]
fn every_requirement_is_tested_or_pending_and_none_is_both() {
    let (wanted, named) = (wanted(), named());
    let tested: BTreeSet<String> =
        named.keys().filter(|id| wanted.contains(*id)).cloned().collect();
    let pending: BTreeSet<String> = PENDING.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(wanted.len(), 247);
    let neither: Vec<_> =
        wanted.iter().filter(|id| !tested.contains(*id) && !pending.contains(*id)).collect();
    let both: Vec<_> = tested.intersection(&pending).collect();
    let unknown: Vec<_> = pending.difference(&wanted).collect();
    assert!(neither.is_empty(), "neither tested nor pending: {neither:?}");
    assert!(both.is_empty(), "tested and pending: {both:?}");
    assert!(unknown.is_empty(), "pending, but no requirement: {unknown:?}");
    let prefixes: BTreeSet<&str> = DOCUMENTS.iter().map(|(prefix, ..)| *prefix).collect();
    let misspelt: Vec<_> = named
        .keys()
        .filter(|id| prefixes.iter().any(|it| id.starts_with(*it)) && !wanted.contains(*id))
        .collect();
    assert!(misspelt.is_empty(), "named by a test, but no requirement: {misspelt:?}");
}

#[test]
fn the_list_of_requirements_in_the_docs_is_up_to_date() {
    let named = named();
    let mut lines = vec![
        "# Requirements and their tests\n\n\
         Made from the tests by `UPDATE_DOCS=1 cargo nextest run requirements`. A requirement is \
         tested by the tests that name it, or waits for the work that is named in italics."
            .to_owned(),
    ];
    for (prefix, title, count) in DOCUMENTS {
        lines.push(format!("\n## {title}\n"));
        for number in 1..=count {
            let id = format!("{prefix}-{number:03}");
            let tests = named.get(&id).map(|tests| tests.iter().cloned().collect::<Vec<_>>());
            let pending = PENDING.iter().find(|(pending, _)| *pending == id);
            let entry = match (tests, pending) {
                (_, Some((_, issue))) => format!("*{issue}*"),
                (Some(tests), None) => tests.join(", "),
                (None, None) => "nothing".to_owned(),
            };
            lines.push(format!("- {id}: {entry}"));
        }
    }
    let text = lines.join("\n") + "\n";
    let path = root().join("docs/requirements.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs_err::write(&path, &text).unwrap();
    }
    let found = fs_err::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/requirements.md is out of date: UPDATE_DOCS=1 cargo nextest run requirements"
    );
}

/// REQ-EX-040
#[test]
fn only_the_crate_for_execution_starts_programs_or_has_unsafe_code() {
    let crates = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in [
        "agent",
        "claude",
        "forwarder",
        "journal",
        "playbook",
        "policy",
        "profile",
        "python",
        "search",
        "view",
        "web",
        "wire",
        "mle-star",
    ] {
        rust_files(&crates.join(name).join("src"), &mut files);
    }
    let having = |text: &str| {
        let holds = |file: &&Utf8PathBuf| fs_err::read_to_string(file).unwrap().contains(text);
        let found = files.iter().filter(holds);
        found.map(|file| file.strip_prefix(&crates).unwrap().to_string()).collect::<BTreeSet<_>>()
    };
    // The client of a program starts what stands around that program, which is told the program to
    // start. Neither ever starts a script.
    let client = ["claude/src/order.rs", "claude/src/process.rs"].map(str::to_owned);
    assert_eq!(having("Command::new("), BTreeSet::from(client));
    assert_eq!(having("unsafe {"), BTreeSet::new());
}
