# name: interactions
# title: Interactions of the most telling columns
# why: Trees need many splits to draw a ratio or a product: build them for the columns that tell most about the target
# columns: numeric
# rank: 27
# cost: 0.4

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor


def features_interactions(frame, fit):
    known = fit[NUMERIC].apply(pd.to_numeric, errors="coerce").astype(float)
    known = known[[column for column in NUMERIC if known[column].nunique() > 8]]
    if known.shape[1] < 2:
        return pd.DataFrame(index=frame.index)
    make = ExtraTreesRegressor if KIND == "regression" else ExtraTreesClassifier
    rows = np.random.default_rng(SEED).permutation(len(fit))[:4000]
    forest = make(n_estimators=30, min_samples_leaf=5, max_features=0.5, random_state=SEED)
    forest.fit(known.fillna(known.median()).fillna(0.0).to_numpy()[rows], y[fit.index[rows]])
    best = known.columns[np.argsort(-forest.feature_importances_, kind="stable")[:4]]
    values = frame[best].apply(pd.to_numeric, errors="coerce").astype(float)
    found = {}
    for i, first in enumerate(best):
        for second in best[i + 1:]:
            found[f"{first}_over_{second}"] = values[first] / values[second].where(values[second] != 0)
            found[f"{second}_over_{first}"] = values[second] / values[first].where(values[first] != 0)
            found[f"{first}_times_{second}"] = values[first] * values[second]
    return pd.DataFrame(found, index=frame.index)
