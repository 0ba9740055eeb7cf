# name: lightgbm
# title: Random split points
# why: Extremely randomised splits inside boosting: each tree is weaker, the sum overfits less
# needs: lightgbm
# of: lightgbm
# rank: 16
# cost: 1.5

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=400 if KIND in ("multiclass", "multilabel") else 700,
        learning_rate=0.05, num_leaves=31, min_child_samples=8, extra_trees=True,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.6, reg_lambda=1.0,
        random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
