# name: target_encoding
# title: Mean target of each category
# why: A category with many values is best described by the mean target of its training rows, learnt on inner folds
# columns: categorical
# rank: 16
# cost: 0.3

from sklearn.model_selection import KFold


def features_target_encoding(frame, fit):
    """Mean target per category, shrunk to the overall mean; training rows are encoded from the other inner folds."""
    columns = [column for column in CATEGORICAL if fit[column].nunique() > 2]
    target = y[fit.index].astype(float)
    if KIND == "multiclass":
        target = (target[:, None] == np.arange(len(CLASSES))[:10]).astype(float)
    target = target.reshape(len(fit), -1)
    found = {}
    for column in columns:
        here, known = frame[column].astype(str).to_numpy(object), fit[column].astype(str).to_numpy(object)
        parts = [(np.arange(len(fit)), np.arange(len(frame)))]
        if frame is fit:
            parts = list(KFold(min(5, len(fit)), shuffle=True, random_state=SEED).split(fit))
        for k in range(target.shape[1]):
            values = np.zeros(len(frame))
            for learn, fill in parts:
                by_value = pd.Series(target[learn, k]).groupby(known[learn])
                prior = target[learn, k].mean()
                smooth = (by_value.sum() + 10 * prior) / (by_value.count() + 10)
                values[fill] = pd.Series(here[fill]).map(smooth).fillna(prior)
            found[f"{column}_target{k}"] = values
    return pd.DataFrame(found, index=frame.index)
