# name: hill_climbing
# title: Hill climbing over all models
# why: From all models of both solutions add the one that lowers the out-of-fold loss most, again and again, on several bags of models
# rank: 5


def climb(names, oof, y):
    """Greedy selection with replacement among `names`: a weight for each at the best stage of twenty."""
    counts, total, best = {}, 0.0, (np.inf, {})
    for size in range(20 if len(names) > 1 else 1):
        losses = {name: smooth_loss(y, (total + oof[name]) / (size + 1)) for name in names}
        chosen = min(names, key=losses.get)
        counts = {**counts, chosen: counts.get(chosen, 0) + 1}
        total = total + oof[chosen]
        if losses[chosen] < best[0]:
            best = losses[chosen], counts
    counts = best[1] or counts
    return {name: count / sum(counts.values()) for name, count in counts.items()}


def weigh(oof, y):
    """The mean of a few climbs, each with a random part of the models left out: steadier than one climb."""
    names, chance = list(oof), np.random.default_rng(SEED)
    weights = {name: 0.0 for name in names}
    bags = 1 if len(names) <= 2 else 4
    for bag in range(bags):
        some = names if bag == 0 else [name for name in names if chance.random() < 0.7] or names
        for name, weight in climb(some, oof, y).items():
            weights[name] += weight / bags
    return {name: weight for name, weight in weights.items() if weight > 0}


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
