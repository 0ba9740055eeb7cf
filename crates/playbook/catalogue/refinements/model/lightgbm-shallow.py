# name: lightgbm
# title: Shallow trees
# why: Depth three to four is enough where rows are few: less variance than full-size trees
# rows: 0..20000
# needs: lightgbm
# of: lightgbm
# rank: 12
# cost: 1

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=300 if KIND in ("multiclass", "multilabel") else 600,
        learning_rate=0.04, max_depth=4, num_leaves=12, min_child_samples=10,
        subsample=0.7, subsample_freq=1, colsample_bytree=0.5, reg_lambda=3.0, reg_alpha=0.1,
        random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
