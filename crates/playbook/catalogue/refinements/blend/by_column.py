# name: blend
# title: Weights for each target of its own
# why: A model may be best for one target and poor for another: hill climbing per target column
# kinds: multilabel
# rank: 11


def weigh(oof, y):
    """Greedy selection with replacement, one set of weights per target."""
    names, weights = list(oof), {name: np.zeros(y.shape[1]) for name in oof}
    for k in range(y.shape[1]):
        counts, total, best_value = {}, 0.0, -np.inf
        for size in range(12):
            values = {name: auc(y[:, k], (total + oof[name][:, k]) / (size + 1)) for name in names}
            best = max(names, key=values.get)
            if values[best] <= best_value:
                break
            counts[best], best_value = counts.get(best, 0) + 1, values[best]
            total = total + oof[best][:, k]
        # Half of the say stays equal: the weights of a rare target are uncertain.
        for name in names:
            weights[name][k] = 0.7 * counts.get(name, 0) / max(1, sum(counts.values())) + 0.3 / len(names)
    return {name: tuple(float(v) for v in values) for name, values in weights.items()}


def combine(predictions, weights):
    return sum(np.array(weight) * predictions[name] for name, weight in weights.items())
