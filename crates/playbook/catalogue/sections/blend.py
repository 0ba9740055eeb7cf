# name: blend
# title: Weights by hill climbing
# why: Add the model that helps the out-of-fold loss most, again and again, and count how often each was chosen


def weigh(oof, y):
    """Greedy selection with replacement: twenty steps, of which the best stage is kept."""
    names, counts, total, best = list(oof), {}, 0.0, (np.inf, {})
    for size in range(20 if len(names) > 1 else 1):
        losses = {name: smooth_loss(y, (total + oof[name]) / (size + 1)) for name in names}
        chosen = min(names, key=losses.get)
        counts = {**counts, chosen: counts.get(chosen, 0) + 1}
        total = total + oof[chosen]
        if losses[chosen] < best[0]:
            best = losses[chosen], counts
    counts = best[1] or counts
    return {name: count / sum(counts.values()) for name, count in counts.items()}


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
