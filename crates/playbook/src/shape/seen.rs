//! What the data shows before anybody has said what the task is.
//!
//! A [`Shape`](super::Shape) needs a metric and refuses what the playbook cannot solve. A [`Seen`]
//! needs nothing but the data, and is for whoever writes a task down.

use camino::Utf8Path;
use mle_star_profile::DataProfile;

use super::columns::{Use, usage};
use super::identifier::identifier;
use super::labels::add_labels;
use super::table::{Column, Table, number};
use super::tables::{Tables, targets};
use super::{ABOUT_TEXT, Kind, ShapeError, metric, rows, words};

/// Numbers with more different values than this are measured rather than named.
const MAX_CLASSES: usize = 20;
/// A class has at least this many rows on average.
const ROWS_PER_CLASS: usize = 10;
/// Values of the target that are shown.
const MAX_EXAMPLES: usize = 5;

/// What the data of a folder shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The table to learn from, relative to the folder.
    pub train: String,
    /// The table to predict for.
    pub test: String,
    /// The sample submission.
    pub sample: Option<String>,
    /// What is predicted.
    pub targets: Vec<String>,
    /// What kind of thing that is.
    pub kind: Kind,
    /// How sure the kind is.
    pub certainty: Certainty,
    /// The column that names the rows of a submission.
    pub id: Option<String>,
    /// Some different values of the first target, in order.
    pub examples: Vec<String>,
    /// How many different values the first target has, as far as it was read.
    pub values: usize,
    /// Whether all values of the first target are numbers greater than zero.
    pub is_positive: bool,
    /// What the sample submission holds.
    pub wanted: Wanted,
    /// Training rows, roughly where the file is large.
    pub rows: u64,
    /// Columns that both tables have, targets and identifier aside.
    pub columns: usize,
    /// A column of prose, if there is one.
    pub prose: Option<String>,
}

/// How sure a kind is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// The values, or the metric that was told, leave no choice.
    Sure,
    /// A few whole numbers, which may be names or counts.
    FewNumbers,
}

/// What is to be submitted, by the sample submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// There is none, or it does not tell.
    Unknown,
    /// Values such as those of the training table.
    Values,
    /// Probabilities: fractions for something that is yes or no, or a column for each class.
    Probabilities,
}

impl Seen {
    /// Looks at the data in `folder`. `description` may name the target, and `metric` tells
    /// numbers from classes; both may be unknown.
    pub fn of(
        folder: &Utf8Path,
        profile: &DataProfile,
        description: &str,
        metric: Option<&str>,
    ) -> Result<Self, ShapeError> {
        let Tables { mut train, test, sample, mut others } = Tables::find(folder, profile)?;
        add_labels(&mut train, &test, &mut others);
        let told = metric.and_then(metric::canonical);
        let sought = |metric| targets(&train, &test, sample.as_ref(), metric, description);
        let targets = match told {
            Some(metric) => sought(metric)?,
            None => sought("accuracy").or_else(|_| sought("rmse"))?,
        };
        let columns: Vec<&Column> = targets.iter().filter_map(|it| train.column(it)).collect();
        let (kind, certainty) = kind(&columns, told);
        let (id, _) = identifier(&train, &test, sample.as_ref(), &targets);
        let shared = || {
            let other = |it: &&Column| {
                !targets.contains(&it.name)
                    && id.as_ref() != Some(&it.name)
                    && test.has(&it.name)
                    && it.present().next().is_some()
            };
            train.columns.iter().filter(other)
        };
        let prose = shared()
            .filter(|it| usage(it) == Use::Text)
            .find(|it| words(&train, &it.name) >= ABOUT_TEXT)
            .map(|it| it.name.clone());
        let mut values: Vec<&str> =
            columns.first().map(|it| it.distinct().into_iter().collect()).unwrap_or_default();
        values.sort_unstable();
        let positive = |column: &&Column| {
            column.present().all(|value| number(value).is_some_and(|value| value > 0.0))
        };
        Ok(Self {
            kind,
            certainty,
            examples: values.iter().take(MAX_EXAMPLES).map(ToString::to_string).collect(),
            values: values.len(),
            is_positive: columns.first().is_some_and(positive),
            wanted: wanted(sample.as_ref(), &train, &targets, kind, values.len()),
            rows: rows(&train, profile),
            columns: shared().count(),
            train: train.path,
            test: test.path,
            sample: sample.map(|it| it.path),
            targets,
            id,
            prose,
        })
    }
}

fn kind(columns: &[&Column], metric: Option<&str>) -> (Kind, Certainty) {
    let is_flag =
        |it: &&Column| it.present().all(|it| number(it).is_some_and(|it| it == 0.0 || it == 1.0));
    let [column] = columns else {
        let kind = if columns.iter().all(is_flag) { Kind::Multilabel } else { Kind::Regression };
        return (kind, Certainty::Sure);
    };
    let different = column.distinct().len();
    if different == 2 && metric.is_none_or(|it| !metric::is_of_numbers(it)) {
        return (Kind::Binary, Certainty::Sure);
    }
    match metric {
        _ if !column.is_number() => return (Kind::Multiclass, Certainty::Sure),
        Some(metric) if metric::is_of_numbers(metric) => {
            return (Kind::Regression, Certainty::Sure);
        }
        // This metric is for grades: whole numbers that have an order.
        Some("qwk") => return (Kind::Regression, Certainty::Sure),
        Some(_) => return (Kind::Multiclass, Certainty::Sure),
        None => {}
    }
    let is_whole = column.present().filter_map(number).all(|it| it.fract() == 0.0);
    let is_few = different <= MAX_CLASSES && different * ROWS_PER_CLASS <= column.present().count();
    if is_whole && is_few {
        (Kind::Multiclass, Certainty::FewNumbers)
    } else {
        (Kind::Regression, Certainty::Sure)
    }
}

fn wanted(
    sample: Option<&Table>,
    train: &Table,
    targets: &[String],
    kind: Kind,
    classes: usize,
) -> Wanted {
    let Some(sample) = sample else { return Wanted::Unknown };
    let fractions =
        |column: &Column| column.present().filter_map(number).any(|value| value.fract() != 0.0);
    let predicted: Vec<&Column> = targets.iter().filter_map(|it| sample.column(it)).collect();
    let foreign = sample.columns.iter().filter(|it| !train.has(&it.name)).count();
    match kind {
        Kind::Regression => Wanted::Values,
        Kind::Binary | Kind::Multilabel if predicted.iter().any(|it| fractions(it)) => {
            Wanted::Probabilities
        }
        Kind::Binary | Kind::Multiclass if foreign >= classes && classes >= 2 => {
            Wanted::Probabilities
        }
        Kind::Binary | Kind::Multiclass | Kind::Multilabel if predicted.is_empty() => {
            Wanted::Unknown
        }
        Kind::Binary | Kind::Multiclass | Kind::Multilabel => Wanted::Values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(train: &str, test: &str, sample: Option<&str>, metric: Option<&str>) -> Seen {
        let place = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(place.path()).unwrap();
        fs_err::write(folder.join("train.csv"), train).unwrap();
        fs_err::write(folder.join("test.csv"), test).unwrap();
        if let Some(sample) = sample {
            fs_err::write(folder.join("sample_submission.csv"), sample).unwrap();
        }
        let profile =
            mle_star_profile::profile(folder, &mle_star_profile::Bounds::default()).unwrap();
        Seen::of(folder, &profile, "", metric).unwrap()
    }

    fn rows(header: &str, row: impl Fn(usize) -> String) -> String {
        (0..60).fold(format!("{header}\n"), |text, at| text + &row(at) + "\n")
    }

    fn look(target: impl Fn(usize) -> String, metric: Option<&str>) -> (Kind, Certainty) {
        let train = rows("id,size,y", |at| format!("{at},{},{}", at * 7 % 31, target(at)));
        let seen = seen(&train, "id,size\n61,3\n62,4\n", None, metric);
        assert_eq!((seen.targets, seen.id), (vec!["y".to_owned()], Some("id".to_owned())));
        (seen.kind, seen.certainty)
    }

    #[test]
    fn the_values_of_the_target_tell_its_kind_and_a_metric_overrules_them() {
        use Certainty::{FewNumbers, Sure};
        let few = |at: usize| (at % 5).to_string();
        assert_eq!(look(|at| (at % 2).to_string(), None), (Kind::Binary, Sure));
        assert_eq!(look(|at| format!("kind {}", at % 3), None), (Kind::Multiclass, Sure));
        assert_eq!(look(|at| format!("{}.5", at * 3), None), (Kind::Regression, Sure));
        assert_eq!(look(few, None), (Kind::Multiclass, FewNumbers));
        assert_eq!(look(few, Some("rmse")), (Kind::Regression, Sure));
        assert_eq!(look(few, Some("accuracy")), (Kind::Multiclass, Sure));
    }

    #[test]
    fn the_sample_submission_tells_probabilities_from_values() {
        let train = rows("id,size,y", |at| format!("{at},{},{}", at * 7 % 31, at % 2));
        let wanted = |sample: &str| seen(&train, "id,size\n61,3\n", Some(sample), None).wanted;
        assert_eq!(wanted("id,y\n61,0\n"), Wanted::Values);
        assert_eq!(wanted("id,y\n61,0.5\n"), Wanted::Probabilities);
        assert_eq!(wanted("id,no,yes\n61,0.5,0.5\n"), Wanted::Probabilities);
    }
}
