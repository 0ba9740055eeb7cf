# name: lightgbm
# title: Gradient boosted trees (LightGBM)
# why: Boosted trees with leaf-wise growth: fast, no scaling, missing values and categories handled natively
# needs: lightgbm
# classes: 0..30
# rank: 10
# cost: 1

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators={"multiclass": 200, "multilabel": 120}.get(KIND, 300),
        learning_rate=0.05, num_leaves=31, min_child_samples=min(20, max(2, len(x) // 10)),
        subsample=0.8, subsample_freq=1, colsample_bytree=0.8, reg_lambda=1.0,
        random_state=seed, deterministic=True, verbose=-1,
    )
    if KIND == "regression" and METRIC == "mae":
        settings.update(objective="mae", n_estimators=500)  # minimise what is measured; its gradients are coarse, so more trees
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
