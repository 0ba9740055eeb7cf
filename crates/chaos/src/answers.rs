//! What the agents say, and what is wrong with it.
//!
//! Answers are a file for scripted agents. What goes wrong is part of them: the same step always
//! gets the same answer, so a run that is resumed must end as one that was left in peace.

use serde_json::{Value, json};

use crate::place::Agents;
use crate::random::Random;

/// The first line of a submission, and the numbers of its rows.
pub const HEADER: &str = "id,y";
/// See [`HEADER`].
pub const ROWS: std::ops::Range<u32> = 1000..1400;

/// What can be wrong with what an agent says.
const OF_REPLIES: [&str; 8] = [
    "garbage",
    "empty",
    "truncated",
    "5 MB",
    "prose only",
    "wrong schema",
    "refusal",
    "another language",
];

/// What can be wrong with a script: its name, and the Python that does it.
const OF_SCRIPTS: [(&str, &str); 9] = [
    ("crash", "raise ValueError('bad luck')"),
    ("hang", "import time; time.sleep(3600)"),
    ("flood", "import sys\nfor _ in range(20_000): sys.stdout.write('x' * 1000 + '\\n')"),
    ("out of memory", "hoard = b'x' * (700 << 20)"),
    ("no score", "import builtins; builtins.print = lambda *a, **k: None"),
    (
        "NaN score",
        "import builtins; say = builtins.print\n\
         builtins.print = lambda *a, **k: say('Final Validation Performance: nan')",
    ),
    (
        "stray process",
        "import os\nif os.fork() == 0:\n    os.setsid()\n    import time; time.sleep(3600)",
    ),
    (
        "wrong submission",
        "import builtins; opened = builtins.open\n\
         builtins.open = lambda f, *a: opened('/dev/null' if 'submission' in str(f) else f, *a)",
    ),
    // Named after the folder of the trial, as others run beside it.
    (
        "shared memory",
        "import os\nopen('/dev/shm/' + os.getcwd().split('/runs/')[0].split('/')[-1], 'w').write('x')",
    ),
];

/// Those of them that leave something on the machine, unless a sandbox keeps it.
const LEAVING: [&str; 2] = ["stray process", "shared memory"];

/// The answers of one run.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    rules: Vec<Value>,
    /// What is wrong with them, one line each.
    pub flaws: Vec<String>,
}

impl Answers {
    /// Answers with nothing wrong in them.
    pub fn good() -> Self {
        Self::default()
    }

    /// Answers of which so many in a hundred are wrong, among those to `steps`.
    pub fn flawed(steps: &[String], share: u64, random: &mut Random) -> Self {
        let mut answers = Self::default();
        for step in steps {
            if random.percent(share) {
                answers.spoil(step, random);
            }
        }
        answers
    }

    /// Answers with one flaw of this name, in a step that it can be in.
    pub fn with_flaw(flaw: &str, steps: &[String], random: &mut Random) -> Self {
        let mut answers = Self::default();
        let writes = |step: &&String| good_reply(role_of(step)).contains("```python");
        let choices: Vec<&String> = match flaw {
            "wrong submission" => steps.iter().filter(|it| role_of(it) == "test").collect(),
            _ => steps.iter().filter(writes).filter(|it| !is_endless(flaw, it)).collect(),
        };
        if let Some(step) = random.pick(&choices) {
            answers.spoil_with(step, flaw);
        }
        answers
    }

    /// The names of everything that can be wrong.
    pub fn all_flaws() -> Vec<&'static str> {
        OF_REPLIES.into_iter().chain(OF_SCRIPTS.map(|(name, _)| name)).collect()
    }

    /// Who may give them, if the CLI is wanted: what leaves something on the machine needs the
    /// sandbox, which the stand-in for the CLI cannot work in.
    pub fn agents(&self, over_cli: bool) -> Agents {
        let leaves = |flaw: &String| LEAVING.iter().any(|it| flaw.starts_with(it));
        if over_cli && !self.flaws.iter().any(leaves) { Agents::OverCli } else { Agents::Scripted }
    }

    /// Whether a study hangs, which takes half of the time that the whole run has: only a run with
    /// little of it ends soon.
    pub fn need_a_short_run(&self) -> bool {
        let mut flaws = self.flaws.iter().filter_map(|it| it.split_once(" at "));
        flaws.any(|(flaw, step)| is_endless(flaw, step))
    }

    fn spoil(&mut self, step: &str, random: &mut Random) {
        let all = Self::all_flaws();
        let scripted = good_reply(role_of(step)).contains("```python");
        let choices = if scripted { all.as_slice() } else { all.get(..8).unwrap_or_default() };
        let choices: Vec<&str> =
            choices.iter().filter(|flaw| is_possible(flaw, step)).copied().collect();
        if let Some(flaw) = random.pick(&choices) {
            self.spoil_with(step, flaw);
        }
    }

    fn spoil_with(&mut self, step: &str, flaw: &str) {
        let role = role_of(step);
        let good = good_reply(role);
        let script = OF_SCRIPTS.iter().find(|(name, _)| *name == flaw).map(|(_, python)| *python);
        let reply = match (flaw, script) {
            (_, Some(python)) => good.replacen("```python\n", &format!("```python\n{python}\n"), 1),
            ("garbage", _) => "\u{1}\u{fffd}]}{[<%$#\\u12 ```".to_owned(),
            ("empty", _) => String::new(),
            ("truncated", _) => good.chars().take(good.len() / 2).collect(),
            ("5 MB", _) => "All work and no play makes a long reply. ".repeat(125_000),
            ("wrong schema", _) => r#"{"nope": [1, {"plan": 3}]}"#.to_owned(),
            ("another language", _) => "```javascript\nconsole.log(0.7)\n```".to_owned(),
            _ => "I would rather talk about the weather, which is fine.".to_owned(),
        };
        self.rules.push(match flaw {
            "refusal" => json!({ "role": role, "step": step, "no_answer": "declined" }),
            _ => json!({ "role": role, "step": step, "reply": reply, "cost_usd": 0.01 }),
        });
        self.flaws.push(format!("{flaw} at {step}"));
    }

    /// Answers with this flaw in this step.
    pub fn with_flaw_at(step: &str, flaw: &str) -> Self {
        let mut answers = Self::default();
        answers.spoil_with(step, flaw);
        answers
    }

    /// The file, which is JSON and so also YAML.
    pub fn file(&self) -> String {
        let detection =
            r#"{"answers": [{"leakage_status": "No Data Leakage", "code_block": "x"}]}"#;
        let more = [
            json!({ "role": "leakage", "variant": "detection", "reply": detection, "cost_usd": 0.01 }),
            json!({ "role": "test", "variant": "subsampling_extract", "reply": "```\n```", "cost_usd": 0.01 }),
        ];
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
            "debugger",
            "test",
        ];
        let good = roles.map(|it| json!({ "role": it, "reply": good_reply(it), "cost_usd": 0.01 }));
        let rules: Vec<&Value> = self.rules.iter().chain(&more).chain(&good).collect();
        json!({ "replies": rules }).to_string()
    }
}

/// Whether a flaw can be among others in a step. The script that makes the submission has all the time that
/// is left: one that hangs there is a trial of its own, with a short deadline.
fn is_possible(flaw: &str, step: &str) -> bool {
    flaw != "hang" || role_of(step) != "test"
}

/// Whether a flaw in this step lasts as long as the run lets it, and not as long as a script may run.
fn is_endless(flaw: &str, step: &str) -> bool {
    flaw == "hang" && matches!(role_of(step), "ablation" | "test")
}

/// The role that a step is asked of.
fn role_of(step: &str) -> &str {
    match step.rsplit('/').next().unwrap_or_default() {
        "leakage_detection" | "leakage_correction" => "leakage",
        "subsampling_extract" | "subsampling_remove" | "contamination" => "test",
        role => role,
    }
}

/// What a role answers when all is well. Scores get better from phase to phase.
fn good_reply(role: &str) -> String {
    let script = |body: &str| {
        format!("```python\n{body}\nprint(f'Final Validation Performance: {{score}}')\n```")
    };
    let submit = format!(
        "with open('./final/submission.csv', 'w') as f:\n    \
         f.write('{HEADER}\\n' + ''.join(f'{{i}},{{i % 7}}\\n' for i in range({}, {})))",
        ROWS.start, ROWS.end
    );
    match role {
        "retriever" => json!({ "models": [
            { "model_name": "a", "example_code": "fit()" },
            { "model_name": "b", "example_code": "fit()" },
        ]})
        .to_string(),
        "init" => script(
            "import csv\nrows = list(csv.DictReader(open('./input/train.csv')))\n\
             score = 0.5$candidate",
        ),
        "merger" => script("gain = 0.0\nscore = 0.6 + gain"),
        "ablation" => "```python\nprint('baseline 0.6, without the gain 0.5')\n```".to_owned(),
        "summarize" => "The gain matters most.".to_owned(),
        "extractor" => {
            json!({ "plans": [{ "code_block": "gain = 0.0", "plan": "raise the gain" }] })
                .to_string()
        }
        "planner" => "plan $inner".to_owned(),
        "coder" => "```python\ngain = 0.01$inner\n```".to_owned(),
        "ens_planner" => "average, round $round".to_owned(),
        "ensembler" => script(&format!("score = 0.9\n{submit}")),
        "data" => "All the provided information is used.".to_owned(),
        "debugger" => script(&format!("gain = 0.0\nscore = 0.4 + gain\n{submit}")),
        "test" => format!("```python\n{submit}\n```"),
        _ => "Nothing to say.".to_owned(),
    }
}

/// Whether a file is a whole submission.
pub fn is_whole_submission(text: &str) -> bool {
    let mut lines = text.lines();
    let rows = ROWS.map(|id| format!("{id},"));
    text.ends_with('\n')
        && lines.next() == Some(HEADER)
        && rows.into_iter().all(|start| lines.next().is_some_and(|it| it.starts_with(&start)))
        && lines.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_as_long_as_the_run_lets_it_needs_a_short_run() {
        let hangs_at = |step: &str| Answers::with_flaw_at(step, "hang").need_a_short_run();
        assert!(hangs_at("phase2/path-1/outer-0/ablation"));
        assert!(hangs_at("finalization/test"));
        assert!(!hangs_at("phase1/merge-1/merger"));
        let crash = Answers::with_flaw_at("phase2/path-1/outer-0/ablation", "crash");
        assert!(!crash.need_a_short_run());
    }
}
