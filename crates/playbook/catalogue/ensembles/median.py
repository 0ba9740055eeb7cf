# name: median
# title: Median of the models
# why: The middle prediction of all good models: absolute errors like it, and a model that is far off does no harm
# kinds: regression
# rank: 7


def weigh(oof, y):
    """Only models within a tenth of the best take part."""
    losses = {name: smooth_loss(y, p) for name, p in distinct(oof).items()}
    best = min(losses.values())
    return {name: 1.0 for name, loss in losses.items() if loss <= best + 0.1 * abs(best)}


def combine(predictions, weights):
    return np.median([predictions[name] for name in weights], axis=0)
