//! Metrics whose direction everybody agrees on.
//!
//! A wrong direction silently turns the search around, so what is known is never taken on trust.

use super::MetricDirection;
use super::MetricDirection::{Maximize, Minimize};

const KNOWN: &[(&str, MetricDirection)] = &[
    ("accuracy", Maximize),
    ("balancedaccuracy", Maximize),
    ("categorizationaccuracy", Maximize),
    ("f1", Maximize),
    ("f1score", Maximize),
    ("f1macro", Maximize),
    ("macrof1", Maximize),
    ("f1micro", Maximize),
    ("microf1", Maximize),
    ("f1weighted", Maximize),
    ("weightedf1", Maximize),
    ("precision", Maximize),
    ("recall", Maximize),
    ("auc", Maximize),
    ("rocauc", Maximize),
    ("aucroc", Maximize),
    ("auroc", Maximize),
    ("areaunderroc", Maximize),
    ("areaundertheroccurve", Maximize),
    ("meancolumnwiserocauc", Maximize),
    ("averageprecision", Maximize),
    ("map", Maximize),
    ("meanaverageprecision", Maximize),
    ("ndcg", Maximize),
    ("r2", Maximize),
    ("r2score", Maximize),
    ("rsquared", Maximize),
    ("qwk", Maximize),
    ("quadraticweightedkappa", Maximize),
    ("cohenkappa", Maximize),
    ("mcc", Maximize),
    ("matthewscorrelationcoefficient", Maximize),
    ("dice", Maximize),
    ("iou", Maximize),
    ("gini", Maximize),
    ("spearman", Maximize),
    ("pearson", Maximize),
    ("psnr", Maximize),
    ("ssim", Maximize),
    ("bleu", Maximize),
    ("rmse", Minimize),
    ("rootmeansquarederror", Minimize),
    ("rmsle", Minimize),
    ("rootmeansquaredlogarithmicerror", Minimize),
    ("rmseoflog", Minimize),
    ("mse", Minimize),
    ("meansquarederror", Minimize),
    ("mae", Minimize),
    ("meanabsoluteerror", Minimize),
    ("medianabsoluteerror", Minimize),
    ("mape", Minimize),
    ("meanabsolutepercentageerror", Minimize),
    ("smape", Minimize),
    ("msle", Minimize),
    ("logloss", Minimize),
    ("logarithmicloss", Minimize),
    ("crossentropy", Minimize),
    ("multiclasslogloss", Minimize),
    ("brier", Minimize),
    ("brierscore", Minimize),
    ("wer", Minimize),
    ("cer", Minimize),
    ("levenshtein", Minimize),
];

/// Which way a well-known metric improves. `None` if the name is not one of them.
pub fn known_direction(metric: &str) -> Option<MetricDirection> {
    let plain: String =
        metric.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    KNOWN.iter().find(|(name, _)| *name == plain).map(|(_, direction)| *direction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter_but_the_metric_does() {
        assert_eq!(known_direction("ROC-AUC"), Some(Maximize));
        assert_eq!(known_direction("roc_auc"), Some(Maximize));
        assert_eq!(known_direction("Log Loss"), Some(Minimize));
        assert_eq!(known_direction("profit per customer"), None);
    }
}
