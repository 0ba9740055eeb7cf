# name: lightgbm
# title: Linear models in the leaves
# why: A straight line inside each leaf follows trends that constant leaves can only approximate in steps
# kinds: regression
# columns: numeric
# needs: lightgbm
# of: lightgbm
# rank: 24
# cost: 2

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=200, learning_rate=0.05, num_leaves=12, min_child_samples=30, linear_tree=True, linear_lambda=1.0,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.6,
        random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
