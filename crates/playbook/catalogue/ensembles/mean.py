# name: mean
# title: Plain mean of the solutions
# why: Average all models of both solutions with equal weights: nothing to overfit, and different mistakes cancel
# rank: 10


def weigh(oof, y):
    return {name: 1.0 / len(oof) for name in oof}


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
