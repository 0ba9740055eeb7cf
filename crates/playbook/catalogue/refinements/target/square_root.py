# name: target
# title: Square root of the target
# why: Between the plain and the log scale: the square root tames a moderately long tail without bending the low end
# kinds: regression
# rank: 20


def to_model(y):
    return np.sign(y) * np.sqrt(np.abs(y))


def from_model(p):
    return np.sign(p) * np.square(p)
