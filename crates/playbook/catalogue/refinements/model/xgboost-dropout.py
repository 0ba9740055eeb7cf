# name: xgboost
# title: Boosting with dropout
# why: Drop a few earlier trees in each round, so that late trees do not merely polish what is there
# rows: 0..10000
# needs: xgboost
# of: xgboost
# rank: 30
# cost: 4

from xgboost import XGBClassifier, XGBRegressor


def model_xgboost(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=100 if KIND in ("multiclass", "multilabel") else 180, booster="dart", rate_drop=0.05, skip_drop=0.5,
        learning_rate=0.1, max_depth=5, min_child_weight=3, subsample=0.8, colsample_bytree=0.6,
        reg_lambda=2.0,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )
    make = XGBRegressor if KIND == "regression" else XGBClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
