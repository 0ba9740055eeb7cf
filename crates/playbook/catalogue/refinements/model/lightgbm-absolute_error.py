# name: lightgbm
# title: Absolute error as the objective
# why: The metric is an absolute error: minimise exactly that, with more trees since its gradients are coarse
# kinds: regression
# metrics: mae
# needs: lightgbm
# of: lightgbm
# rank: 5
# cost: 2

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=800, objective="mae", learning_rate=0.05, num_leaves=31, min_child_samples=20,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.6, reg_lambda=1.0,
        random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
