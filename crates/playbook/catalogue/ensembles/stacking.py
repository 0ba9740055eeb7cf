# name: stacking
# title: Stacking with a penalised linear model
# why: A second-level model learns from the out-of-fold predictions how to combine them, mixed half and half with their mean
# rank: 8

from sklearn.linear_model import LogisticRegression, RidgeCV


RELATIVE = METRIC in ("rmsle", "rmse_of_log")


def scaled(values):
    """Numbers on the scale of the metric."""
    return np.log(np.maximum(values, 1e-9)) if RELATIVE else values


def as_columns(predictions, names):
    """One row per case, one column per model (and class): log-odds for probabilities, numbers on the metric's scale."""
    if KIND == "regression":
        return np.column_stack([scaled(predictions[name]) for name in names])
    logs = [np.log(np.clip(predictions[name], 1e-5, 1 - 1e-5)) for name in names]
    return np.column_stack([p[:, 1] - p[:, 0] if KIND == "binary" else p for p in logs])


class Stack:
    """The names of the models and the second-level models (one per target)."""

    def __init__(self, names, models, centre, spread):
        self.names, self.models, self.centre, self.spread = names, models, centre, spread

    def __repr__(self):
        return f"a second-level model on {len(self.names)} models"


def weigh(oof, y):
    names = list(distinct(oof))
    columns = as_columns(oof, names)
    centre, spread = columns.mean(axis=0), columns.std(axis=0) + 1e-9
    columns = (columns - centre) / spread
    if KIND == "regression":
        models = [RidgeCV(alphas=np.geomspace(1, 1000, 10)).fit(columns, scaled(y))]
    elif KIND == "multilabel":
        models = [LogisticRegression(C=0.05, max_iter=200).fit(columns, y[:, k]) if len(np.unique(y[:, k])) > 1 else None for k in range(y.shape[1])]
    elif KIND == "multiclass" and (len(CLASSES) > 20 or len(np.unique(y)) < len(CLASSES)):
        models = [None]  # too many weights to learn: the mean alone
    else:
        models = [LogisticRegression(C=0.05, max_iter=200).fit(columns, y)] if len(np.unique(y)) > 1 else [None]
    return Stack(names, models, centre, spread)


def combine(predictions, weights):
    mean = sum(predictions[name] for name in weights.names) / len(weights.names)
    columns = (as_columns(predictions, weights.names) - weights.centre) / weights.spread
    if KIND == "regression":
        stacked = weights.models[0].predict(columns)
        return (mean + (np.exp(stacked) if RELATIVE else stacked)) / 2
    if KIND == "multilabel":
        stacked = [mean[:, k] if model is None else model.predict_proba(columns)[:, 1] for k, model in enumerate(weights.models)]
        return (mean + np.column_stack(stacked)) / 2
    return mean if weights.models[0] is None else (mean + weights.models[0].predict_proba(columns)) / 2
