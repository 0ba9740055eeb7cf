# name: decision
# title: Nearest value that occurs
# why: Where the target repeats a limited set of values, the nearest one that occurs often is the likelier answer
# kinds: regression
# metrics: mae
# rank: 10


def learn_decision(p, y):
    """The values that occur at least three times, if moving to them helps here; else nothing."""
    values, counts = np.unique(y, return_counts=True)
    values = values[counts >= 3]
    if len(values) < 5 or np.isin(y, values).mean() < 0.7:
        return None
    return values if metric(y, nearest(p, values)) < metric(y, p) else None


def nearest(p, values):
    right = np.clip(np.searchsorted(values, p), 1, len(values) - 1)
    left = right - 1
    return np.where(p - values[left] <= values[right] - p, values[left], values[right])


def decide(p, learnt):
    return p if learnt is None else nearest(p, learnt)
