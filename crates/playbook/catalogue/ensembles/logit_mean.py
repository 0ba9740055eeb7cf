# name: logit_mean
# title: Mean of log-odds
# why: Average on the scale of log-odds, where a confident model weighs more, with hill-climbed weights
# kinds: binary multiclass multilabel
# rank: 7


def log_odds(p):
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p) - np.log(1 - p) if KIND == "multilabel" else np.log(p)


def probabilities(odds):
    if KIND == "multilabel":
        return 1 / (1 + np.exp(-odds))
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def combine(predictions, weights):
    return probabilities(sum(weight * log_odds(predictions[name]) for name, weight in weights.items()))


def weigh(oof, y):
    """Greedy selection with replacement on the loss of the combined probabilities; the best stage is kept."""
    logs = {name: log_odds(p) for name, p in oof.items()}
    names, counts, total, best = list(oof), {}, 0.0, (np.inf, {})
    for size in range(15 if len(names) > 1 else 1):
        losses = {name: smooth_loss(y, probabilities((total + logs[name]) / (size + 1))) for name in names}
        chosen = min(names, key=losses.get)
        counts = {**counts, chosen: counts.get(chosen, 0) + 1}
        total = total + logs[chosen]
        if losses[chosen] < best[0]:
            best = losses[chosen], counts
    counts = best[1] or counts
    return {name: count / sum(counts.values()) for name, count in counts.items()}
