# name: xgboost
# title: Deep trees with sampled columns
# why: Deep trees with a random third of the columns at each node: rich interactions, held back by sampling
# rows: 2000..200000
# needs: xgboost
# of: xgboost
# rank: 18
# cost: 2

from xgboost import XGBClassifier, XGBRegressor


def model_xgboost(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=150 if KIND in ("multiclass", "multilabel") else 250,
        learning_rate=0.05, max_depth=9, min_child_weight=5, subsample=0.7, colsample_bynode=0.35,
        reg_lambda=5.0, gamma=0.0,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )
    make = XGBRegressor if KIND == "regression" else XGBClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
