# name: companion_target
# title: Outcome of rows that share a code
# why: Rows that travel, live or were measured together often share their outcome: the mean target of the companions
# columns: codes
# rank: 14
# cost: 0.3

from sklearn.model_selection import KFold


def features_companion_target(frame, fit):
    """Shrunken mean target of the training rows with the same key; training rows see only the other inner folds."""
    found = {}
    target = y[fit.index].astype(float)
    if KIND == "multiclass":
        target = (target[:, None] == np.arange(len(CLASSES))[:8]).astype(float)
    target = target.reshape(len(fit), -1)
    for column in CODES:
        keys = {"": lambda values: values.astype(str).where(values.notna())}
        keys["_start"] = lambda values: values.astype(str).where(values.notna()).str.extract(r"^([^\W_]+)[\W_]", expand=False)
        for ending, key_of in keys.items():
            here, known = key_of(frame[column]).to_numpy(object), key_of(fit[column]).to_numpy(object)
            counts = pd.Series(known).value_counts()
            if len(counts) == 0 or counts.max() < 2 or len(counts) < 0.05 * len(fit):
                continue
            for k in range(target.shape[1]):
                values = np.full(len(frame), np.nan)
                parts = [(np.arange(len(fit)), np.arange(len(frame)))]
                if frame is fit:
                    parts = KFold(min(10, len(fit)), shuffle=True, random_state=SEED).split(fit)
                for learn, fill in parts:
                    by_key = pd.Series(target[learn, k]).groupby(known[learn])
                    sums, sizes = by_key.sum(), by_key.count()
                    prior = target[learn, k].mean()
                    keyed = pd.Series(here[fill])
                    values[fill] = (keyed.map(sums) + prior) / (keyed.map(sizes) + 1.0)
                found[f"{column}{ending}_target{k}"] = values
    return pd.DataFrame(found, index=frame.index)
