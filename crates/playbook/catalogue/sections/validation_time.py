# name: validation
# title: Validation in the order of time
# why: The test rows are later than the training rows, so each part is predicted from earlier rows only
# columns: dates

REPEATS = 1
COUNT = 4


def folds(seed):
    """Pairs of row numbers (fit, validate): always fit on the past and validate on what comes next."""
    order = pd.to_datetime(train[TIME], errors="coerce", utc=True).argsort(kind="stable").to_numpy()
    parts = np.array_split(order, COUNT + 2)
    return [(np.concatenate(parts[: k + 2]), parts[k + 2]) for k in range(COUNT)]


oof, part = {}, np.full(len(train), -1)
for repeat in range(REPEATS):
    for number, (fit_rows, valid_rows) in enumerate(folds(SEED + repeat)):
        found = members(train.iloc[fit_rows], y[fit_rows], [train.iloc[valid_rows]], SEED + 100 * repeat + number)
        for name, (p,) in found.items():
            oof.setdefault(name, np.zeros((len(train), *p.shape[1:])))[valid_rows] += p / REPEATS
        if repeat == 0:
            part[valid_rows] = number

# The earliest rows are never validated: leave them out of everything that follows.
scored = part >= 0
oof, part, truth = {name: p[scored] for name, p in oof.items()}, part[scored], y[scored]

# Temperatures, weights and the decision for each fold are learnt on the other folds, so that the score stays honest.
final = None
for number in np.unique(part):
    rest, here = part != number, part == number
    known, unknown = {name: p[rest] for name, p in oof.items()}, {name: p[here] for name, p in oof.items()}
    heats = temperatures(known, truth[rest])
    known, unknown = tempered(known, heats), tempered(unknown, heats)
    weights = weigh(known, truth[rest])
    learnt = learn_decision(combine(known, weights), truth[rest])
    decided = decide(combine(unknown, weights), learnt)
    if final is None:
        final = np.zeros((len(truth), *decided.shape[1:]), decided.dtype)
    final[here] = decided

for name, p in oof.items():
    print(f"{name}: {metric(truth, decide(p, learn_decision(p, truth)))}")
heats = temperatures(oof, truth)
oof = tempered(oof, heats)
weights = weigh(oof, truth)
learnt = learn_decision(combine(oof, weights), truth)
print("weights:", {name: np.round(weight, 3).tolist() for name, weight in weights.items()} if isinstance(weights, dict) else weights)
score = metric(truth, final)
print(f"Final Validation Performance: {score}")
