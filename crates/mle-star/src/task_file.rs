//! Reading a task from a file or a folder.
//!
//! A task file is YAML with the fields of [`TaskDescription`], and `description_file` instead of
//! `description` where the text is long. Relative paths are relative to the file. A folder without
//! a task file is a task too, if the command line or a description in it gives the missing facts.
//! These layouts are known: data in the folder itself, with the goal on the command line (AIDE);
//! `prepared/public` with a `description.md` (MLE-bench); `input` or `data` below the folder.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_search::models::{
    DataModality, MetricDirection, TaskDescription, TaskType, known_direction, nearest,
};
use serde_json::{Map, Value};

use crate::draft::{Description, Draft, MetricSource, meant};
use crate::unpack;

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
    #[error("there is no task at `{path}`")]
    NotFound {
        /// Where it was looked for.
        path: Utf8PathBuf,
        /// What may have been meant.
        nearest: Option<Utf8PathBuf>,
    },
    /// The data is still in archives.
    #[error("the data of `{path}` is in archives: {archives}")]
    Packed {
        /// The folder.
        path: Utf8PathBuf,
        /// Their names.
        archives: String,
    },
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
/// Files that say what a task is, the best first.
pub(crate) const DESCRIPTIONS: [&str; 9] = [
    "description.md",
    "description.txt",
    "overview.md",
    "overview.txt",
    "README.md",
    "README.txt",
    "README",
    "Readme.md",
    "readme.md",
];
/// Folders that hold data; the last is MLE-bench's, seen from within `prepared`.
pub(crate) const DATA_FOLDERS: [&str; 4] = ["input", "data", "prepared/public", "public"];
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
        let nearest = nearest_beside(&path);
        return Err(TaskFileError::NotFound { path, nearest });
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
            let is_here = value.as_str() == ".";
            *value = if is_here { folder.to_string() } else { folder.join(&*value).into_string() };
        }
    }
    finish(path, facts)
}

/// Whether a file says something about the task, rather than being data.
pub(crate) fn is_about_the_task(name: &str) -> bool {
    FILE_NAMES.contains(&name) || DESCRIPTIONS.contains(&name)
}

/// The task file in `folder`, or where it would be.
pub fn place_in(folder: &Utf8Path) -> Utf8PathBuf {
    let there = FILE_NAMES.iter().map(|name| folder.join(name)).find(|it| it.exists());
    there.unwrap_or_else(|| folder.join("task.yaml"))
}

/// What lies beside `path` under the most similar name.
fn nearest_beside(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let (folder, name) = (path.parent()?, path.file_name()?);
    let mut names: Vec<String> = folder
        .read_dir_utf8()
        .ok()?
        .flatten()
        .filter(|entry| entry.path().is_dir() || FILE_NAMES.contains(&entry.file_name()))
        .map(|entry| entry.file_name().to_owned())
        .collect();
    names.sort();
    nearest(name, names.iter().map(String::as_str)).map(|near| folder.join(near))
}

fn read_folder(path: &Utf8Path, options: &TaskOptions) -> Result<TaskDescription, TaskFileError> {
    let archives = unpack::archives(path)?;
    let draft = Draft::of(path, options)?;
    if draft.seen.is_none() && draft.data_dir == "." && !archives.is_empty() {
        let names: Vec<&str> = archives.iter().filter_map(|it| it.file_name()).collect();
        let archives = names.join(", ");
        return Err(TaskFileError::Packed { path: path.to_owned(), archives });
    }
    let description = match (&options.goal, &draft.description) {
        (_, Description::File(file)) => Some(fs::read_to_string(path.join(file))?),
        (Some(_), Description::Text(text)) => Some(text.clone()),
        // What init would write there is no more than the data says anyway.
        (None, Description::Text(_)) => None,
    };
    let mut missing = Vec::new();
    if description.is_none() {
        missing.push("neither a description.md nor --goal says what to predict".to_owned());
    }
    // A run costs time and money: a metric that is only a guess is not good enough.
    match draft.metric.source {
        MetricSource::Told if draft.direction.is_none() => missing.push(
            "neither --minimize nor --maximize says which way the metric improves".to_owned(),
        ),
        MetricSource::Told => {}
        MetricSource::Mentioned => missing.push(format!(
            "--metric does not say how it is judged (the description names {})",
            draft.metric.name
        )),
        MetricSource::Guessed => missing.push("--metric does not say how it is judged".to_owned()),
    }
    let Some(description) = description.filter(|_| missing.is_empty()) else {
        return Err(TaskFileError::Incomplete {
            path: path.to_owned(),
            missing: missing.join(", and "),
        });
    };
    let data_dir = if draft.data_dir == "." { path.to_owned() } else { path.join(&draft.data_dir) };
    let mut facts = Map::new();
    facts.insert("competition_id".into(), draft.competition_id.into());
    facts.insert("task_type".into(), as_value(draft.task_type));
    facts.insert("data_modality".into(), as_value(draft.data_modality));
    facts.insert("evaluation_metric".into(), draft.metric.name.into());
    facts.insert("description".into(), description.into());
    facts.insert("data_dir".into(), data_dir.into_string().into());
    if let Some(direction) = draft.direction {
        facts.insert("metric_direction".into(), as_value(direction));
    }
    finish(path, facts)
}

/// Lays what the command line says over the facts, and fills in the direction of a known metric.
fn apply(facts: &mut Map<String, Value>, options: &TaskOptions) {
    if let Some(metric) = &options.metric {
        let metric = meant(metric).map_or_else(|| metric.clone(), str::to_owned);
        // The direction of another metric says nothing about this one.
        facts.remove("metric_direction");
        facts.insert("evaluation_metric".into(), metric.into());
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
