# name: target
# title: The target as it is
# why: Squared errors on the plain scale are dominated by large values, so fit the large values as they are
# kinds: regression
# rank: 40


def to_model(y):
    return y


def from_model(p):
    return p
