# name: discriminant
# title: Linear discriminant analysis with shrinkage
# why: One Gaussian per class with a shared, shrunken covariance: made for many classes with few rows each
# kinds: binary multiclass
# columns: numeric
# rows: 0..20000
# rank: 20
# cost: 0.3

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier


def model_discriminant(x, y, others, seed):
    x, others = dense(x, others)
    keep = x.std(axis=0) > 1e-9
    keep = keep if keep.any() else ~keep
    if len(y) <= len(np.unique(y)) + 1:
        return fit_predict(lambda: DummyClassifier(strategy="prior"), x, y, others)  # nothing to estimate a spread from
    return fit_predict(lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), x[:, keep], y, [other[:, keep] for other in others])
