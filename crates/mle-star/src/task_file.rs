//! Reading a task from a file or a folder.
//!
//! A task file is YAML with the fields of [`TaskDescription`], and `description_file` instead of
//! `description` where the text is long. Relative paths are relative to the file. A folder without
//! a task file is a task too, if the missing facts are given on the command line.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_search::models::{
    DataModality, MetricDirection, TaskDescription, TaskType, known_direction, nearest,
};
use serde_json::{Map, Value};

/// What the command line says about a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskOptions {
    /// What is to be predicted.
    pub goal: Option<String>,
    /// The metric.
    pub metric: Option<String>,
    /// Which way it improves.
    pub direction: Option<MetricDirection>,
}

/// Why a task cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TaskFileError {
    /// There is nothing there.
    #[error("there is no task at `{0}`")]
    NotFound(Utf8PathBuf),
    /// A file cannot be read. The message names it.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The file is not YAML with keys and values.
    #[error("`{path}` is not a task file: {reason}")]
    NotYaml {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// The file has a key that tasks do not have.
    #[error("unknown key `{key}` in `{path}`{}", .nearest.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default())]
    UnknownKey {
        /// The file.
        path: Utf8PathBuf,
        /// The key.
        key: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// The facts do not make a task.
    #[error("`{path}` is not a usable task: {reason}")]
    Unusable {
        /// The file or folder.
        path: Utf8PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A folder without a task file lacks facts.
    #[error("`{path}` has no task.yaml, and {missing}")]
    Incomplete {
        /// The folder.
        path: Utf8PathBuf,
        /// What must be given.
        missing: String,
    },
}

const FILE_NAMES: [&str; 2] = ["task.yaml", "task.yml"];
const DESCRIPTIONS: [&str; 3] = ["description.md", "description.txt", "overview.md"];
const DATA_FOLDERS: [&str; 3] = ["input", "data", "prepared/public"];
const KEYS: [&str; 11] = [
    "competition_id",
    "task_type",
    "data_modality",
    "evaluation_metric",
    "metric_direction",
    "description",
    "description_file",
    "data_dir",
    "output_dir",
    "network",
    "packages",
];

/// Reads the task at `path`, which is a task file or a folder.
pub fn read_task(path: &Utf8Path, options: &TaskOptions) -> Result<TaskDescription, TaskFileError> {
    let path = camino::absolute_utf8(path)?;
    if path.is_file() {
        return read_file(&path, options);
    }
    if !path.is_dir() {
        return Err(TaskFileError::NotFound(path));
    }
    match FILE_NAMES.iter().map(|name| path.join(name)).find(|file| file.is_file()) {
        Some(file) => read_file(&file, options),
        None => read_folder(&path, options),
    }
}

fn read_file(path: &Utf8Path, options: &TaskOptions) -> Result<TaskDescription, TaskFileError> {
    let text = fs::read_to_string(path)?;
    let not_yaml = |reason: String| TaskFileError::NotYaml { path: path.to_owned(), reason };
    let value: Value = serde_saphyr::from_str(&text)
        .map_err(|error| not_yaml(error.without_snippet().to_string()))?;
    let Value::Object(mut facts) = value else {
        return Err(not_yaml("it has no keys".to_owned()));
    };
    if let Some(key) = facts.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let nearest = nearest(key, KEYS);
        return Err(TaskFileError::UnknownKey { path: path.to_owned(), key: key.clone(), nearest });
    }
    let folder = path.parent().unwrap_or(path);
    let unusable =
        |reason: &str| TaskFileError::Unusable { path: path.to_owned(), reason: reason.to_owned() };
    match (facts.remove("description_file"), facts.contains_key("description")) {
        (Some(_), true) => {
            return Err(unusable("it has both `description` and `description_file`"));
        }
        (Some(Value::String(file)), false) => {
            facts.insert("description".into(), fs::read_to_string(folder.join(file))?.into());
        }
        (Some(_), false) => return Err(unusable("`description_file` is not the name of a file")),
        (None, _) => {}
    }
    if let (Some(goal), Some(Value::String(text))) = (&options.goal, facts.get_mut("description")) {
        *text = format!("{goal}\n\n{text}");
    }
    apply(&mut facts, options);
    facts.entry("data_dir").or_insert_with(|| "input".into());
    for key in ["data_dir", "output_dir"] {
        if let Some(Value::String(value)) = facts.get_mut(key) {
            *value = folder.join(&*value).into_string();
        }
    }
    finish(path, facts)
}

fn read_folder(path: &Utf8Path, options: &TaskOptions) -> Result<TaskDescription, TaskFileError> {
    let described = DESCRIPTIONS.iter().map(|name| path.join(name)).find(|file| file.is_file());
    let description = match (&options.goal, described) {
        (None, None) => None,
        (Some(goal), None) => Some(goal.clone()),
        (None, Some(file)) => Some(fs::read_to_string(file)?),
        (Some(goal), Some(file)) => Some(format!("{goal}\n\n{}", fs::read_to_string(file)?)),
    };
    let mut missing = Vec::new();
    if description.is_none() {
        missing.push("neither a description.md nor --goal says what to predict");
    }
    match (&options.metric, options.direction) {
        (None, _) => missing.push("--metric does not say how it is judged"),
        (Some(metric), None) if known_direction(metric).is_none() => {
            missing.push("neither --minimize nor --maximize says which way the metric improves");
        }
        (Some(_), _) => {}
    }
    let Some(description) = description.filter(|_| missing.is_empty()) else {
        return Err(TaskFileError::Incomplete {
            path: path.to_owned(),
            missing: missing.join(", and "),
        });
    };
    let data_dir = DATA_FOLDERS.iter().map(|name| path.join(name)).find(|folder| folder.is_dir());
    let mut facts = Map::new();
    facts.insert("competition_id".into(), path.file_name().unwrap_or("task").into());
    facts.insert("task_type".into(), as_value(TaskType::Tabular));
    facts.insert("data_modality".into(), as_value(DataModality::Tabular));
    facts.insert("description".into(), description.into());
    facts.insert(
        "data_dir".into(),
        data_dir.unwrap_or_else(|| path.to_owned()).into_string().into(),
    );
    apply(&mut facts, options);
    finish(path, facts)
}

/// Lays what the command line says over the facts, and fills in the direction of a known metric.
fn apply(facts: &mut Map<String, Value>, options: &TaskOptions) {
    if let Some(metric) = &options.metric {
        // The direction of another metric says nothing about this one.
        facts.remove("metric_direction");
        facts.insert("evaluation_metric".into(), metric.clone().into());
    }
    if let Some(direction) = options.direction {
        facts.insert("metric_direction".into(), as_value(direction));
    }
    let metric = facts.get("evaluation_metric").and_then(Value::as_str);
    if let Some(known) = metric.and_then(known_direction) {
        facts.entry("metric_direction").or_insert_with(|| as_value(known));
    }
}

fn finish(path: &Utf8Path, facts: Map<String, Value>) -> Result<TaskDescription, TaskFileError> {
    serde_json::from_value(Value::Object(facts.clone())).map_err(|error| {
        let error = error.to_string();
        // What is wrong with a text or a direction names its key already.
        let culprit = culprit(&facts).filter(|key| !error.contains(*key));
        let reason = culprit.map_or_else(|| error.clone(), |key| format!("`{key}`: {error}"));
        TaskFileError::Unusable { path: path.to_owned(), reason }
    })
}

/// The key whose value no task could have.
fn culprit(facts: &Map<String, Value>) -> Option<&str> {
    let (kind, modality) = (TaskType::Tabular, DataModality::Tabular);
    let metric = facts.get("evaluation_metric").and_then(Value::as_str);
    let direction = metric.and_then(known_direction).unwrap_or(MetricDirection::Maximize);
    let usable = TaskDescription::new("x", kind, modality, "x", direction, "x");
    let usable = usable.map(as_value).unwrap_or_default();
    let spoils = |(key, value): &(&String, &Value)| {
        let mut task = usable.clone();
        if let Value::Object(task) = &mut task {
            task.insert((*key).clone(), (*value).clone());
        }
        serde_json::from_value::<TaskDescription>(task).is_err()
    };
    facts.iter().find(spoils).map(|(key, _)| key.as_str())
}

fn as_value(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("shop")).unwrap();
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        (dir, path)
    }

    const FILE: &str = "competition_id: shop\ntask_type: regression\ndata_modality: tabular\n\
                        evaluation_metric: rmse\ndescription_file: about.md\n";

    #[test]
    fn paths_are_relative_to_the_file_and_a_known_metric_has_its_direction() {
        let (_dir, path) = folder(&[("task.yaml", FILE), ("about.md", "Prices.")]);
        let task = read_task(&path, &TaskOptions::default()).unwrap();
        assert_eq!(task.data_dir, path.join("input"));
        assert_eq!(task.metric_direction, MetricDirection::Minimize);
        assert_eq!(task.description, "Prices.");
        assert_eq!(task.explicit_output_dir(), None);
    }

    #[test]
    fn a_misspelt_key_is_refused_with_the_nearest_name() {
        let (_dir, path) = folder(&[("task.yaml", &format!("{FILE}data_dirr: x\n"))]);
        let error = read_task(&path, &TaskOptions::default()).unwrap_err().to_string();
        assert!(error.ends_with("did you mean `data_dir`?"), "{error}");
    }

    #[test]
    fn a_bare_folder_asks_for_everything_it_lacks_at_once() {
        let (_dir, path) = folder(&[("train.csv", "a\n1\n")]);
        let error = read_task(&path, &TaskOptions::default()).unwrap_err().to_string();
        assert!(error.contains("--goal") && error.contains("--metric"), "{error}");

        let options = TaskOptions {
            goal: Some("Predict a.".to_owned()),
            metric: Some("mae".to_owned()),
            direction: None,
        };
        let task = read_task(&path, &options).unwrap();
        assert_eq!((task.competition_id.as_str(), &task.data_dir), ("shop", &path));
    }

    #[test]
    fn a_direction_that_contradicts_the_metric_is_refused() {
        let (_dir, path) = folder(&[("task.yaml", FILE), ("about.md", "Prices.")]);
        let options =
            TaskOptions { direction: Some(MetricDirection::Maximize), ..TaskOptions::default() };
        let error = read_task(&path, &options).unwrap_err().to_string();
        assert!(error.contains("contradicts the metric"), "{error}");
    }
}
