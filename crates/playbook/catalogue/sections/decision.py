# name: decision
# title: From predictions to what is submitted
# why: Probabilities are calibrated for log loss and left alone for ranking; labels by the most probable class, or by the threshold that maximises F1


def learn_decision(p, y):
    """What `decide` needs to know: a threshold for F1, a temperature for log loss, the range of numbers."""
    if KIND == "regression":
        return float(np.min(y)), float(np.max(y))
    if KIND in ("binary", "multiclass") and METRIC in ("log_loss", "multiclass_log_loss"):
        return temperature(p, y)
    if KIND == "binary" and METRIC in ("f1", "mcc"):
        # The best threshold on one sample is noisy: take the middle of all thresholds that are nearly as good.
        cuts = np.linspace(0.15, 0.75, 121)
        values = np.array([metric(y, (p[:, 1] >= cut).astype(int)) for cut in cuts])
        return float(np.mean(cuts[values >= values.max() - 0.003]))
    return None


def decide(p, learnt):
    if KIND == "regression":
        span = learnt[1] - learnt[0]
        p = np.clip(p, learnt[0] - 0.02 * span if learnt[0] < 0 else learnt[0] * 0.9, learnt[1] + 0.02 * span)
        return np.round(p) if METRIC == "qwk" else p
    if KIND in ("binary", "multiclass") and METRIC in ("log_loss", "multiclass_log_loss"):
        return heated(p, learnt)
    if METRIC in ("roc_auc", "mean_columnwise_roc_auc", "log_loss", "multiclass_log_loss", "mean_columnwise_log_loss"):
        return p
    if KIND == "multilabel":
        return (p >= 0.5).astype(int)
    if learnt is not None:
        return (p[:, 1] >= learnt).astype(int)
    return p.argmax(axis=1)
