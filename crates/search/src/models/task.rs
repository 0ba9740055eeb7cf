//! What is to be solved.

use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::known_direction;

/// The kind of prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it all")]
pub enum TaskType {
    Classification,
    Regression,
    ImageClassification,
    ImageToImage,
    TextClassification,
    AudioClassification,
    SequenceToSequence,
    Tabular,
}

/// What the data consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it all")]
pub enum DataModality {
    Tabular,
    Image,
    Text,
    Audio,
    Mixed,
}

/// Which way the metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricDirection {
    /// Accuracy, AUC, ...
    Maximize,
    /// RMSE, log loss, ...
    Minimize,
}

/// Whether generated scripts may use the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// They are told that there is none.
    #[default]
    Deny,
    /// They may download what they need.
    Allow,
}

/// A competition: what to predict, from which data, judged by which metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedTask")]
pub struct TaskDescription {
    /// A short name, used in file names.
    pub competition_id: String,
    /// The kind of prediction.
    pub task_type: TaskType,
    /// What the data consists of.
    pub data_modality: DataModality,
    /// The metric, as the competition calls it.
    pub evaluation_metric: String,
    /// Which way it improves.
    pub metric_direction: MetricDirection,
    /// The whole text of the task.
    pub description: String,
    /// Where the data is. Never written to.
    pub data_dir: Utf8PathBuf,
    /// Where a copy of the submission goes; `./final` means that the run directory is enough.
    pub output_dir: Utf8PathBuf,
    /// Whether scripts may use the network.
    pub network: Network,
    /// Python packages that the task needs besides what is installed.
    pub packages: Vec<String>,
}

/// A task as it is read, before it is known to make sense.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedTask {
    competition_id: String,
    task_type: TaskType,
    data_modality: DataModality,
    evaluation_metric: String,
    metric_direction: MetricDirection,
    description: String,
    #[serde(default = "default_data_dir")]
    data_dir: Utf8PathBuf,
    #[serde(default = "default_output_dir")]
    output_dir: Utf8PathBuf,
    #[serde(default)]
    network: Network,
    #[serde(default)]
    packages: Vec<String>,
}

/// Why a task cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// A text that must say something is blank.
    #[error("`{field}` of the task is empty")]
    Blank {
        /// Which field.
        field: &'static str,
    },
    /// The declared direction is not that of the metric.
    #[error("`metric_direction: {declared}` contradicts the metric: `{metric}` is to be {known}d")]
    Direction {
        /// The metric.
        metric: String,
        /// What the task says.
        declared: MetricDirection,
        /// What everybody knows.
        known: MetricDirection,
    },
}

impl TaskDescription {
    /// A task with the default folders. Its fields can be changed before it is checked again by
    /// [`TaskDescription::validate`].
    pub fn new(
        competition_id: impl Into<String>,
        task_type: TaskType,
        data_modality: DataModality,
        evaluation_metric: impl Into<String>,
        metric_direction: MetricDirection,
        description: impl Into<String>,
    ) -> Result<Self, TaskError> {
        let task = Self {
            competition_id: competition_id.into(),
            task_type,
            data_modality,
            evaluation_metric: evaluation_metric.into(),
            metric_direction,
            description: description.into(),
            data_dir: default_data_dir(),
            output_dir: default_output_dir(),
            network: Network::Deny,
            packages: Vec::new(),
        };
        task.validate()?;
        Ok(task)
    }

    /// Checks what the types cannot say.
    pub fn validate(&self) -> Result<(), TaskError> {
        for (field, text) in [
            ("competition_id", &self.competition_id),
            ("evaluation_metric", &self.evaluation_metric),
            ("description", &self.description),
        ] {
            if text.trim().is_empty() {
                return Err(TaskError::Blank { field });
            }
        }
        match known_direction(&self.evaluation_metric) {
            Some(known) if known != self.metric_direction => Err(TaskError::Direction {
                metric: self.evaluation_metric.clone(),
                declared: self.metric_direction,
                known,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Where a copy of the submission was explicitly asked for.
    pub fn explicit_output_dir(&self) -> Option<&camino::Utf8Path> {
        (self.output_dir != default_output_dir()).then_some(self.output_dir.as_path())
    }
}

impl TryFrom<UncheckedTask> for TaskDescription {
    type Error = TaskError;

    fn try_from(unchecked: UncheckedTask) -> Result<Self, TaskError> {
        let UncheckedTask {
            competition_id,
            task_type,
            data_modality,
            evaluation_metric,
            metric_direction,
            description,
            data_dir,
            output_dir,
            network,
            packages,
        } = unchecked;
        let task = Self {
            competition_id,
            task_type,
            data_modality,
            evaluation_metric,
            metric_direction,
            description,
            data_dir,
            output_dir,
            network,
            packages,
        };
        task.validate()?;
        Ok(task)
    }
}

fn default_data_dir() -> Utf8PathBuf {
    "./input".into()
}

fn default_output_dir() -> Utf8PathBuf {
    "./final".into()
}

impl fmt::Display for MetricDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Maximize => "maximize",
            Self::Minimize => "minimize",
        })
    }
}

impl MetricDirection {
    /// The direction as a prompt says it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Maximize => "higher is better",
            Self::Minimize => "lower is better",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn minimal() -> serde_json::Value {
        json!({
            "competition_id": "titanic", "task_type": "classification",
            "data_modality": "tabular", "evaluation_metric": "accuracy",
            "metric_direction": "maximize", "description": "Who survived?",
        })
    }

    /// REQ-DM-004, REQ-DM-005, REQ-DM-006, REQ-DM-007
    #[test]
    fn a_task_has_default_folders_and_survives_json() {
        let task: TaskDescription = serde_json::from_value(minimal()).unwrap();
        assert_eq!((task.data_dir.as_str(), task.output_dir.as_str()), ("./input", "./final"));
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<TaskDescription>(&text).unwrap(), task);
        let mut missing = minimal();
        missing.as_object_mut().unwrap().remove("description");
        assert!(serde_json::from_value::<TaskDescription>(missing).is_err());
    }

    #[test]
    fn a_direction_that_contradicts_the_metric_is_refused() {
        let mut task = minimal();
        task["metric_direction"] = json!("minimize");
        let error = serde_json::from_value::<TaskDescription>(task).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`metric_direction: minimize` contradicts the metric: `accuracy` is to be maximized"
        );
    }
}
