//! A task folder with data, and scripted replies for it.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use camino::{Utf8Path, Utf8PathBuf};
use mle_star_search::event::Record;
use tempfile::TempDir;

/// A folder with a task, its data and a file of replies.
pub(crate) struct Shop {
    pub(crate) folder: TempDir,
}

impl Shop {
    /// A task with useful replies for every role.
    pub(crate) fn new() -> Self {
        let shop = Self { folder: tempfile::tempdir().unwrap() };
        shop.write("shop/task.yaml", TASK);
        shop.write("shop/input/train.csv", "id,x,y\n1,2,3\n2,3,4\n");
        shop.write("shop/input/test.csv", "id,x\n3,4\n");
        shop.write("replies.yaml", REPLIES);
        shop
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    /// The binary, in this folder, with nothing of ours in the environment but the Python that is
    /// there: none of these tests needs packages, and making an environment takes a network.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("mle-star"));
        command.current_dir(self.path()).env("NO_COLOR", "1");
        let ours = ["MLE_STAR_", "ANTHROPIC_", "CLAUDE_"];
        for (name, _) in std::env::vars_os() {
            if ours.iter().any(|it| name.to_string_lossy().starts_with(it)) {
                command.env_remove(name);
            }
        }
        command.env("MLE_STAR_PYTHON", "python3");
        command
    }

    /// `mle-star run shop` with the scripted replies and `settings` such as `T=1 K=2`.
    pub(crate) fn run(&self, settings: &str) -> Command {
        let mut command = self.command();
        command.args(["run", "shop", "--agents", "scripted:replies.yaml"]);
        for setting in settings.split_whitespace() {
            command.args(["-s", setting]);
        }
        command
    }

    /// Starts `command` in the background, with its standard output at `stdout`.
    pub(crate) fn start(&self, command: &Command, stdout: impl Into<Stdio>) -> Child {
        let mut started = std::process::Command::new(command.get_program());
        started.args(command.get_args()).current_dir(self.path());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => started.env(name, value),
                None => started.env_remove(name),
            };
        }
        started.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Makes the scripts of the candidates wait until [`open`](Self::open) is called.
    pub(crate) fn close(&self) {
        // It does not wait for ever, so that a failed test leaves nothing behind.
        // The data is all of this that a script can see.
        let wait = "import csv, os, time
      for _ in range(20_000):
          if os.stat('input/train.csv').st_mtime > 1: time.sleep(0.01)
";
        self.write("replies.yaml", &REPLIES.replace("import csv\n", wait));
    }

    /// Lets the waiting scripts go on.
    pub(crate) fn open(&self) {
        let data = std::fs::File::open(self.path().join("shop/input/train.csv")).unwrap();
        data.set_modified(std::time::UNIX_EPOCH).unwrap();
    }

    /// Waits until a script runs.
    pub(crate) fn wait_for_script(&self) {
        wait_until("a script runs", || !processes_in(self.path()).is_empty());
    }

    /// Waits until no script runs: one that was killed takes a moment to die.
    pub(crate) fn wait_for_the_end_of_scripts(&self) {
        wait_until("no script runs", || processes_in(self.path()).is_empty());
    }

    /// A text without what differs from one time to the next: folder, run, interpreter and times.
    pub(crate) fn plain(&self, text: &str) -> String {
        let mut text = text.replace(self.path().as_str(), "[FOLDER]");
        for (volatile, name) in [
            (r"(?m)^\d{4}-\d\d-\d\dT[0-9:]+Z (INFO|WARNING|ERROR) mle_star: ", ""),
            (r#"(?s)"containment": \{.*?"cores": \d+\s*\}"#, r#""containment": "[CONTAINMENT]""#),
            (r"(?m)^(WARNING: )?sandbox: .*(\n  no .*)*", "[SANDBOX]"),
            (r"shop-\d{8}-\d{6}(-\d+)?", "[RUN]"),
            (r"/\S*/python\S*", "[PYTHON]"),
            (r"sandbox: \w+; memory: [0-9.]+ \w?B", "[SANDBOX]"),
            (r"time [a-z0-9. ]+ \(phase 1: [a-z0-9.:, ]+\)", "[TIMES]"),
            (r"\b\d+\.\d s\b", "[TIME]"),
            (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "[MOMENT]"),
        ] {
            let volatile = regex_lite::Regex::new(volatile).unwrap();
            text = volatile.replace_all(&text, name).into_owned();
        }
        text
    }

    /// The only run directory.
    pub(crate) fn only_run(&self) -> Utf8PathBuf {
        let mut runs = self.path().join("runs").read_dir_utf8().unwrap();
        let run = runs.next().unwrap().unwrap().into_path();
        assert!(runs.next().is_none(), "there is more than one run");
        run
    }
}

/// The replies, but with this one for `role`.
pub(crate) fn with_reply(role: &str, reply: &str) -> String {
    let rule = serde_json::json!({ "role": role, "reply": reply });
    REPLIES.replacen("replies:\n", &format!("replies:\n  - {rule}\n"), 1)
}

/// Says that a test checks nothing here, and why.
pub(crate) fn skipped(why: &str) {
    // Not `eprintln`, which the test runner keeps to itself when a test passes.
    writeln!(std::io::stderr(), "skipped: {why}").ok();
}

/// What a journal holds.
pub(crate) fn records(run: &Utf8Path) -> Vec<Record> {
    mle_star_journal::read(&run.join("journal.jsonl")).unwrap()
}

/// The keys of the finished steps.
pub(crate) fn steps(run: &Utf8Path) -> Vec<String> {
    let records = records(run);
    records.iter().filter_map(Record::finished).map(|(key, _)| key.to_string()).collect()
}

/// The processes in the workspaces of the runs in `folder`.
fn processes_in(folder: &Utf8Path) -> Vec<String> {
    let runs = folder.join("runs");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let inside = processes.filter(|process| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&runs))
    });
    inside.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits for a minute at most.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "not in a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const TASK: &str = "\
competition_id: shop
task_type: regression
data_modality: tabular
evaluation_metric: r2
description: Predict y from x.
";

/// Candidates score 0.5, merges 0.6, refinements a little more with every step, ensembles 0.9.
pub(crate) const REPLIES: &str = r#"
replies:
  - role: retriever
    cost_usd: 0.01
    reply: |
      {"models": [
        {"model_name": "a", "example_code": "fit()"}, {"model_name": "b", "example_code": "fit()"},
        {"model_name": "c", "example_code": "fit()"}, {"model_name": "d", "example_code": "fit()"}]}
  - role: init
    cost_usd: 0.01
    reply: |
      ```python
      import csv
      rows = list(csv.DictReader(open("./input/train.csv")))
      score = 0.5$candidate
      print(f"Final Validation Performance: {score}")
      ```
  - role: merger
    reply: |
      ```python
      gain = 0.0
      score = 0.6 + gain
      print(f"Final Validation Performance: {score}")
      ```
  - role: ablation
    reply: |
      ```python
      print("baseline 0.6, without the gain 0.5")
      ```
  - role: summarize
    reply: The gain matters most.
  - role: extractor
    step: "*/outer-0/*"
    reply: '{"plans": [{"code_block": "gain = 0.0", "plan": "raise the gain"}]}'
  - role: extractor
    reply: '{"plans": [{"code_block": "score = 0.6 + gain", "plan": "add more"}]}'
  - role: planner
    reply: plan $inner
  - role: coder
    step: "*/outer-0/*"
    reply: |
      ```python
      gain = 0.01$inner
      ```
  - role: coder
    reply: |
      ```python
      score = 0.6 + gain + 0.0$outer$inner
      ```
  - role: ens_planner
    reply: average, round $round
  - role: ensembler
    reply: |
      ```python
      score = 0.9
      open("./final/submission.csv", "w").write("id,y\n3,5\n")
      print(f"Final Validation Performance: {score}")
      ```
  - role: leakage
    variant: detection
    reply: '{"answers": [{"leakage_status": "No Data Leakage", "code_block": "x"}]}'
  - role: data
    reply: All the provided information is used.
  - role: debugger
    no_answer: there is nothing to mend
  - role: test
    variant: subsampling_extract
    reply: "```\n```"
  - role: test
    reply: |
      ```python
      open("./final/submission.csv", "w").write("id,y\n3,4\n")
      ```
"#;
