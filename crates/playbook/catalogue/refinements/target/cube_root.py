# name: target
# title: Cube root of the target
# why: Stronger than the square root, milder than the logarithm, and defined below zero too: for tails on both sides
# kinds: regression
# rank: 30


def to_model(y):
    return np.cbrt(y)


def from_model(p):
    return np.power(p, 3)
