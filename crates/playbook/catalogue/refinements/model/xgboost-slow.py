# name: xgboost
# title: More, smaller steps
# why: Twice as many trees at half the rate with few columns each: a smoother sum
# needs: xgboost
# of: xgboost
# rank: 14
# cost: 2

from xgboost import XGBClassifier, XGBRegressor


def model_xgboost(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=350 if KIND in ("multiclass", "multilabel") else 700,
        learning_rate=0.025, max_depth=5, min_child_weight=4, subsample=0.7, colsample_bytree=0.4,
        reg_lambda=4.0,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )
    make = XGBRegressor if KIND == "regression" else XGBClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
