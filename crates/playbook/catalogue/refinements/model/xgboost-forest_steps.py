# name: xgboost
# title: A small forest in every step
# why: Each boosting round grows four trees on other samples and adds their mean: bagging inside boosting
# needs: xgboost
# of: xgboost
# rank: 20
# cost: 2

from xgboost import XGBClassifier, XGBRegressor


def model_xgboost(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=80 if KIND in ("multiclass", "multilabel") else 150, num_parallel_tree=4,
        learning_rate=0.1, max_depth=5, min_child_weight=3, subsample=0.6, colsample_bynode=0.5,
        reg_lambda=3.0,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )
    make = XGBRegressor if KIND == "regression" else XGBClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
