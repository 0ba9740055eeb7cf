# name: blend
# title: Plain mean
# why: With few rows, learnt weights are noise: give every model the same say
# rank: 10


def weigh(oof, y):
    return {name: 1.0 / len(oof) for name in oof}


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
