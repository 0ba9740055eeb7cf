# name: linear
# title: Penalty chosen on inner folds
# why: The right amount of shrinkage depends on the data: choose it by cross-validation inside the training part
# of: linear
# rank: 10
# cost: 2

from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV


def model_linear(x, y, others, seed):
    x, others = dense(x, others)
    if KIND == "regression":
        return fit_predict(lambda: RidgeCV(alphas=np.geomspace(0.3, 300, 13)), x, y, others)
    search = lambda: GridSearchCV(LogisticRegression(max_iter=200), {"C": [0.03, 0.2, 1.0, 5.0]}, scoring="neg_log_loss", cv=3)
    plain = lambda: LogisticRegression(max_iter=300)
    least = np.min(np.unique(y, return_counts=True)[1]) if y.ndim == 1 else y.sum(axis=0).min()
    return fit_predict(search if least >= 6 else plain, x, y, others)
