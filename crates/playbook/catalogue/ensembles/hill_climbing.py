# name: hill_climbing
# title: Hill climbing over all models and solutions
# why: From all models and the solutions as wholes add the one that lowers the out-of-fold loss most, again and again
# rank: 5


def pool(predictions, own):
    return {**distinct(predictions), **voices(predictions, own)}


def weigh(oof, y):
    own = own_weights(oof, y)
    return own, climb(pool(oof, own), y)


def combine(predictions, weights):
    own, climbed = weights
    everything = {**predictions, **voices(predictions, own)}
    return sum(weight * everything[name] for name, weight in climbed.items())
