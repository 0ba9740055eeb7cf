# name: table
# title: Categories also in the order of their mean target
# why: Grades such as poor, fair, good have an order: number the categories by their mean target, learnt on inner folds
# kinds: binary regression
# columns: categorical
# rank: 15

from sklearn.model_selection import KFold

FEATURES = []


def ordered(column, frame, fit):
    """Shrunken mean target of each category; training rows are numbered from the other inner folds."""
    here, known = frame[column].astype(str).to_numpy(object), fit[column].astype(str).to_numpy(object)
    target = np.asarray(to_model(y[fit.index]), float)
    parts = [(np.arange(len(fit)), np.arange(len(frame)))]
    if frame is fit:
        parts = KFold(min(5, len(fit)), shuffle=True, random_state=SEED).split(fit)
    values = np.zeros(len(frame))
    for learn, fill in parts:
        by_value = pd.Series(target[learn]).groupby(known[learn])
        prior = target[learn].mean()
        values[fill] = pd.Series(here[fill]).map((by_value.sum() + 5 * prior) / (by_value.count() + 5)).fillna(prior)
    return pd.Series(values, index=frame.index)


def table(frame, fit):
    """Base columns and features of `frame`, plus each category with more than two values as an ordered number."""
    columns = {}
    for column in NUMERIC:
        columns[column] = pd.to_numeric(frame[column], errors="coerce").astype(float)
    for column in CATEGORICAL:
        columns[column] = pd.Series(category(frame[column], fit[column]), index=frame.index)
        if fit[column].nunique() > 2:
            columns[f"{column} ordered"] = ordered(column, frame, fit)
    for column in TEXT:
        columns[column] = frame[column].fillna("").astype(str).astype(object)
    base = pd.DataFrame(columns, index=frame.index)
    made = [make(frame, fit) for make in FEATURES]
    return pd.concat([base, *made], axis=1).replace([np.inf, -np.inf], np.nan) if made else base
