# name: mean_of_best
# title: Mean of the solutions, each with its own weights
# why: First weigh the models inside each solution, then give both solutions the same say
# rank: 9


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
    solutions = sorted({name.split(":")[0] for name in oof})
    weights = {}
    for solution in solutions:
        inside = climb([name for name in oof if name.split(":")[0] == solution], oof, y)
        weights.update({name: weight / len(solutions) for name, weight in inside.items()})
    return weights


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
