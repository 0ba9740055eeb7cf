# name: target
# title: Scale of the target
# why: Fit on the scale that the metric measures: logarithms for relative errors, the plain target otherwise

LOGARITHMIC = KIND == "regression" and METRIC in ("rmsle", "rmse_of_log") and float(np.min(y)) >= 0


def to_model(y):
    return np.log1p(y) if LOGARITHMIC else y


def from_model(p):
    return np.maximum(np.expm1(np.minimum(p, 700)), 0) if LOGARITHMIC else p
