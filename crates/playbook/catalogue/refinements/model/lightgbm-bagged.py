# name: lightgbm
# title: A bag of three
# why: Three fits with other seeds, row samples and column samples, averaged: the same bias with less variance
# needs: lightgbm
# of: lightgbm
# rank: 18
# cost: 3

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    runs = []
    for bag, columns in enumerate((0.4, 0.6, 0.8)):
        settings = dict(
            n_estimators=200 if KIND in ("multiclass", "multilabel") else 350,
            learning_rate=0.04, num_leaves=24, min_child_samples=15,
            subsample=0.7, subsample_freq=1, colsample_bytree=columns, reg_lambda=2.0,
            random_state=seed + bag, deterministic=True, verbose=-1,
        )
        runs.append(fit_predict(lambda: make(**settings), x, y, others))
    return [np.mean(found, axis=0) for found in zip(*runs)]
