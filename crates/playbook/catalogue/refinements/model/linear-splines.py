# name: linear
# title: Curves instead of straight lines
# why: Each number becomes a few smooth bumps, so that the linear model can bend without losing its calm
# columns: numeric
# of: linear
# rank: 14
# cost: 2

from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import SplineTransformer


def model_linear(x, y, others, seed):
    x, others = dense(x, others)
    wide = [k for k in range(x.shape[1]) if len(np.unique(x[:, k])) > 8][:60]
    if wide:
        bumps = SplineTransformer(n_knots=5, degree=3, knots="quantile", extrapolation="linear", include_bias=False).fit(x[:, wide])
        others = [np.column_stack([other, bumps.transform(other[:, wide])]) for other in others]
        x = np.column_stack([x, bumps.transform(x[:, wide])])
    if KIND == "regression":
        return fit_predict(lambda: Ridge(alpha=3.0), x, y, others)
    return fit_predict(lambda: LogisticRegression(C=0.5, max_iter=200), x, y, others)
