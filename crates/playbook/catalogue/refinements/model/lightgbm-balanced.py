# name: lightgbm
# title: Balanced class weights
# why: The metric counts every class alike, so rare classes get more weight in training
# kinds: binary multiclass
# metrics: balanced_accuracy f1_macro
# needs: lightgbm
# of: lightgbm
# rank: 6
# cost: 1

from lightgbm import LGBMClassifier, LGBMRegressor


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        n_estimators=200 if KIND in ("multiclass", "multilabel") else 300, class_weight="balanced",
        learning_rate=0.05, num_leaves=31, min_child_samples=20,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.7, reg_lambda=2.0,
        random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
