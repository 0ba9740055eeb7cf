# name: target
# title: Logarithm of the target
# why: A target with a long right tail is learnt better on a log scale, where errors are relative
# kinds: regression
# rank: 10

# Only where the target is never negative; otherwise the plain scale stays.
LOGARITHMIC = float(np.min(y)) >= 0


def to_model(y):
    return np.log1p(y) if LOGARITHMIC else y


def from_model(p):
    return np.maximum(np.expm1(np.minimum(p, 700)), 0) if LOGARITHMIC else p
