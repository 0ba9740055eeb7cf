//! Metrics in prose.
//!
//! A description says in words how predictions are judged, mostly below a heading such as
//! "Evaluation". What stands there, or in a sentence about judging, was told; what stands elsewhere
//! was only mentioned. Words that have another meaning too, such as "accuracy", count only where
//! they are told.

use mle_star_search::models::MetricDirection;

/// Which metrics a text names, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// By which it says that predictions are judged.
    pub(crate) told: Vec<&'static str>,
    /// Which it names for other reasons.
    pub(crate) mentioned: Vec<&'static str>,
    /// Which way is better, if it says so.
    pub(crate) direction: Option<MetricDirection>,
}

/// Ways to say a metric, and its name.
const PHRASES: &[(&str, &str)] = &[
    ("accuracy", "accuracy"),
    ("categorization accuracy", "accuracy"),
    ("percentage of correct predictions", "accuracy"),
    ("balanced accuracy", "balanced_accuracy"),
    ("f1", "f1"),
    ("f1 score", "f1"),
    ("f1 macro", "f1_macro"),
    ("macro f1", "f1_macro"),
    ("macro averaged f1", "f1_macro"),
    ("weighted f1", "f1_weighted"),
    ("f1 weighted", "f1_weighted"),
    ("auc", "roc_auc"),
    ("auroc", "roc_auc"),
    ("roc auc", "roc_auc"),
    ("auc roc", "roc_auc"),
    ("area under the roc curve", "roc_auc"),
    ("area under the receiver operating characteristic curve", "roc_auc"),
    ("mean columnwise roc auc", "mean_columnwise_roc_auc"),
    ("mean column wise roc auc", "mean_columnwise_roc_auc"),
    ("log loss", "log_loss"),
    ("logloss", "log_loss"),
    ("logarithmic loss", "log_loss"),
    ("cross entropy", "log_loss"),
    ("multi class log loss", "multiclass_log_loss"),
    ("multiclass log loss", "multiclass_log_loss"),
    ("multi class logloss", "multiclass_log_loss"),
    ("multiclass logloss", "multiclass_log_loss"),
    ("multi class logarithmic loss", "multiclass_log_loss"),
    ("multiclass logarithmic loss", "multiclass_log_loss"),
    ("rmse", "rmse"),
    ("root mean squared error", "rmse"),
    ("root mean square error", "rmse"),
    ("rmsle", "rmsle"),
    ("root mean squared logarithmic error", "rmsle"),
    ("root mean squared log error", "rmsle"),
    ("rmse of log", "rmse_of_log"),
    ("mse", "mse"),
    ("mean squared error", "mse"),
    ("mean square error", "mse"),
    ("mae", "mae"),
    ("mean absolute error", "mae"),
    ("mape", "mape"),
    ("mean absolute percentage error", "mape"),
    ("smape", "smape"),
    ("median absolute error", "median_absolute_error"),
    ("r2", "r2"),
    ("r squared", "r2"),
    ("coefficient of determination", "r2"),
    ("mcc", "mcc"),
    ("matthews correlation coefficient", "mcc"),
    ("qwk", "qwk"),
    ("quadratic weighted kappa", "qwk"),
    ("quadratically weighted kappa", "qwk"),
    ("average precision", "average_precision"),
    ("mean average precision", "mean_average_precision"),
    ("ndcg", "ndcg"),
    ("gini", "gini"),
    ("gini coefficient", "gini"),
    ("dice", "dice"),
    ("dice coefficient", "dice"),
    ("intersection over union", "iou"),
    ("iou", "iou"),
    ("brier score", "brier_score"),
    ("word error rate", "wer"),
    ("character error rate", "cer"),
    ("bleu", "bleu"),
    ("spearman", "spearman"),
    ("pearson", "pearson"),
];

/// Phrases that often mean something else.
const COMMON_WORDS: [&str; 6] = ["accuracy", "dice", "gini", "spearman", "pearson", "r squared"];

/// How sentences about judging are known: words that begin like this.
const JUDGING: [&str; 8] =
    ["evaluat", "metric", "scored", "scoring", "judged", "graded", "minimi", "maximi"];

/// Looks for metrics in `text`, which is Markdown or plain.
pub(crate) fn named(text: &str) -> Named {
    let mut named = Named::default();
    for (is_told, sentence) in sentences(text) {
        let words = words(&sentence);
        let found = metrics(&words);
        let into = if is_told { &mut named.told } else { &mut named.mentioned };
        for (phrase, metric) in found {
            if (is_told || !COMMON_WORDS.contains(&phrase)) && !into.contains(&metric) {
                into.push(metric);
            }
        }
        if is_told && named.direction.is_none() {
            named.direction = direction(&words);
        }
    }
    let Named { told, mentioned, .. } = &mut named;
    mentioned.retain(|it| !told.contains(it));
    named
}

/// The metric that somebody means who was asked for one, in a word or in a sentence.
pub(crate) fn meant(text: &str) -> Option<&'static str> {
    let found = metrics(&words(text));
    match found.as_slice() {
        [(_, metric), others @ ..] if others.iter().all(|(_, it)| it == metric) => Some(metric),
        _ => None,
    }
}

/// The sentences of a text, and whether each is about how predictions are judged.
fn sentences(text: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let (mut in_section, mut in_code) = (false, false);
    let mut paragraph = String::new();
    let mut end = |paragraph: &mut String, in_section: bool| {
        for sentence in paragraph.split_inclusive(". ") {
            let words = words(sentence);
            let judges = |word: &str| JUDGING.iter().any(|it| word.starts_with(it));
            found.push((in_section || words.split(' ').any(judges), sentence.to_owned()));
        }
        paragraph.clear();
    };
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            end(&mut paragraph, in_section);
            in_code = !in_code;
        } else if in_code {
        } else if let Some(judges) = heading(line) {
            end(&mut paragraph, in_section);
            in_section = judges;
        } else if line.is_empty() {
            end(&mut paragraph, in_section);
        } else {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    end(&mut paragraph, in_section);
    found
}

/// Whether a heading is about judging; `None` if the line is no heading.
fn heading(line: &str) -> Option<bool> {
    let plain = words(line);
    let is_marked = line.starts_with('#')
        || (line.starts_with("**") && line.trim_end_matches(':').ends_with("**"));
    let judges = ["evaluation", "metric", "metrics", "scoring"];
    if is_marked {
        return Some(plain.split(' ').any(|it| judges.contains(&it)));
    }
    // Without marks, a line is a heading if it says nothing else.
    (!plain.trim().is_empty() && plain.split_whitespace().all(|it| judges.contains(&it)))
        .then_some(true)
}

/// The words of a text, in lower case, each between single spaces.
fn words(text: &str) -> String {
    let mut words = String::from(" ");
    // People also write the square as one.
    for character in text.replace('²', "2").chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            words.push(character);
        } else if !words.ends_with(' ') {
            words.push(' ');
        }
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

/// The phrases in `words`, longer ones before those that they contain, in the order of the text.
fn metrics(words: &str) -> Vec<(&'static str, &'static str)> {
    let mut phrases: Vec<_> = PHRASES.to_vec();
    phrases.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.len()));
    let mut rest = words.to_owned();
    let mut found = Vec::new();
    for (phrase, metric) in phrases {
        let spaced = format!(" {phrase} ");
        while let Some(at) = rest.find(&spaced) {
            found.push((at, phrase, refined(metric, words)));
            // The text keeps its length, so that places stay what they are.
            rest.replace_range(at + 1..at + 1 + phrase.len(), &"-".repeat(phrase.len()));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    found.into_iter().map(|(_, phrase, metric)| (phrase, metric)).collect()
}

/// What the rest of a sentence makes of a metric.
fn refined(metric: &'static str, words: &str) -> &'static str {
    let has = |word: &str| words.contains(&format!(" {word} "));
    match metric {
        "rmse" if has("logarithm") || has("logarithms") || has("log of") => "rmse_of_log",
        "roc_auc" if has("columnwise") || has("column wise") => "mean_columnwise_roc_auc",
        "f1" if has("macro") => "f1_macro",
        "f1" if has("weighted") => "f1_weighted",
        metric => metric,
    }
}

fn direction(words: &str) -> Option<MetricDirection> {
    let any = |phrases: &[&str]| phrases.iter().any(|it| words.contains(&format!(" {it} ")));
    let less = any(&["lower is better", "smaller is better", "less is better", "minimize"]);
    let more = any(&["higher is better", "larger is better", "more is better", "maximize"]);
    match (less, more) {
        (true, false) => Some(MetricDirection::Minimize),
        (false, true) => Some(MetricDirection::Maximize),
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use mle_star_search::models::known_direction;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_direction_of_every_metric_that_is_recognised_is_known() {
        let names = PHRASES.iter().map(|(_, name)| *name);
        let unknown: Vec<&str> = names.filter(|it| known_direction(it).is_none()).collect();
        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn what_is_told_is_kept_apart_from_what_is_mentioned() {
        let text = "# Taxi\nOthers reached an MAE of 3 and an accuracy of 0.9.\n\n## Evaluation\n\
                    Submissions are judged by the Root-Mean-Squared-Error\n(RMSE). Lower is \
                    better.\n\n```\nid,auc\n```\n# Files\nThe log loss of cuts.\n";
        let expected = Named {
            told: vec!["rmse"],
            mentioned: vec!["mae", "log_loss"],
            direction: Some(MetricDirection::Minimize),
        };
        assert_eq!(named(text), expected);
    }

    #[test]
    fn sentences_are_understood_as_people_write_them() {
        for (text, metric) in [
            ("Evaluated on area under the ROC curve.", "roc_auc"),
            ("The metric is mean column-wise ROC AUC.", "mean_columnwise_roc_auc"),
            ("Scored by multi-class logarithmic loss", "multiclass_log_loss"),
            ("Use the RMSE metric between the logarithm of the values.", "rmse_of_log"),
            ("Evaluation: Root Mean Squared Logarithmic Error (RMSLE)", "rmsle"),
            ("Metric\n\nR² of the prediction", "r2"),
            ("**Evaluation**\nThe macro F1-score.", "f1_macro"),
            ("Minimize the mean squared error.", "mse"),
            ("Submissions are evaluated on categorization accuracy.", "accuracy"),
            ("Submissions are scored based on the quadratic weighted kappa", "qwk"),
        ] {
            assert_eq!(named(text).told, [metric], "{text}");
        }
        assert_eq!(named("We improve the accuracy of the sensor.").mentioned, [""; 0]);
        assert_eq!(meant("RMSE"), Some("rmse"));
        assert_eq!(meant("RMSE or MAE"), None);
        assert_eq!(meant("profit"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(?s).{0,300}", metric in "(rmse|auc|²|ß|İ|\\. |#|\n){0,20}") {
            named(&text);
            named(&metric);
            meant(&metric);
        }
    }
}
