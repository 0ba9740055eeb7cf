# name: mean
# title: Plain mean of all models
# why: Average all models of all solutions with equal weights: nothing to overfit, and different mistakes cancel
# rank: 10


def weigh(oof, y):
    names = distinct(oof)
    return {name: 1.0 / len(names) for name in names}


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
