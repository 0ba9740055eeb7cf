//! The whole pipeline on many tasks, graded by somebody else.
//!
//! A collection is a folder with a folder for each task, a program `grade.py`, and what is known of
//! each task in `answers/<task>.json`. Runs are kept under `<out>/<task>/seed-<n>`: one that is
//! finished is not made again, one that was broken off goes on. Grading comes last and decides
//! nothing.

use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_exec::machine;
use mle_star_search::models::{FinalResult, MetricDirection};
use mle_star_search::rundir::RunDir;
use serde::Deserialize;
use serde_json::Value;

use crate::RunError;
use crate::python::{self, IfAbsent};

/// A folder of tasks.
#[derive(Debug)]
pub struct Collection {
    root: Utf8PathBuf,
}

/// One run of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The name of the task's folder.
    pub task: String,
    /// Where the random numbers begin.
    pub seed: u64,
    /// The folder of the run directory.
    pub runs: Utf8PathBuf,
}

/// How far a trial is.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is there.
    New,
    /// A run was begun.
    Begun(Utf8PathBuf),
    /// A run has ended.
    Done(Utf8PathBuf),
}

/// What a trial came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Graded {
    /// The task.
    pub task: String,
    /// The score that the run itself found.
    pub validation: Option<f64>,
    /// The run's best score after each phase.
    pub phases: [Option<f64>; 3],
    /// How long the run took.
    pub seconds: f64,
    /// Whether more is better.
    pub direction: MetricDirection,
    /// What the grader said.
    pub grade: Grade,
}

/// What a grader says of a submission.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Grade {
    /// Whether it could be graded.
    #[serde(default)]
    pub valid: bool,
    /// Its score.
    pub score: Option<f64>,
    /// What it would have won.
    #[serde(default)]
    pub medal: Option<String>,
    /// Why it could not be graded.
    #[serde(default)]
    pub error: Option<String>,
}

/// What others reached on a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// The same answer for every row.
    pub constant: Option<f64>,
    /// A plain model.
    pub baseline: Option<f64>,
    /// How far the plain model's score may be off by chance.
    pub standard_error: Option<f64>,
    /// AutoGluon.
    pub autogluon: Option<f64>,
}

/// Runs the program whose file is the first argument, with the others.
const RUN_FILE: &str = "\
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
";

impl Collection {
    /// The collection at `root`.
    pub fn at(root: impl Into<Utf8PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folders that hold a task, by name.
    pub fn tasks(&self) -> std::io::Result<Vec<String>> {
        let mut tasks = Vec::new();
        for entry in self.root.read_dir_utf8()? {
            let entry = entry?;
            if entry.path().join("task.yaml").is_file() {
                tasks.push(entry.file_name().to_owned());
            }
        }
        tasks.sort();
        Ok(tasks)
    }

    /// The folder of a task.
    pub fn folder(&self, task: &str) -> Utf8PathBuf {
        self.root.join(task)
    }

    /// Whether submissions can be graded.
    pub fn has_grader(&self) -> bool {
        self.grader().is_file()
    }

    fn grader(&self) -> Utf8PathBuf {
        self.root.join("grade.py")
    }

    /// The Python that grades: the one that is named, or else ours, which is made if need be.
    pub async fn python(
        &self,
        named: Option<Utf8PathBuf>,
        progress: &python::Progress,
    ) -> Result<Utf8PathBuf, RunError> {
        Ok(python::machine(named, &[], progress, IfAbsent::Make).await?.python.into())
    }

    /// What others reached on a task, as far as it is written down.
    pub fn known(&self, task: &str) -> Known {
        let file = self.root.join("answers").join(task).with_extension("json");
        let facts: Value = fs::read_to_string(file)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let baseline = |key: &str| facts.pointer(&format!("/baseline/{key}"))?.as_f64();
        let named = |(key, value): (&String, &Value)| {
            key.starts_with("autogluon").then(|| value.as_f64()).flatten()
        };
        Known {
            constant: baseline("constant"),
            baseline: baseline("model"),
            standard_error: baseline("bootstrap_se"),
            autogluon: facts.as_object().and_then(|facts| facts.iter().find_map(named)),
        }
    }

    /// Grades what a finished run submitted, with a Python that has what the grader needs.
    pub async fn grade(&self, python: &Utf8Path, trial: &Trial) -> Result<Graded, RunError> {
        let Progress::Done(run) = trial.progress()? else {
            return Err(RunError::NoRun(trial.runs.clone()));
        };
        let text = fs::read_to_string(RunDir::at(&run).result())?;
        let result: FinalResult = serde_json::from_str(&text).map_err(std::io::Error::from)?;
        let grade = if result.submission_path.is_empty() {
            Grade { error: Some("there is no submission".to_owned()), ..Grade::default() }
        } else {
            let grader = camino::absolute_utf8(self.grader())?;
            // The run directory may have been moved since.
            let submission = RunDir::at(camino::absolute_utf8(&run)?).submission();
            let arguments = [grader.as_str(), trial.task.as_str(), submission.as_str()];
            let said = machine::run_program(python, RUN_FILE, &arguments).await?;
            serde_json::from_str(&said).map_err(std::io::Error::from)?
        };
        Ok(Graded {
            task: trial.task.clone(),
            validation: result.final_solution.score.map(|score| score.get()),
            phases: result.phase_scores().map(|(_, score)| score.map(|score| score.get())),
            seconds: result.total_duration_seconds,
            direction: result.task.metric_direction,
            grade,
        })
    }
}

impl Trial {
    /// The trial of `task` with `seed`, under `out`.
    pub fn new(out: &Utf8Path, task: &str, seed: u64) -> Self {
        let runs = out.join(task).join(format!("seed-{seed}"));
        Self { task: task.to_owned(), seed, runs }
    }

    /// How far it is, by what lies in its folder.
    pub fn progress(&self) -> std::io::Result<Progress> {
        let mut begun = None;
        if !self.runs.is_dir() {
            return Ok(Progress::New);
        }
        for entry in self.runs.read_dir_utf8()? {
            let run = entry?.into_path();
            if RunDir::at(&run).result().is_file() {
                return Ok(Progress::Done(run));
            }
            if RunDir::at(&run).journal().is_file() {
                begun = Some(run);
            }
        }
        Ok(begun.map_or(Progress::New, Progress::Begun))
    }
}

/// The results as Markdown: one row for each task, the mean over its trials.
pub fn table(collection: &Collection, results: &[Graded]) -> String {
    let mut text = String::from(
        "| task | | constant | baseline | AutoGluon | ours | validation | medal | seconds |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |\n",
    );
    let mut phases =
        String::from("\n| task | initial | refined | ensemble |\n| --- | ---: | ---: | ---: |\n");
    let mut tasks: Vec<&str> = results.iter().map(|it| it.task.as_str()).collect();
    tasks.dedup();
    let (mut above_baseline, mut within_error, mut above_autogluon) = (0, 0, 0);
    for task in &tasks {
        let trials: Vec<&Graded> = results.iter().filter(|it| it.task == *task).collect();
        let known = collection.known(task);
        let ours = mean(trials.iter().map(|it| it.grade.score));
        let Some(direction) = trials.first().map(|it| it.direction) else { continue };
        let gain = |other: Option<f64>| match direction {
            MetricDirection::Maximize => Some(ours? - other?),
            MetricDirection::Minimize => Some(other? - ours?),
        };
        above_baseline += usize::from(gain(known.baseline).is_some_and(|it| it > 0.0));
        let off_by = known.standard_error.unwrap_or(0.0);
        within_error += usize::from(gain(known.baseline).is_some_and(|it| it >= -off_by));
        above_autogluon += usize::from(gain(known.autogluon).is_some_and(|it| it > 0.0));
        let medals: Vec<&str> = trials
            .iter()
            .map(|it| match (&it.grade.medal, &it.grade.error) {
                (Some(medal), _) => medal.as_str(),
                (None, Some(error)) => error.as_str(),
                (None, None) => "–",
            })
            .collect();
        let arrow = match direction {
            MetricDirection::Maximize => "↑",
            MetricDirection::Minimize => "↓",
        };
        writeln!(
            text,
            "| {task} | {arrow} | {} | {} | {} | {} | {} | {} | {:.0} |",
            figure(known.constant),
            figure(known.baseline),
            figure(known.autogluon),
            figure(ours),
            figure(mean(trials.iter().map(|it| it.validation))),
            medals.join(", "),
            mean(trials.iter().map(|it| Some(it.seconds))).unwrap_or_default(),
        )
        .ok();
        let phase = |which: fn(&[Option<f64>; 3]) -> Option<f64>| {
            figure(mean(trials.iter().map(|it| which(&it.phases))))
        };
        let [initial, refined, ensemble] =
            [phase(|it| it[0]), phase(|it| it[1]), phase(|it| it[2])];
        writeln!(phases, "| {task} | {initial} | {refined} | {ensemble} |").ok();
    }
    let valid = results.iter().filter(|it| it.grade.valid).count();
    writeln!(
        text,
        "\nValid submissions: {valid} of {}. Better than the baseline on {above_baseline} of {count} \
         tasks, not worse by more than its standard error on {within_error}. Better than AutoGluon \
         on {above_autogluon} of {count}.",
        results.len(),
        count = tasks.len(),
    )
    .ok();
    text + &phases
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    let values = values.filter(|values| !values.is_empty())?;
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let count = values.len() as f64;
    Some(values.iter().sum::<f64>() / count)
}

/// Four digits that matter, as people write scores.
fn figure(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graded(task: &str, score: Option<f64>, validation: f64) -> Graded {
        Graded {
            task: task.to_owned(),
            validation: Some(validation),
            phases: [Some(validation + 0.02), Some(validation + 0.01), Some(validation)],
            seconds: 60.0,
            direction: MetricDirection::Minimize,
            grade: Grade {
                valid: score.is_some(),
                score,
                medal: score.map(|_| "silver".to_owned()),
                error: score.is_none().then(|| "missing columns".to_owned()),
            },
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_task_and_counts_who_is_beaten() {
        let place = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(place.path()).unwrap();
        fs::create_dir(root.join("answers")).unwrap();
        let facts = r#"{"baseline": {"constant": 2.0, "model": 0.5, "bootstrap_se": 0.1},
                        "autogluon_best": 0.4}"#;
        fs::write(root.join("answers/houses.json"), facts).unwrap();
        let results = [
            graded("houses", Some(0.4), 0.41),
            graded("houses", Some(0.5), 0.43),
            graded("unknown", None, 1234.5),
        ];
        let table = table(&Collection::at(root), &results);
        insta::assert_snapshot!(table, @"
        | task | | constant | baseline | AutoGluon | ours | validation | medal | seconds |
        | --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |
        | houses | ↓ | 2.0000 | 0.5000 | 0.4000 | 0.4500 | 0.4200 | silver, silver | 60 |
        | unknown | ↓ | – | – | – | – | 1234 | missing columns | 60 |

        Valid submissions: 2 of 3. Better than the baseline on 1 of 2 tasks, not worse by more than its standard error on 1. Better than AutoGluon on 0 of 2.

        | task | initial | refined | ensemble |
        | --- | ---: | ---: | ---: |
        | houses | 0.4400 | 0.4300 | 0.4200 |
        | unknown | 1235 | 1235 | 1234 |
        ");
    }

    #[test]
    fn a_trial_knows_by_its_folder_how_far_it_is() {
        let place = tempfile::tempdir().unwrap();
        let trial = Trial::new(Utf8Path::from_path(place.path()).unwrap(), "houses", 1);
        assert_eq!(trial.progress().unwrap(), Progress::New);
        let run = RunDir::at(trial.runs.join("houses-1"));
        fs::create_dir_all(run.root()).unwrap();
        assert_eq!(trial.progress().unwrap(), Progress::New);
        fs::write(run.journal(), "").unwrap();
        assert_eq!(trial.progress().unwrap(), Progress::Begun(run.root().to_owned()));
        fs::write(run.result(), "{}").unwrap();
        assert_eq!(trial.progress().unwrap(), Progress::Done(run.root().to_owned()));
    }
}
