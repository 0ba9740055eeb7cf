# name: random_forest
# title: Random forest
# why: Bagged trees on bootstrap samples: robust on small tables and hard to overfit
# rows: 0..20000
# rank: 40
# cost: 2

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor


def model_random_forest(x, y, others, seed):
    x, others = dense(x, others)
    settings = dict(n_estimators=250, min_samples_leaf=2, max_features=0.4 if KIND == "regression" else "sqrt", random_state=seed)
    make = RandomForestRegressor if KIND == "regression" else RandomForestClassifier
    return fit_predict(lambda: make(**settings), x, y, others, together=True)
