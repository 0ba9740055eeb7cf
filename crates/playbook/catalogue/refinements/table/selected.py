# name: table
# title: Only columns that matter
# why: Columns without any use invite overfitting: drop those that a quick forest never needs more than pure noise
# rank: 40

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

FEATURES = []
CHOSEN = {}


def everything(frame, fit):
    columns = {}
    for column in NUMERIC:
        columns[column] = pd.to_numeric(frame[column], errors="coerce").astype(float)
    for column in CATEGORICAL:
        columns[column] = pd.Series(category(frame[column], fit[column]), index=frame.index)
    for column in TEXT:
        columns[column] = frame[column].fillna("").astype(str).astype(object)
    base = pd.DataFrame(columns, index=frame.index)
    made = [make(frame, fit) for make in FEATURES]
    return pd.concat([base, *made], axis=1).replace([np.inf, -np.inf], np.nan) if made else base


def table(frame, fit):
    """Base columns and features that beat three columns of random numbers in a forest grown on `fit`."""
    found = everything(frame, fit)
    if frame is fit:
        CHOSEN.clear()
        plain, codes = [c for c in found.columns if found[c].dtype != object], []
        for column in plain:
            values = found[column].cat.codes if isinstance(found[column].dtype, pd.CategoricalDtype) else found[column]
            codes.append(values.astype(float).fillna(values.median() if values.notna().any() else 0.0).to_numpy())
        noise = np.random.default_rng(SEED).normal(size=(len(fit), 3))
        make = ExtraTreesRegressor if KIND == "regression" else ExtraTreesClassifier
        forest = make(100, min_samples_leaf=3, max_features=0.5, random_state=SEED).fit(np.column_stack([*codes, noise]), y[fit.index])
        limit = 0.5 * forest.feature_importances_[-3:].mean()
        useful = [c for c, importance in zip(plain, forest.feature_importances_) if importance > limit]
        CHOSEN["columns"] = [c for c in found.columns if found[c].dtype == object or c in useful] or list(found.columns)
    return found[CHOSEN["columns"]]
