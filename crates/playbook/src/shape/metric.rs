//! Metrics under the names that the catalogue knows.

/// The canonical name of a metric, if the playbook knows it.
pub(crate) fn canonical(metric: &str) -> Option<&'static str> {
    let plain: String =
        metric.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    Some(match plain.as_str() {
        "accuracy" | "acc" | "categorizationaccuracy" | "accuracyscore" | "f1micro" | "microf1" => {
            "accuracy"
        }
        "balancedaccuracy" | "balancedaccuracyscore" => "balanced_accuracy",
        "f1" | "f1score" | "f1binary" | "binaryf1" => "f1",
        "f1macro" | "macrof1" | "macrof1score" | "f1scoremacro" => "f1_macro",
        "auc" | "rocauc" | "aucroc" | "areaunderroc" | "areaundertheroccurve" | "rocaucscore" => {
            "roc_auc"
        }
        "meancolumnwiserocauc" | "columnwiserocauc" | "meancolumnwiseauc" | "meanrocauc" => {
            "mean_columnwise_roc_auc"
        }
        "logloss" | "crossentropy" | "binarylogloss" | "binarycrossentropy" => "log_loss",
        "multiclasslogloss" | "mlogloss" | "multilogloss" => "multiclass_log_loss",
        "rmse" | "rootmeansquarederror" => "rmse",
        "rmsle" | "rootmeansquaredlogarithmicerror" | "rootmeansquaredlogerror" => "rmsle",
        "rmseoflog" | "rmselog" | "logrmse" | "rmseoflogs" => "rmse_of_log",
        "mae" | "meanabsoluteerror" => "mae",
        "r2" | "r2score" | "coefficientofdetermination" => "r2",
        "mse" | "meansquarederror" => "mse",
        "mape" | "meanabsolutepercentageerror" => "mape",
        "medianabsoluteerror" => "median_absolute_error",
        "mcc" | "matthewscorrelationcoefficient" | "matthewscorrcoef" => "mcc",
        "f1weighted" | "weightedf1" => "f1_weighted",
        "qwk" | "quadraticweightedkappa" => "qwk",
        _ => return None,
    })
}

/// All metrics, for messages.
pub(crate) const KNOWN: &str = "accuracy, balanced_accuracy, f1, f1_macro, roc_auc, \
                                mean_columnwise_roc_auc, log_loss, multiclass_log_loss, rmse, \
                                rmsle, rmse_of_log, mse, mae, median_absolute_error, mape, r2, mcc, \
                                f1_weighted, qwk";

/// Whether a metric is about numbers.
pub(crate) fn is_of_numbers(canonical: &str) -> bool {
    matches!(
        canonical,
        "rmse" | "rmsle" | "rmse_of_log" | "mse" | "mae" | "median_absolute_error" | "mape" | "r2"
    )
}
