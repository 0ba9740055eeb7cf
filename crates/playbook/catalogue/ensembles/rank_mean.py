# name: rank_mean
# title: Mean of ranks
# why: The metric looks at order only: rank the predictions of each model, then average with hill-climbed weights
# kinds: binary multilabel
# metrics: roc_auc mean_columnwise_roc_auc
# rank: 8


def ranks(p):
    """Each column as its rank between 0 and 1; the two columns of a binary task stay complements."""
    if KIND == "binary":
        one = rankdata(p[:, 1]) / (len(p) + 1)
        return np.column_stack([1 - one, one])
    return np.column_stack([rankdata(column) / (len(p) + 1) for column in p.T])


def combine(predictions, weights):
    return sum(weight * ranks(predictions[name]) for name, weight in weights.items())


def weigh(oof, y):
    """Greedy selection with replacement on the ranked predictions; the best stage is kept."""
    ranked = {name: ranks(p) for name, p in oof.items()}
    names, counts, total, best = list(oof), {}, 0.0, (np.inf, {})
    for size in range(15 if len(names) > 1 else 1):
        losses = {name: smooth_loss(y, (total + ranked[name]) / (size + 1)) for name in names}
        chosen = min(names, key=losses.get)
        counts = {**counts, chosen: counts.get(chosen, 0) + 1}
        total = total + ranked[chosen]
        if losses[chosen] < best[0]:
            best = losses[chosen], counts
    counts = best[1] or counts
    return {name: count / sum(counts.values()) for name, count in counts.items()}
