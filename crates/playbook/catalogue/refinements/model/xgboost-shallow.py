# name: xgboost
# title: Shallow trees, more of them
# why: Depth three with many rounds: interactions of few columns at a time generalise better on small data
# needs: xgboost
# of: xgboost
# rank: 10
# cost: 1

from xgboost import XGBClassifier, XGBRegressor


def model_xgboost(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=350 if KIND in ("multiclass", "multilabel") else 700,
        learning_rate=0.05, max_depth=3, min_child_weight=2, subsample=0.7, colsample_bytree=0.5,
        reg_lambda=3.0, reg_alpha=0.1,
        tree_method="hist", enable_categorical=True, random_state=seed,
    )
    make = XGBRegressor if KIND == "regression" else XGBClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
