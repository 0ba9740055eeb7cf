# name: rank_mean
# title: Mean of ranks
# why: The metric looks at order only: rank the predictions of each model, then average with hill-climbed weights
# kinds: binary multilabel
# metrics: roc_auc mean_columnwise_roc_auc
# rank: 4


def ranks(p):
    """Each column as its rank between 0 and 1; the two columns of a binary task stay complements."""
    if KIND == "binary":
        one = rankdata(p[:, 1]) / (len(p) + 1)
        return np.column_stack([1 - one, one])
    return np.column_stack([rankdata(column) / (len(p) + 1) for column in p.T])


def weigh(oof, y):
    return climb({name: ranks(p) for name, p in distinct(oof).items()}, y)


def combine(predictions, weights):
    return sum(weight * ranks(predictions[name]) for name, weight in weights.items())
