# name: solutions
# title: Mean of the solutions
# why: Every solution blends its own models in its own way, then the solutions are averaged
# rank: 1

SHARES = []  # how much each solution counts


def weigh(oof, y):
    return own_weights(oof, y)


def combine(predictions, weights):
    said = voices(predictions, weights).values()
    return sum(share * voice for share, voice in zip(SHARES, said)) / sum(SHARES)
