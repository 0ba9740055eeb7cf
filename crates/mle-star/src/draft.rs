//! A task that is written down from what lies in a folder.
//!
//! [`Draft::of`] decides what can be seen: where the data is, what is predicted and of which kind it
//! is, what the description says about the metric. Each decision comes with its reason, and what
//! could not be decided comes with what to do about it. `metric` reads descriptions, `file` writes
//! the task file. Nothing is asked, and no file is written here.

mod file;
mod metric;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_playbook::{Certainty, Kind, Seen, ShapeError, Wanted};
use mle_star_profile::{Bounds, DataProfile, profile};
use mle_star_search::models::{DataModality, MetricDirection, TaskType, known_direction};
use mle_star_view::plain;

use crate::task_file::{DATA_FOLDERS, DESCRIPTIONS, TaskOptions};

pub(crate) use metric::meant;

/// Fewer pictures or recordings than this are no data set.
const MIN_FILES: usize = 10;
/// A description is a text that people read.
const MAX_DESCRIPTION: u64 = 1024 * 1024;

/// A task as far as a folder shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The name of the folder.
    pub competition_id: String,
    /// What kind of problem it is.
    pub task_type: TaskType,
    /// What the data consists of.
    pub data_modality: DataModality,
    /// How predictions are judged.
    pub metric: Metric,
    /// Which way the metric improves, if that is known.
    pub direction: Option<MetricDirection>,
    /// What the task is.
    pub description: Description,
    /// Where the data is, relative to the folder.
    pub data_dir: Utf8PathBuf,
    /// What the tables show, if they can be understood.
    pub seen: Option<Seen>,
    /// What was decided, and why.
    pub decided: Vec<Decided>,
    /// What could not be decided.
    pub open: Vec<Open>,
}

/// How predictions are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// What is most likely.
    pub name: String,
    /// How it is known.
    pub source: MetricSource,
    /// What else it may be.
    pub others: Vec<String>,
}

/// How a metric is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricSource {
    /// Somebody said so: the command line, or the description where it is about judging.
    Told,
    /// The description names it, for whatever reason.
    Mentioned,
    /// It is usual for what is predicted.
    Guessed,
}

/// What the task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Description {
    /// A file with a text, relative to the folder.
    File(Utf8PathBuf),
    /// A text.
    Text(String),
}

/// Something that was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// About what.
    pub subject: &'static str,
    /// The decision.
    pub value: String,
    /// Why.
    pub reason: String,
}

/// Something that was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// What is unknown.
    pub subject: &'static str,
    /// Why, and what to do about it.
    pub remedy: String,
}

/// Where a folder has what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The data, relative to the folder.
    pub(crate) data_dir: Utf8PathBuf,
    /// The description, relative to the folder, and its text.
    pub(crate) description: Option<(Utf8PathBuf, String)>,
}

impl Layout {
    /// Looks for the data and the description in `folder`.
    pub(crate) fn of(folder: &Utf8Path) -> std::io::Result<Self> {
        let below = DATA_FOLDERS.iter().find(|it| folder.join(it).is_dir());
        let data_dir = Utf8PathBuf::from(below.copied().unwrap_or("."));
        // Beside the data comes first; some collections put it among the data.
        let places = [Utf8Path::new(""), data_dir.as_path()];
        let described = places.iter().find_map(|place| {
            DESCRIPTIONS.iter().map(|name| place.join(name)).find(|it| folder.join(it).is_file())
        });
        let description = match described {
            Some(path) if fs::metadata(folder.join(&path))?.len() <= MAX_DESCRIPTION => {
                let text = String::from_utf8_lossy(&fs::read(folder.join(&path))?).into_owned();
                Some((path, text)).filter(|(_, text)| !text.trim().is_empty())
            }
            Some(_) | None => None,
        };
        Ok(Self { data_dir, description })
    }
}

impl Draft {
    /// Looks at `folder`, and takes what `options` say.
    pub fn of(folder: &Utf8Path, options: &TaskOptions) -> std::io::Result<Self> {
        let folder = camino::absolute_utf8(folder)?;
        let layout = Layout::of(&folder)?;
        let mut decided = Vec::new();
        let mut open = Vec::new();
        let mut decide = |subject, value: &str, reason: &str| {
            decided.push(Decided { subject, value: plain(value), reason: plain(reason) });
        };
        let mut leave = |subject, remedy: &str| open.push(Open { subject, remedy: plain(remedy) });

        let profiled = profile(&folder.join(&layout.data_dir), &Bounds::default());
        match &profiled {
            Ok(profile) => {
                let count = profile.total_files;
                let files = if count == 1 { "file" } else { "files" };
                decide("data", layout.data_dir.as_str(), &format!("it holds {count} {files}"));
            }
            Err(error) => leave("data", &format!("{error}; put the files into `input`")),
        }
        let mut text = options.goal.clone().unwrap_or_default();
        if let Some((_, described)) = &layout.description {
            text = format!("{text}\n\n{described}");
        }
        let named = metric::named(&text);
        let told = options.metric.as_deref().map(|it| metric::meant(it).unwrap_or(it));
        let told = told.or(if let [only] = named.told.as_slice() { Some(only) } else { None });
        let looked = profiled
            .as_ref()
            .ok()
            .map(|profile| Seen::of(&folder.join(&layout.data_dir), profile, &text, told));
        let media = profiled.as_ref().map(media).unwrap_or_default();
        let seen = match looked {
            Some(Ok(seen)) => Some(seen),
            Some(Err(error)) => {
                leave("target", &unseen(&error));
                None
            }
            None => None,
        };
        let (data_modality, reason) = modality(seen.as_ref(), &media);
        let task_type = task_type(seen.as_ref(), data_modality);
        if let Some(seen) = &seen {
            describe(seen, &mut decide, &mut leave);
        }
        decide("data_modality", &as_word(&data_modality), &reason);
        match &seen {
            Some(seen) => {
                decide("task_type", &as_word(&task_type), &format!("it is {}", kind_of(seen)));
            }
            None => leave(
                "task_type",
                &format!("without a target, `{}` is a guess", as_word(&task_type)),
            ),
        }

        let metric = choose(told, &named, seen.as_ref());
        let fitting = metric.others.join(", ");
        let by =
            if options.metric.is_some() { "--metric says so" } else { "the description says so" };
        match metric.source {
            MetricSource::Told => decide("evaluation_metric", &metric.name, by),
            MetricSource::Mentioned | MetricSource::Guessed => leave(
                "evaluation_metric",
                &format!(
                    "nothing says it plainly; `{}` is a guess ({fitting} fit too)",
                    metric.name
                ),
            ),
        }
        let known = known_direction(&metric.name);
        let direction = options.direction.or(known).or(named.direction);
        match direction {
            Some(direction) => {
                let reason = match (options.direction, known) {
                    (Some(_), _) => "you say so".to_owned(),
                    (None, Some(_)) => format!("so it is with `{}`", metric.name),
                    (None, None) => "the description says so".to_owned(),
                };
                decide("metric_direction", &as_word(&direction), &reason);
            }
            None => leave(
                "metric_direction",
                &format!("`{}` is not known here; write minimize or maximize", metric.name),
            ),
        }
        let description = match (&options.goal, layout.description) {
            (None, Some((path, _))) => {
                decide("description_file", path.as_str(), "it is there");
                Description::File(path)
            }
            (Some(goal), described) => {
                decide("description", goal, "you say so");
                let rest = described.map(|(_, text)| format!("\n\n{text}")).unwrap_or_default();
                Description::Text(format!("{goal}{rest}"))
            }
            (None, None) => {
                leave("description", "there is no description.md; say more about the task");
                Description::Text(goal_of(seen.as_ref()))
            }
        };
        let competition_id = folder.file_name().unwrap_or("task").to_owned();
        Ok(Self {
            competition_id,
            task_type,
            data_modality,
            metric,
            direction,
            description,
            data_dir: layout.data_dir,
            seen,
            decided,
            open,
        })
    }
}

/// What files of other kinds than tables there are.
#[derive(Debug, Default)]
struct Media {
    pictures: usize,
    recordings: usize,
}

fn media(profile: &DataProfile) -> Media {
    let count = |extensions: &[&str]| {
        let is_one = |it: &str| extensions.contains(&it.to_lowercase().as_str());
        let groups = profile.groups.iter().filter(|group| is_one(&group.extension));
        groups.map(|group| group.files).sum()
    };
    Media {
        pictures: count(&["png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif", "webp", "dcm"]),
        recordings: count(&["wav", "mp3", "flac", "ogg", "aif", "aiff", "m4a"]),
    }
}

fn modality(seen: Option<&Seen>, media: &Media) -> (DataModality, String) {
    let has_features = seen.is_some_and(|it| it.columns > 2);
    let (count, what, modality) = if media.pictures >= media.recordings {
        (media.pictures, "pictures", DataModality::Image)
    } else {
        (media.recordings, "recordings", DataModality::Audio)
    };
    match seen.and_then(|it| it.prose.as_ref()) {
        _ if count >= MIN_FILES && has_features => {
            (DataModality::Mixed, format!("there are {count} {what} and a table of features"))
        }
        _ if count >= MIN_FILES => (modality, format!("there are {count} {what}")),
        Some(prose) => (DataModality::Text, format!("`{prose}` is prose")),
        None if seen.is_some() => {
            (DataModality::Tabular, "there are tables and nothing else".to_owned())
        }
        None => (DataModality::Tabular, "there is nothing else that is known".to_owned()),
    }
}

fn task_type(seen: Option<&Seen>, modality: DataModality) -> TaskType {
    match (seen.map(|it| it.kind), modality) {
        (Some(Kind::Regression), _) => TaskType::Regression,
        (_, DataModality::Image) => TaskType::ImageClassification,
        (_, DataModality::Audio) => TaskType::AudioClassification,
        (_, DataModality::Text) => TaskType::TextClassification,
        (Some(Kind::Binary | Kind::Multiclass | Kind::Multilabel), _) => TaskType::Classification,
        (None, DataModality::Tabular | DataModality::Mixed) => TaskType::Tabular,
    }
}

fn describe(
    seen: &Seen,
    decide: &mut impl FnMut(&'static str, &str, &str),
    leave: &mut impl FnMut(&'static str, &str),
) {
    let Seen { train, test, targets, .. } = seen;
    let reason = match &seen.sample {
        Some(sample) => format!("`{train}` has it, `{test}` has not, and `{sample}` asks for it"),
        None => format!("`{train}` has it and `{test}` has not"),
    };
    decide("target", &listed(targets), &reason);
    match &seen.id {
        Some(id) => decide("id", id, "it names the rows of a submission"),
        None => decide("id", "none", "submissions follow the order of the test rows"),
    }
    if seen.certainty == Certainty::FewNumbers {
        let values = seen.values;
        leave(
            "kind",
            &format!(
                "{} has {values} whole numbers, which are taken for classes; if they are amounts, \
                 set task_type to regression and choose a metric for numbers, such as rmse",
                listed(targets)
            ),
        );
    }
}

fn unseen(error: &ShapeError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// What is predicted, in words.
fn kind_of(seen: &Seen) -> String {
    let examples = || {
        let dots = if seen.values > seen.examples.len() { ", …" } else { "" };
        format!("{}{dots}", seen.examples.join(", "))
    };
    match seen.kind {
        Kind::Binary => format!("binary: one of {}", examples()),
        Kind::Multiclass => format!("multiclass: one of {} values ({})", seen.values, examples()),
        Kind::Multilabel => format!("multilabel: {} answers of yes or no", seen.targets.len()),
        Kind::Regression => format!("a number ({})", examples()),
    }
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
    names.join(", ")
}

fn goal_of(seen: Option<&Seen>) -> String {
    match seen {
        Some(seen) => {
            let train = format!("learning from `{}`", seen.train);
            format!("Predict {} for every row of `{}`, {train}.", listed(&seen.targets), seen.test)
        }
        None => "Predict … for every row of the test data.".to_owned(),
    }
}

/// The metric that was told, or the likeliest.
fn choose(told: Option<&str>, named: &metric::Named, seen: Option<&Seen>) -> Metric {
    let usual = usual(seen);
    let fitted = |name: &str| fitted(name, seen);
    let (name, source) = if let Some(told) = told {
        (fitted(told), MetricSource::Told)
    } else if let Some(first) = named.told.first().or(named.mentioned.first()) {
        (fitted(first), MetricSource::Mentioned)
    } else {
        (usual.first().copied().unwrap_or("accuracy").to_owned(), MetricSource::Guessed)
    };
    let mut others: Vec<String> = Vec::new();
    for other in named.told.iter().copied().map(fitted).chain(usual.into_iter().map(str::to_owned))
    {
        if other != name && !others.contains(&other) {
            others.push(other);
        }
    }
    Metric { name, source, others }
}

/// The variety of a metric that is meant for what is predicted.
fn fitted(name: &str, seen: Option<&Seen>) -> String {
    let name = match (name, seen.map(|it| it.kind)) {
        ("roc_auc", Some(Kind::Multilabel)) => "mean_columnwise_roc_auc",
        ("log_loss", Some(Kind::Multiclass)) => "multiclass_log_loss",
        ("f1", Some(Kind::Multiclass)) => "f1_macro",
        (name, _) => name,
    };
    name.to_owned()
}

/// Metrics that are usual for what is predicted, the likeliest first.
fn usual(seen: Option<&Seen>) -> Vec<&'static str> {
    let Some(seen) = seen else { return vec!["accuracy", "roc_auc", "rmse"] };
    match (seen.kind, seen.wanted) {
        (Kind::Binary, Wanted::Probabilities) => vec!["roc_auc", "log_loss"],
        (Kind::Binary, Wanted::Unknown | Wanted::Values) => vec!["accuracy", "f1", "roc_auc"],
        (Kind::Multiclass, Wanted::Probabilities) => vec!["multiclass_log_loss"],
        (Kind::Multiclass, Wanted::Unknown | Wanted::Values) => {
            vec!["accuracy", "f1_macro", "balanced_accuracy"]
        }
        (Kind::Multilabel, Wanted::Values) => vec!["f1_macro", "mean_columnwise_roc_auc"],
        (Kind::Multilabel, Wanted::Unknown | Wanted::Probabilities) => {
            vec!["mean_columnwise_roc_auc"]
        }
        (Kind::Regression, _) if seen.is_positive => vec!["rmse", "mae", "rmsle", "r2"],
        (Kind::Regression, _) => vec!["rmse", "mae", "r2"],
    }
}

/// A value as task files spell it.
fn as_word(value: &impl serde::Serialize) -> String {
    let word = serde_json::to_value(value).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
