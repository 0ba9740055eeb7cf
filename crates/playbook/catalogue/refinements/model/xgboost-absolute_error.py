# name: xgboost
# title: Absolute error as the objective
# why: The metric is an absolute error: minimise exactly that
# kinds: regression
# metrics: mae
# needs: xgboost
# of: xgboost
# rank: 5
# cost: 2

from xgboost import XGBClassifier, XGBRegressor


def model_xgboost(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=600, objective="reg:absoluteerror", learning_rate=0.06, max_depth=6, min_child_weight=5,
        subsample=0.8, colsample_bytree=0.6, reg_lambda=1.0,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )
    make = XGBRegressor if KIND == "regression" else XGBClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
