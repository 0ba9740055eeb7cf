# name: linear
# title: Absolute penalty that drops columns
# why: With many one-hot columns most carry nothing: a penalty on absolute weights keeps the few that do
# of: linear
# rank: 12
# cost: 2

from sklearn.linear_model import LassoCV, LogisticRegression


def model_linear(x, y, others, seed):
    x, others = dense(x, others)
    if KIND == "regression":
        centre, spread = y.mean(), y.std() or 1.0
        make = lambda: LassoCV(alphas=np.geomspace(3e-4, 0.1, 12), cv=min(4, len(y)), max_iter=3000)
        return [centre + spread * p for p in fit_predict(make, x, (y - centre) / spread, others)]
    if KIND == "multiclass":
        return fit_predict(lambda: LogisticRegression(C=1.0, penalty="l1", solver="saga", max_iter=60, tol=1e-2), x, y, others)
    return fit_predict(lambda: LogisticRegression(C=0.3, penalty="l1", solver="liblinear"), x, y, others)
