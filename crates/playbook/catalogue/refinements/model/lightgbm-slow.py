# name: lightgbm
# title: More, smaller steps with strong regularisation
# why: Many small trees at half the learning rate, few columns each: slower to learn, smoother to generalise
# needs: lightgbm
# of: lightgbm
# rank: 10
# cost: 1.6

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=350 if KIND in ("multiclass", "multilabel") else 700,
        learning_rate=0.025, num_leaves=15, min_child_samples=15,
        subsample=0.7, subsample_freq=1, colsample_bytree=0.4, reg_lambda=5.0,
        random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
