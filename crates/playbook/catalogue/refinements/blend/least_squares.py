# name: blend
# title: Non-negative least squares
# why: Weights that fit the target best in the sense of squares, none below zero, found in one step
# kinds: regression
# metrics: rmse mse r2
# rank: 16

from scipy.optimize import nnls


def weigh(oof, y):
    names = list(oof)
    columns = np.column_stack([oof[name] for name in names])
    # A pull towards equal weights (as if a tenth of the rows said so) keeps correlated models from trading places.
    pull = np.sqrt(0.1 * len(y)) * columns.std() * np.eye(len(names))
    weights, _ = nnls(np.vstack([columns - y.mean(), pull]), np.concatenate([y - y.mean(), pull.sum(axis=1) / len(names)]))
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(names), 1 / len(names))
    return dict(zip(names, weights))


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())
