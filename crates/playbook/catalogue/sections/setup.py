# name: setup
# title: Imports, constants and small helpers
# why: What every script of the playbook needs, whatever the model

import hashlib
import os
import textwrap
import uuid
import warnings
import zipfile

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn import metrics as scores

warnings.filterwarnings("ignore")
SEED = 0
FOLDS = 5
FIT_ROWS = None  # models are fitted on at most so many rows; all rows are scored


def metric(y, prediction):
    """The score of the task, in the task's own orientation."""
    if METRIC in ("rmse", "mse"):
        error = np.mean((y - prediction) ** 2)
        return float(error if METRIC == "mse" else np.sqrt(error))
    if METRIC in ("rmsle", "rmse_of_log"):
        log = np.log1p if METRIC == "rmsle" else np.log
        floor = 0.0 if METRIC == "rmsle" else 1e-9
        return float(np.sqrt(np.mean((log(np.maximum(y, floor)) - log(np.maximum(prediction, floor))) ** 2)))
    if METRIC in ("mae", "median_absolute_error"):
        return float(np.mean(np.abs(y - prediction)) if METRIC == "mae" else np.median(np.abs(y - prediction)))
    if METRIC == "r2":
        return float(scores.r2_score(y, prediction))
    if METRIC == "mape":
        return float(np.mean(np.abs(y - prediction) / np.maximum(np.abs(y), 1e-9)))
    if METRIC == "accuracy":
        return float(np.mean(np.all(y == prediction, axis=1) if KIND == "multilabel" else y == prediction))
    if METRIC == "balanced_accuracy":
        return float(scores.balanced_accuracy_score(y, prediction))
    if METRIC == "f1" and KIND == "binary":
        return float(scores.f1_score(y, prediction, zero_division=0))
    if METRIC in ("f1", "f1_macro", "f1_micro", "f1_weighted"):
        average = METRIC[3:] or ("macro" if KIND == "multilabel" else "weighted")
        return float(scores.f1_score(y, prediction, average=average, zero_division=0))
    if METRIC == "mcc":
        return float(scores.matthews_corrcoef(y, prediction))
    if METRIC == "qwk":
        return float(scores.cohen_kappa_score(y.astype(int), prediction.astype(int), weights="quadratic"))
    if METRIC in ("roc_auc", "mean_columnwise_roc_auc"):
        return float(np.mean([auc(truth, column) for truth, column in columns_of(y, prediction)]))
    if METRIC in ("log_loss", "multiclass_log_loss", "mean_columnwise_log_loss"):
        return log_loss(y, prediction)
    raise ValueError(f"no metric named {METRIC}")


def columns_of(y, p):
    """Pairs of 0/1 truth and predicted probability: one pair when binary, else one per class or target."""
    if KIND == "binary":
        return [(y, p[:, 1] if p.ndim == 2 else p)]
    truth = y if KIND == "multilabel" else (y[:, None] == np.arange(p.shape[1])).astype(int)
    return [(truth[:, k], p[:, k]) for k in range(p.shape[1])]


def auc(truth, column):
    """Area under the ROC curve by ranks; 0.5 where only one class is present."""
    ones = truth.sum()
    zeros = len(truth) - ones
    if ones == 0 or zeros == 0:
        return 0.5
    return (rankdata(column)[truth == 1].sum() - ones * (ones + 1) / 2) / (ones * zeros)


def log_loss(y, p):
    """Mean negative log-likelihood of the truth."""
    p = np.clip(p, 1e-15, 1 - 1e-15)
    if KIND == "multilabel":
        return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
    p = p / p.sum(axis=1, keepdims=True)
    return float(-np.mean(np.log(p[np.arange(len(y)), y])))


def smooth_loss(y, p):
    """A loss (lower is better) that blends can be tuned on: the metric, or a smooth stand-in where the metric jumps."""
    if KIND == "regression":
        return -metric(y, p) if METRIC == "r2" else float(np.mean((y - p) ** 2)) if METRIC == "qwk" else metric(y, p)
    if METRIC in ("roc_auc", "mean_columnwise_roc_auc"):
        return -metric(y, p)
    return log_loss(y, p)


def distinct(predictions):
    """Without the models that say the same as an earlier one: solutions often share a model."""
    kept = {}
    for name, p in predictions.items():
        if not any(np.array_equal(p, other) for other in kept.values()):
            kept[name] = p
    return kept


def climb(oof, y, seen_as=lambda total: total):
    """Greedy selection with replacement: a weight for each at the best stage of twenty."""
    names, counts, total, best = list(oof), {}, 0.0, (np.inf, {})
    for size in range(20 if len(names) > 1 else 1):
        losses = {name: smooth_loss(y, seen_as((total + oof[name]) / (size + 1))) for name in names}
        chosen = min(names, key=losses.get)
        counts = {**counts, chosen: counts.get(chosen, 0) + 1}
        total = total + oof[chosen]
        if losses[chosen] < best[0]:
            best = losses[chosen], counts
    counts = best[1] or counts
    return {name: count / sum(counts.values()) for name, count in counts.items()}


def heated(p, temperature):
    """Sharper probabilities below temperature one, softer ones above."""
    power = np.clip(p, 1e-9, 1) ** (1.0 / temperature)
    return power / power.sum(axis=1, keepdims=True)


def temperature(p, y):
    """The temperature at which probabilities are neither too sure nor too shy."""
    return min(np.geomspace(0.2, 5.0, 41), key=lambda heat: log_loss(y, heated(p, heat)))


def temperatures(predictions, y):
    """One temperature for each model, where models give probabilities and more than their order counts.

    Models are sure of themselves to very different degrees, and blends would take that for merit."""
    if KIND not in ("binary", "multiclass") or METRIC == "roc_auc":
        return {}
    return {name: temperature(p, y) for name, p in predictions.items()}


def tempered(predictions, heats):
    return {name: heated(p, heats[name]) if name in heats else p for name, p in predictions.items()}


def category(values, reference, least=1):
    """`values` as a pandas category with the values that `reference` holds at least `least` times; others are missing."""
    counts = pd.Series(reference).dropna().astype(str).value_counts()
    values = pd.Series(values)
    return pd.Categorical(values.astype(str).where(values.notna()), categories=sorted(counts.index[counts >= least]))


def tabular(x, others):
    """The numbers and categories that vary in `x`, with plain names (boosting libraries refuse some characters)."""
    keep = [column for column in x.columns if x[column].dtype != object and x[column].nunique(dropna=False) > 1]
    frames = []
    for frame in [x, *others]:
        frame = frame[keep].copy()
        frame.columns = [f"c{i}" for i in range(len(keep))]
        # With nothing to go on, one column without meaning keeps the libraries from refusing the table.
        frames.append(frame if keep else pd.DataFrame({"c0": np.arange(len(frame)) % 2.0}, index=frame.index))
    return frames[0], frames[1:]


def dense(x, others, least=3):
    """Scaled numbers, missing-value flags and one-hot categories as arrays, for models that need one scale.

    Skewed columns are put on a log scale, outliers are pulled in, and everything is learnt from `x` alone."""
    blocks = [[] for _ in range(1 + len(others))]
    for column in x.columns:
        frames = [frame[column] for frame in [x, *others]]
        if x[column].dtype == object:
            continue
        if isinstance(x[column].dtype, pd.CategoricalDtype):
            counts = x[column].value_counts()
            for value in counts.index[counts >= least]:
                for block, values in zip(blocks, frames):
                    block.append((values == value).to_numpy(float))
            if x[column].isna().sum() >= least:
                for block, values in zip(blocks, frames):
                    block.append(values.isna().to_numpy(float))
            continue
        known = x[column].dropna().to_numpy(float)
        if len(known) == 0 or known.min() == known.max():
            continue
        if x[column].isna().sum() >= least:
            for block, values in zip(blocks, frames):
                block.append(values.isna().to_numpy(float))
        spread = known.std() or 1.0
        skewed = abs(np.mean(((known - known.mean()) / spread) ** 3)) > 1.5
        unit = np.median(np.abs(known[known != 0]))  # the log bends at the size that is usual in this column
        bend = (lambda v: np.sign(v) * np.log1p(np.abs(v) / unit)) if skewed else (lambda v: v)
        middle = np.median(known)
        bent = bend(known)
        centre, scale = bent.mean(), bent.std() or 1.0
        for block, values in zip(blocks, frames):
            values = values.fillna(middle).to_numpy(float)
            block.append(np.clip((bend(values) - centre) / scale, -6, 6))
    arrays = [np.column_stack(block) if block else np.zeros((len(frame), 1)) for block, frame in zip(blocks, [x, *others])]
    return arrays[0], arrays[1:]


def fit_predict(make, x, y, others, together=False):
    """Fits what `make()` returns and predicts each table of `others`: numbers, or probabilities of every class.

    One classifier per target when there are several (or one for all, `together`, for models that can do that);
    a class that the training part lacks gets probability zero."""
    if KIND == "regression":
        if np.min(y) == np.max(y):
            return [np.full(other.shape[0], float(y[0])) for other in others]
        model = make().fit(x, y)
        return [np.asarray(model.predict(other), float).ravel() for other in others]
    if KIND == "multilabel" and together and all(len(np.unique(column)) == 2 for column in y.T):
        model = make().fit(x, y)
        return [np.column_stack([p[:, 1] for p in model.predict_proba(other)]) for other in others]
    if KIND == "multilabel":
        parts = [class_probabilities(make, x, y[:, k], others, 2) for k in range(y.shape[1])]
        return [np.column_stack([part[i][:, 1] for part in parts]) for i in range(len(others))]
    return class_probabilities(make, x, y, others, len(CLASSES))


def class_probabilities(make, x, y, others, count):
    """Probabilities of `count` classes for each table of `others`."""
    present, codes = np.unique(np.asarray(y, int), return_inverse=True)
    full = [np.zeros((other.shape[0], count)) for other in others]
    if len(present) == 1:
        for p in full:
            p[:, present[0]] = 1.0
        return full
    model = make().fit(x, codes)
    for p, other in zip(full, others):
        if hasattr(model, "predict_proba"):
            p[:, present] = model.predict_proba(other)
        else:
            margin = model.decision_function(other)
            margin = np.column_stack([-margin / 2, margin / 2]) if margin.ndim == 1 else margin
            odds = np.exp(margin - margin.max(axis=1, keepdims=True))
            p[:, present] = odds / odds.sum(axis=1, keepdims=True)
    return full


def section_of(model):
    """The section of this script that a function stands in, from its heading to the next."""
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    headings = [number for number, line in enumerate(lines) if line.strip().startswith("# === ")] + [len(lines)]
    here = model.__code__.co_firstlineno - 1
    first = max((number for number in headings if number <= here), default=0)
    last = min(number for number in headings if number > here)
    return textwrap.dedent("\n".join(lines[first:last])).strip()


def fingerprint(model, x, y, others, seed):
    """What the predictions of a model follow from, in a few letters."""
    digest = hashlib.sha256(repr((section_of(model), KIND, METRIC, np.shape(CLASSES), seed)).encode())
    for frame in [x, *others]:
        kinds = [(name, list(kind.categories) if isinstance(kind, pd.CategoricalDtype) else kind) for name, kind in frame.dtypes.items()]
        digest.update(repr(kinds).encode())
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    digest.update(np.ascontiguousarray(y).tobytes())
    return digest.hexdigest()[:32]


SHARED = os.environ.get("MLE_STAR_SHARED")
REMEMBERED = {}


def fitted(model, x, y, others, seed):
    """What a model fitted on `x` and `y` predicts for each table of `others`.

    No model is fitted twice on the same table: this script remembers, and so do all scripts that share a folder."""
    if FIT_ROWS and len(x) > FIT_ROWS:
        rows = np.sort(np.random.RandomState(seed).permutation(len(x))[:FIT_ROWS])
        x, y = x.iloc[rows], y[rows]
    if "__file__" not in globals():
        return model(x, y, others, seed)  # in a notebook, nobody knows where the code of a model ends
    key = fingerprint(model, x, y, others, seed)
    file = os.path.join(SHARED, f"{key}.npz") if SHARED else ""
    if key not in REMEMBERED and os.path.exists(file):
        REMEMBERED[key] = arrays_in(file)
    if REMEMBERED.get(key) is None:
        REMEMBERED[key] = model(x, y, others, seed)
        if file:
            part = f"{file}.{uuid.uuid4().hex}.npz"  # not by process: in a sandbox, others have the same number
            np.savez(part, *REMEMBERED[key])
            os.replace(part, file)  # whole or not at all: others may be looking for it
    return REMEMBERED[key]


def arrays_in(file):
    """The arrays in a file, or nothing if it is damaged."""
    try:
        with np.load(file) as arrays:
            return [arrays[name] for name in arrays.files]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None
