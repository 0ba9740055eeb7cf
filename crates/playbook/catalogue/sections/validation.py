# name: validation
# title: Cross-validation
# why: Every row is predicted by models that never saw it; weights and decision are scored on rows they were not learnt from

from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

REPEATS = 3 if len(train) < 1000 else 2 if len(train) < 2000 else 1
COUNT = FOLDS if len(train) < 12000 else 3


def strata():
    """Labels to spread evenly over the folds: classes, combinations of targets, or bins of a number."""
    if KIND == "regression":
        return pd.qcut(rankdata(y, method="ordinal"), min(10, max(1, len(y) // 20)), labels=False)
    return y if y.ndim == 1 else pd.factorize(pd.Series(map(tuple, y)))[0]


def folds(seed):
    """Pairs of row numbers (fit, validate)."""
    if groups is not None:
        return list(GroupKFold(min(COUNT, len(np.unique(groups))), shuffle=True, random_state=seed).split(train, groups=groups))
    count = min(COUNT, len(train))
    if np.bincount(strata()).max() >= count:
        return list(StratifiedKFold(count, shuffle=True, random_state=seed).split(train, strata()))
    return list(KFold(count, shuffle=True, random_state=seed).split(train))


oof, part = {}, np.zeros(len(train), int)
for repeat in range(REPEATS):
    for number, (fit_rows, valid_rows) in enumerate(folds(SEED + repeat)):
        found = members(train.iloc[fit_rows], y[fit_rows], [train.iloc[valid_rows]], SEED + 100 * repeat + number)
        for name, (p,) in found.items():
            oof.setdefault(name, np.zeros((len(train), *p.shape[1:])))[valid_rows] += p / REPEATS
        if repeat == 0:
            part[valid_rows] = number

# Temperatures, weights and the decision for each fold are learnt on the other folds, so that the score stays honest.
final = None
for number in np.unique(part):
    rest, here = part != number, part == number
    known, unknown = {name: p[rest] for name, p in oof.items()}, {name: p[here] for name, p in oof.items()}
    heats = temperatures(known, y[rest])
    known, unknown = tempered(known, heats), tempered(unknown, heats)
    weights = weigh(known, y[rest])
    learnt = learn_decision(combine(known, weights), y[rest])
    decided = decide(combine(unknown, weights), learnt)
    if final is None:
        final = np.zeros((len(train), *decided.shape[1:]), decided.dtype)
    final[here] = decided

for name, p in oof.items():
    print(f"{name}: {metric(y, decide(p, learn_decision(p, y)))}")
heats = temperatures(oof, y)
oof = tempered(oof, heats)
weights = weigh(oof, y)
learnt = learn_decision(combine(oof, weights), y)
print("weights:", {name: np.round(weight, 3).tolist() for name, weight in weights.items()} if isinstance(weights, dict) else weights)
score = metric(y, final)
print(f"Final Validation Performance: {score}")
