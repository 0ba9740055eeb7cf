# name: xgboost
# title: Gradient boosted trees (XGBoost)
# why: Level-wise boosted trees with strong regularisation: other mistakes than LightGBM, so the two blend well
# needs: xgboost
# classes: 0..30
# rank: 14
# cost: 1.3

from xgboost import XGBClassifier, XGBRegressor


def model_xgboost(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators={"multiclass": 200, "multilabel": 120}.get(KIND, 300),
        learning_rate=0.05, max_depth=6, min_child_weight=3, subsample=0.8, colsample_bytree=0.6,
        reg_lambda=2.0, tree_method="hist", enable_categorical=True, random_state=seed,
    )
    if KIND == "regression" and METRIC == "mae":
        settings.update(objective="reg:absoluteerror", n_estimators=400)  # minimise what is measured
    make = XGBRegressor if KIND == "regression" else XGBClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
