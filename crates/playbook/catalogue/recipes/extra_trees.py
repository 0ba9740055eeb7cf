# name: extra_trees
# title: Extremely randomised trees
# why: Many deep trees with random splits: no boosting, little tuning, a steady partner for boosted trees
# rank: 18
# cost: 1

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor


def model_extra_trees(x, y, others, seed):
    x, others = dense(x, others)
    settings = dict(n_estimators=300, min_samples_leaf=2, max_features=0.5 if KIND == "regression" else "sqrt", random_state=seed)
    make = ExtraTreesRegressor if KIND == "regression" else ExtraTreesClassifier
    return fit_predict(lambda: make(**settings), x, y, others, together=True)
