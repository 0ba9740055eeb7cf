# name: extra_trees
# title: Larger leaves
# why: Leaves of five rows or more with more columns per split: calmer probabilities where labels are noisy
# of: extra_trees
# rank: 10
# cost: 1

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor


def model_extra_trees(x, y, others, seed):
    x, others = dense(x, others)
    settings = dict(n_estimators=300, min_samples_leaf=5, max_features=0.6, random_state=seed)
    make = ExtraTreesRegressor if KIND == "regression" else ExtraTreesClassifier
    return fit_predict(lambda: make(**settings), x, y, others, together=True)
