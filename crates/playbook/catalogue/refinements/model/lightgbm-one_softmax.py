# name: lightgbm
# title: One model for all targets
# why: Targets that exclude each other are one question: a single softmax over the combinations that occur
# kinds: multilabel
# needs: lightgbm
# of: lightgbm
# rank: 8
# cost: 0.8

from lightgbm import LGBMClassifier


def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    # Each combination of targets with at least ten rows is a class; rarer ones go to their most similar class.
    found, codes, counts = np.unique(y, axis=0, return_inverse=True, return_counts=True)
    common = found[counts >= min(10, counts.max())]
    labels = np.argmin(np.abs(found[:, None, :] - common[None, :, :]).sum(axis=2), axis=1)[codes.ravel()]
    settings = dict(
        n_estimators=150, learning_rate=0.05, num_leaves=24, min_child_samples=20, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.5, reg_lambda=2.0, random_state=seed, deterministic=True, verbose=-1,
    )
    chances = class_probabilities(lambda: LGBMClassifier(**settings), x, labels, others, len(common))
    return [p @ common for p in chances]
