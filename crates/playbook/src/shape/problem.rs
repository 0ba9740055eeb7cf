//! Why the playbook has nothing to say about some data, and what can be done about it.

use super::{MIN_ROWS, metric};

/// Why the playbook has nothing to say about some data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// It knows tables and text only.
    #[error("the playbook knows tables and text, not {0}")]
    Modality(&'static str),
    /// It cannot compute the metric.
    #[error("the playbook does not know the metric `{0}`; it knows {known}", known = metric::KNOWN)]
    Metric(String),
    /// No table to train on.
    #[error("there is no training table in the data folder (a .csv, .tsv or .csv.gz file)")]
    NoTrain,
    /// A table that is there but cannot be read.
    #[error("`{path}` cannot be read as a table: {reason}")]
    Unreadable {
        /// Where it is.
        path: String,
        /// Why not.
        reason: String,
    },
    /// Nothing to predict.
    #[error("the test table `{test}` has no rows")]
    NoRows {
        /// The test table.
        test: String,
    },
    /// No table to predict for.
    #[error("there is no test table beside `{train}`")]
    NoTest {
        /// The training table.
        train: String,
    },
    /// Two tables that could both be the training or the test table.
    #[error("`{first}` and `{second}` could both be the {role} table")]
    SeveralTables {
        /// `training` or `test`.
        role: &'static str,
        /// One of them.
        first: String,
        /// Another.
        second: String,
    },
    /// More than one column that could be the target.
    #[error("the target cannot be told: `{train}` has {columns}, which `{test}` has not")]
    SeveralColumns {
        /// The training table.
        train: String,
        /// The test table.
        test: String,
        /// The columns, for people.
        columns: String,
    },
    /// No column that could be the target.
    #[error("the target cannot be told: no column of `{train}` is missing in `{test}`")]
    NoTarget {
        /// The training table.
        train: String,
        /// The test table.
        test: String,
    },
    /// Nothing to learn from.
    #[error("the target `{target}` has one value only: there is nothing to learn")]
    OneValue {
        /// The target.
        target: String,
    },
    /// Too little to learn from.
    #[error("{rows} training rows with a target are too few: at least {MIN_ROWS} are needed")]
    TooFewRows {
        /// How many there are.
        rows: usize,
    },
    /// A number is wanted where there are words.
    #[error("the target `{target}` is to be a number, but has values such as `{value}`")]
    NotANumber {
        /// The target.
        target: String,
        /// One of its values.
        value: String,
    },
    /// Several targets that are not all yes or no.
    #[error("several targets must each be 0 or 1: `{target}` is not")]
    SeveralTargets {
        /// The first that is not.
        target: String,
    },
    /// Nothing to learn from.
    #[error("no column of `{train}` could be used to predict the target")]
    NoColumns {
        /// The training table.
        train: String,
    },
}

impl ShapeError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Modality(_) => "--agents claude has no such limits",
            Self::Metric(_) => "name one of these with --metric, or use --agents claude",
            Self::NoTrain => "put the rows to learn from into `train.csv`",
            Self::Unreadable { .. } => "save it as comma-separated text in UTF-8",
            Self::NoRows { .. } => "put the rows to predict below its header",
            Self::NoTest { .. } => "put the rows to predict into `test.csv`, without the target",
            Self::SeveralTables { role: "test", .. } => {
                "name the right one `test.csv`, or leave only that one in the folder"
            }
            Self::SeveralTables { .. } => {
                "name the right one `train.csv`, or leave only that one in the folder"
            }
            Self::SeveralColumns { .. } | Self::NoTarget { .. } => {
                "add a `sample_submission.csv` with the target's name, or put the name between \
                 backticks in the description or --goal"
            }
            Self::OneValue { .. } => "check that the target is read from the right column",
            Self::TooFewRows { .. } => "add training rows that have a target",
            Self::NotANumber { .. } => {
                "correct these values, or choose a --metric for classes, such as accuracy"
            }
            Self::SeveralTargets { .. } => {
                "ask for one target, in the sample submission or in the description"
            }
            Self::NoColumns { .. } => {
                "training and test tables must share columns that differ between rows"
            }
        })
    }
}
