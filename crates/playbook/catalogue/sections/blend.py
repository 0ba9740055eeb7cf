# name: blend
# title: Weights by hill climbing
# why: Add the model that helps the out-of-fold loss most, again and again, and count how often each was chosen


def weigh(oof, y):
    return climb(oof, y)


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
