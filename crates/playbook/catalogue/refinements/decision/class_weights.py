# name: decision
# title: Class multipliers
# why: Multiply each class's probability by a factor found by coordinate search, so that the label metric gains
# kinds: binary multiclass
# metrics: accuracy balanced_accuracy f1_macro f1_weighted mcc
# rank: 12


def learn_decision(p, y):
    """Factors per class, tried one at a time; a change must pay clearly, since each tried factor fits some noise."""
    factors, best = np.ones(p.shape[1]), metric(y, p.argmax(axis=1))
    if METRIC in ("balanced_accuracy", "f1_macro"):
        start = 1.0 / np.maximum(p.mean(axis=0), 1e-3)
        start = start / start.mean()
        for power in (0.5, 1.0):
            value = metric(y, (p * start**power).argmax(axis=1))
            if value > best:
                factors, best = start**power, value
    for _ in range(2):
        for k in range(min(p.shape[1], 30)):
            for change in (0.8, 0.9, 1.1, 1.25):
                tried = factors.copy()
                tried[k] *= change
                value = metric(y, (p * tried).argmax(axis=1))
                if value > best + 1.0 / len(y):
                    factors, best = tried, value
    return factors


def decide(p, learnt):
    return (p * learnt).argmax(axis=1)
