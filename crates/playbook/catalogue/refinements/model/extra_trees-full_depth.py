# name: extra_trees
# title: Full depth and most columns
# why: Grow every tree to the end and try most columns at each split: sharper, with many trees to average it out
# of: extra_trees
# rank: 12
# cost: 2

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor


def model_extra_trees(x, y, others, seed):
    x, others = dense(x, others)
    settings = dict(n_estimators=400, min_samples_leaf=1, max_features=0.8, random_state=seed)
    make = ExtraTreesRegressor if KIND == "regression" else ExtraTreesClassifier
    return fit_predict(lambda: make(**settings), x, y, others, together=True)
