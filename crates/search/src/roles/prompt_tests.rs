//! The prompts as the agents read them. A prompt that changes shows up as a changed snapshot.

use camino::Utf8Path;
use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use jiff::Timestamp;
use mle_star_agent::{Reply, Scripted};
use mle_star_exec::machine::{GpuInfo, Machine, Package};
use mle_star_exec::sandbox::Wish;
use mle_star_exec::{ExecError, Executor, Job, Outcome};
use mle_star_profile::{Bounds, Manifest};
use tempfile::TempDir;

use super::ablation::Ablation;
use super::coder::Coder;
use super::data::Data;
use super::debugger::Debugger;
use super::ens_planner::EnsPlanner;
use super::ensembler::Ensembler;
use super::extractor::Extractor;
use super::init::Init;
use super::leakage::{LeakageCorrection, LeakageDetection};
use super::merger::Merger;
use super::planner::Planner;
use super::retriever::Retriever;
use super::summarize::Summarize;
use super::test::{Contamination, SubsamplingExtract, SubsamplingRemove, Test};
use super::*;
use crate::environment::{section, system_prompt};
use crate::evaluate::Purpose;
use crate::event::{FORMAT, Header};
use crate::models::{
    DataModality, MetricDirection, Network, PipelineConfig, TaskDescription, TaskType,
};
use crate::prompt::PromptRegistry;
use crate::rundir::RunDir;
use crate::step::{Clock, Ports, Run};

/// A task text with a heading and a fence of its own, as competitions have them.
const TASK: &str = "# Spaceship Titanic

Predict which passengers were transported to another dimension.

## Submission

```
PassengerId,Transported
0013_01,False
```";

const SOLUTION: &str = r#"import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
if len(df) > 30000:
    df = df.sample(n=30000, random_state=42)
X = df[["Age"]].fillna(df["Age"].mean())
X_train, X_val, y_train, y_val = train_test_split(X, df["Transported"], random_state=42)
model = LogisticRegression().fit(X_train, y_train)
final_validation_score = model.score(X_val, y_val)
print(f"Final Validation Performance: {final_validation_score}")"#;

/// A script that quotes Markdown, which must not end the part of the prompt that shows it.
const FENCED: &str = r#"PROMPT = """
# Answer in a fence
```python
```
"""
print(f"Final Validation Performance: {len(PROMPT)}")"#;

const BLOCK: &str = r#"X = df[["Age"]].fillna(df["Age"].mean())"#;

const SUBSAMPLING: &str = "if len(df) > 30000:\n    df = df.sample(n=30000, random_state=42)";

/// A run that exists to render prompts.
struct Desk {
    run: Run,
    _folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        Self::with("accuracy", MetricDirection::Maximize)
    }

    fn minimizing() -> Self {
        Self::with("log loss", MetricDirection::Minimize)
    }

    fn with(metric: &str, direction: MetricDirection) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let header = header(&root.join("data"), metric, direction);
        let dir = RunDir::at(root.join("run"));
        fs_err::create_dir_all(dir.root()).unwrap();
        let ports = Ports {
            agent: Box::new(Scripted::new(|_| Ok(Reply::text("")))),
            executor: Box::new(Idle),
            clock: Box::new(Stopped),
            secrets: Vec::new(),
        };
        Self { run: Run::create(dir, header, ports).unwrap(), _folder: folder }
    }

    /// The prompt as the agent that plays `role` gets it.
    fn prompt<R: Role>(&self, role: &R) -> String {
        let registry = PromptRegistry::builtin();
        let template = registry.variant(R::AGENT, R::VARIANT).unwrap();
        template.render(&role.variables(&self.run.ctx())).unwrap()
    }
}

fn header(data_dir: &Utf8Path, metric: &str, direction: MetricDirection) -> Header {
    fs_err::create_dir_all(data_dir).unwrap();
    for (name, text) in [
        ("train.csv", "PassengerId,Age,Transported\n0001_01,39,False\n0002_01,,True\n"),
        ("test.csv", "PassengerId,Age\n0013_01,27\n"),
    ] {
        fs_err::write(data_dir.join(name), text).unwrap();
    }
    let task = TaskDescription::new(
        "spaceship-titanic",
        TaskType::Classification,
        DataModality::Tabular,
        metric,
        direction,
        TASK,
    );
    let package =
        |name: &str, version: &str| Package { name: name.to_owned(), version: version.to_owned() };
    Header {
        format: FORMAT,
        version: "test".to_owned(),
        agents: "nobody".to_owned(),
        task: TaskDescription { data_dir: data_dir.to_owned(), ..task.unwrap() },
        config: PipelineConfig::default(),
        machine: Machine {
            python: "/usr/bin/python3".to_owned(),
            python_version: "3.12.1".to_owned(),
            packages: vec![package("pandas", "2.3.0"), package("scikit-learn", "1.7.0")],
            cores: 8,
            memory_bytes: 32 << 30,
            gpus: GpuInfo::default(),
        },
        data: mle_star_profile::profile(data_dir, &Bounds::default()).unwrap(),
        manifest: Manifest::of(data_dir).unwrap(),
        reference_discussions: Vec::new(),
        sandbox: Wish::Best,
        containment: None,
    }
}

/// An executor that never has to run anything.
#[derive(Debug)]
struct Idle;

impl Executor for Idle {
    fn run<'a>(&'a self, _: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        pending().boxed()
    }
}

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn sleep(&self, _: std::time::Duration) -> futures::future::BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

fn assert_prompt(name: &str, prompt: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, prompt));
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn scores(values: &[Option<f64>]) -> Vec<Option<Score>> {
    values.iter().map(|value| value.map(|it| Score::new(it).unwrap())).collect()
}

/// REQ-OR-007, REQ-OR-004
#[test]
fn the_system_prompt_gives_persona_task_metric_and_machine() {
    let desk = Desk::minimizing();
    assert_prompt("system_prompt", &system_prompt(desk.run.header()));

    let mut header = desk.run.header().clone();
    header.task.network = Network::Allow;
    header.machine = Machine {
        packages: Vec::new(),
        cores: 1,
        memory_bytes: 0,
        gpus: GpuInfo {
            cuda_available: true,
            gpu_count: 2,
            gpu_names: texts(&["NVIDIA H200", "NVIDIA H200"]),
            ..GpuInfo::default()
        },
        ..header.machine
    };
    assert_prompt("system_prompt_with_gpus", &system_prompt(&header));
}

#[test]
fn whoever_writes_code_is_told_of_the_data_and_the_time_limits() {
    assert_prompt("environment", &section(Desk::new().run.header()));
}

/// REQ-P1-002, REQ-P1-043, REQ-DM-031
#[test]
fn the_retriever_is_asked_for_models_with_code() {
    let role = Retriever { task_description: TASK, models_wanted: 4 };
    assert_prompt("retriever", &Desk::new().prompt(&role));
}

/// REQ-P1-009, REQ-P1-044, REQ-EX-017, REQ-EX-018, REQ-FN-046
#[test]
fn init_is_asked_for_a_simple_solution_with_one_model() {
    let role = Init {
        task_description: TASK,
        model_name: "Logistic regression (scikit-learn)",
        example_code: "```python\nLogisticRegression().fit(X, y).predict(X)\n```",
    };
    let prompt = Desk::minimizing().prompt(&role);
    assert!(prompt.contains(
        "If there are more than 30000 training samples, you must subsample to 30000 for a faster \
         run."
    ));
    assert_prompt("init", &prompt);
}

/// REQ-P1-014, REQ-P1-045, REQ-EX-018
#[test]
fn the_merger_is_shown_base_and_reference() {
    let role = Merger { base_code: SOLUTION, reference_code: FENCED };
    assert_prompt("merger", &Desk::new().prompt(&role));
}

/// REQ-P2O-002, REQ-P2O-005, REQ-P2O-006, REQ-P2O-007, REQ-P2O-042
#[test]
fn ablation_is_shown_earlier_studies_if_there_are_any() {
    let desk = Desk::new();
    let first = Ablation { solution_script: SOLUTION, previous_ablations: &[] };
    assert_prompt("ablation", &desk.prompt(&first));

    let summaries =
        texts(&["Imputing Age matters most.", "# Summary\n\nThe model matters little."]);
    let later = Ablation { previous_ablations: &summaries, ..first };
    assert_prompt("ablation_with_earlier_studies", &desk.prompt(&later));
}

/// REQ-P2O-009
#[test]
fn summarize_is_shown_a_study_and_what_it_printed() {
    let role = Summarize {
        ablation_code: "print('Baseline: 0.79')\nprint('Without imputation: 0.71')",
        raw_result: "Baseline: 0.79\nWithout imputation: 0.71\n",
    };
    assert_prompt("summarize", &Desk::new().prompt(&role));
}

/// REQ-P2O-013
#[test]
fn the_extractor_is_shown_earlier_blocks_and_told_of_a_block_that_was_not_found() {
    let desk = Desk::new();
    let first = Extractor {
        solution_script: SOLUTION,
        ablation_summary: "# Findings\n\nImputing Age matters most.",
        previous_code_blocks: &[],
        block_was_not_found: false,
    };
    assert_prompt("extractor", &desk.prompt(&first));

    let blocks = texts(&[BLOCK, SUBSAMPLING]);
    let again = Extractor { previous_code_blocks: &blocks, block_was_not_found: true, ..first };
    let prompt = desk.prompt(&again);
    assert!(prompt.contains(
        "The previously extracted code block was not found in the solution. Please extract the \
         code block exactly as it appears in the script."
    ));
    assert_prompt("extractor_again", &prompt);
}

/// REQ-P2I-002, REQ-P2I-006, REQ-P2I-007, REQ-EX-018
#[test]
fn the_coder_is_shown_a_block_and_a_plan() {
    let role = Coder {
        code_block: "    X = X.fillna(0)\n    X = X.clip(0, 80)",
        plan: "Impute Age by the median of its group. Add a flag for missing ages.",
    };
    assert_prompt("coder", &Desk::new().prompt(&role));
}

/// REQ-P2I-009, REQ-P2I-010, REQ-P2I-014, REQ-P2I-015
#[test]
fn the_planner_is_shown_every_plan_with_its_score() {
    let plans = texts(&["plan A", "plan B", "plan C"]);
    let scores = scores(&[Some(0.82), None, Some(1.0)]);
    let role = Planner { code_block: BLOCK, plans: &plans, scores: &scores };

    let prompt = Desk::new().prompt(&role);
    assert!(prompt.contains(
        "# Improvement plans you have tried\n\n## Plan: plan A\n## Score: 0.82\n\n## Plan: plan \
         B\n## Score: N/A (evaluation failed)\n\n## Plan: plan C\n## Score: 1.0\n\n"
    ));
    assert_prompt("planner", &prompt);
    assert_prompt("planner_minimizing", &Desk::minimizing().prompt(&role));
}

/// REQ-P3-002, REQ-P3-004, REQ-P3-005, REQ-P3-007, REQ-P3-008, REQ-P3-046
#[test]
fn the_ensemble_planner_is_shown_history_from_the_second_round_on() {
    let desk = Desk::new();
    let first = EnsPlanner { solutions: vec![SOLUTION, FENCED], plans: &[], scores: &[] };
    let prompt = desk.prompt(&first);
    assert!(!prompt.contains("Plan:") && !prompt.contains("Score:"), "{prompt}");
    assert_prompt("ens_planner", &prompt);

    let plans = texts(&["Average the probabilities.", "Stack with a logistic regression."]);
    let scores = scores(&[Some(0.81), None]);
    let later = EnsPlanner { plans: &plans, scores: &scores, ..first };
    assert_prompt("ens_planner_later", &desk.prompt(&later));
    assert_prompt("ens_planner_minimizing", &Desk::minimizing().prompt(&later));
}

/// REQ-P3-011, REQ-P3-014, REQ-P3-015, REQ-P3-047, REQ-P3-049
#[test]
fn the_ensembler_is_shown_all_solutions_and_the_plan() {
    let role =
        Ensembler { plan: "Average the probabilities.", solutions: vec![SOLUTION, SOLUTION] };
    let prompt = Desk::new().prompt(&role);
    assert!(prompt.contains("# 1th Python Solution") && prompt.contains("# 2th Python Solution"));
    assert!(!prompt.contains("you must subsample"), "{prompt}");
    assert_prompt("ensembler", &prompt);
}

/// REQ-SF-002, REQ-SF-009, REQ-SF-044, REQ-EX-018
#[test]
fn the_debugger_is_told_what_the_script_is_for() {
    let desk = Desk::new();
    let scored = Debugger {
        code: SOLUTION,
        bug: "Traceback (most recent call last):\n  File \"solution.py\", line 8, in \
              <module>\nKeyError: 'Age'",
        purpose: Purpose::Validation,
        may_subsample: true,
    };
    assert_prompt("debugger", &desk.prompt(&scored));

    let study = Debugger { purpose: Purpose::Ablation, ..scored };
    assert_prompt("debugger_of_a_study", &desk.prompt(&study));

    let submission = Debugger { purpose: Purpose::Submission, may_subsample: false, ..study };
    let prompt = desk.prompt(&submission);
    assert!(!prompt.contains("you must subsample"), "{prompt}");
    assert_prompt("debugger_of_a_submission", &prompt);
}

/// REQ-SF-012
#[test]
fn leakage_detection_is_shown_the_script() {
    assert_prompt("leakage_detection", &Desk::new().prompt(&LeakageDetection { code: SOLUTION }));
}

/// REQ-SF-017, REQ-SF-045
#[test]
fn leakage_correction_is_shown_the_script_and_the_block() {
    let role = LeakageCorrection { code: SOLUTION, code_block: BLOCK };
    assert_prompt("leakage_correction", &Desk::new().prompt(&role));
}

/// REQ-SF-025, REQ-SF-029, REQ-SF-046
#[test]
fn data_is_shown_the_solution_and_the_task() {
    let role = Data { initial_solution: SOLUTION, task_description: TASK };
    assert_prompt("data", &Desk::new().prompt(&role));
}

/// REQ-FN-011, REQ-FN-014, REQ-FN-015, REQ-FN-016, REQ-FN-017, REQ-FN-018, REQ-FN-045,
/// REQ-FN-046, REQ-FN-047
#[test]
fn test_is_asked_for_a_submission_with_minimal_changes() {
    let role = Test { task_description: TASK, final_solution: SOLUTION };
    assert_prompt("test", &Desk::new().prompt(&role));
}

/// REQ-FN-001, REQ-FN-004, REQ-EX-019, REQ-EX-020
#[test]
fn subsampling_is_first_quoted_and_then_removed() {
    let desk = Desk::new();
    let extract = SubsamplingExtract { final_solution: SOLUTION };
    assert_prompt("test_subsampling_extract", &desk.prompt(&extract));
    let remove = SubsamplingRemove { code_block_with_subsampling: SUBSAMPLING };
    assert_prompt("test_subsampling_remove", &desk.prompt(&remove));
}

/// REQ-FN-027
#[test]
fn contamination_is_shown_the_discussion_and_the_solution() {
    let role = Contamination {
        reference_discussion: "# 1st place solution\n\nWe imputed Age by group.",
        final_solution: SOLUTION,
    };
    assert_prompt("test_contamination", &Desk::new().prompt(&role));
}

/// REQ-P1-043, REQ-P1-044, REQ-P1-045, REQ-P2O-002, REQ-P2O-013, REQ-P2I-006, REQ-P2I-014,
/// REQ-P3-008, REQ-P3-014, REQ-P3-015, REQ-P3-049, REQ-SF-009, REQ-SF-029, REQ-SF-044, REQ-SF-045,
/// REQ-SF-046, REQ-FN-014, REQ-FN-015, REQ-FN-016, REQ-FN-017, REQ-FN-018, REQ-FN-027,
/// REQ-FN-045, REQ-FN-046
#[test]
fn no_prompt_loses_a_sentence_of_the_specification() {
    const SCORE: &str = "`Final Validation Performance: {final_validation_score}`";
    const NO_EXIT: &str = "Do not use exit() function";
    const KEEP_SUBSAMPLING: &str = "Do not remove subsampling if exists.";
    const ONE_BLOCK: &str = "One markdown code block";
    let sentences: [(&str, &[&str]); 18] = [
        (
            "retriever.md",
            &[
                "You must provide an example code",
                "Model = {'model_name': str, 'example_code': str}",
                "`models`",
            ],
        ),
        ("init.md", &[SCORE, NO_EXIT, ONE_BLOCK, "`./input/`", "PyTorch rather than TensorFlow"]),
        ("merger.md", &[SCORE, NO_EXIT, ONE_BLOCK, "`./input/`"]),
        ("ablation.md", &[ONE_BLOCK, "2-3 parts", "Do not load test data"]),
        ("summarize.md", &["Summarise the result of this ablation study"]),
        (
            "extractor.md",
            &[
                "Refine_Plan = {'code_block': str, 'plan': str}",
                "list[Refine_Plan]",
                "3-5 sentences",
                "`plans`",
            ],
        ),
        ("coder.md", &[KEEP_SUBSAMPLING, "do not introduce dummy variables", ONE_BLOCK]),
        ("planner.md", &["The suggested plan must be novel and effective.", "3-5 sentences"]),
        (
            "ens_planner.md",
            &[
                "You should concentrate how to merge, not the other parts like hyperparameters.",
                "easy to implement, novel and effective",
            ],
        ),
        (
            "ensembler.md",
            &[
                SCORE,
                ONE_BLOCK,
                "Do not subsample or introduce dummy variables.",
                "`./input/`",
                "`./final/submission.csv`",
            ],
        ),
        (
            "debugger.md",
            &[
                SCORE,
                NO_EXIT,
                KEEP_SUBSAMPLING,
                ONE_BLOCK,
                "Please revise the code to fix the error",
                "`./input/`",
            ],
        ),
        (
            "leakage_detection.md",
            &[
                "Answer = {'leakage_status': str, 'code_block': str}",
                "`Yes Data Leakage` or `No Data Leakage`",
                "`answers`",
            ],
        ),
        (
            "leakage_correction.md",
            &[
                "Note that all the variables are defined earlier. Just modify it with the above \
                 code.",
                ONE_BLOCK,
            ],
        ),
        (
            "data.md",
            &[
                SCORE,
                "DO NOT USE TRY AND EXCEPT; just occur error so we can debug it!",
                "All the provided information is used.",
                "markdown code block",
            ],
        ),
        (
            "test.md",
            &[
                "Do not modify the given Python solution code too much. Try to integrate test \
                 submission with minimal changes.",
                "you can even use the full training set.",
                "Test data is available in the `./input/` directory.",
                "Save the test predictions in a `submission.csv` file. Put the `submission.csv` \
                 into `./final` directory.",
                "You should not drop any test samples. Predict the target value for all test \
                 samples.",
                "`./final/submission.csv`",
                "Do not use try: and except: or if and else to ignore unintended behaviour",
                NO_EXIT,
                ONE_BLOCK,
            ],
        ),
        ("test_subsampling_extract.md", &[ONE_BLOCK, "exactly from the script"]),
        ("test_subsampling_remove.md", &[ONE_BLOCK, "do not introduce dummy variables"]),
        ("test_contamination.md", &["sufficiently novel and different", "`Novel` or `Same`"]),
    ];
    let registry = PromptRegistry::builtin();
    for (template, (file_name, sentences)) in registry.templates().iter().zip(sentences) {
        assert_eq!(template.file_name, file_name);
        let persona = template.template.starts_with("You are a Kaggle grandmaster");
        assert_eq!(persona, file_name != "summarize.md", "{file_name}");
        for sentence in sentences {
            assert!(template.template.contains(sentence), "{file_name} lost: {sentence}");
        }
    }
}

/// REQ-DM-031
#[test]
fn long_texts_stand_between_tags() {
    // Scripts hold fences and task texts hold headings, so only tags tell where a text ends.
    const IN_A_SENTENCE: &[&str] =
        &["L", "M", "direction", "evaluation_metric", "model_name", "subsample_instruction"];
    const SECTIONS: &[&str] = &[
        "environment",
        "plans",
        "previous_ablations",
        "previous_code_blocks",
        "retry_note",
        "solutions",
        "submission_note",
    ];
    for template in PromptRegistry::builtin().templates() {
        let (file_name, text) = (template.file_name, &template.template);
        assert!(!text.contains("```"), "{file_name}");
        // The scores are part of the section with the plans.
        for name in template.variables.iter().filter(|it| **it != "scores") {
            let Some((before, after)) = text.split_once(&format!("{{{name}}}")) else {
                panic!("{file_name} does not use {name}");
            };
            let stands_alone = before.ends_with("\n\n") && after.starts_with("\n\n");
            let between_tags = before.ends_with(">\n") && after.starts_with("\n</");
            let expected = match name {
                name if IN_A_SENTENCE.contains(name) => true,
                name if SECTIONS.contains(name) => stands_alone,
                _ => between_tags,
            };
            assert!(expected, "{file_name}: {name}");
        }
    }
}
