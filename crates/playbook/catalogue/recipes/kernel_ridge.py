# name: kernel_ridge
# title: Ridge regression on random kernel features
# why: A smooth non-linear regression: radial kernel features and a ridge on top, next to the plain scaled columns
# kinds: regression
# columns: numeric
# rows: 0..20000
# rank: 28
# cost: 0.7

from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV


def model_kernel_ridge(x, y, others, seed):
    x, others = dense(x, others)
    kernel = Nystroem(gamma=0.3 / x.shape[1], n_components=min(400, len(x)), random_state=seed).fit(x)
    widen = lambda values: np.column_stack([values, 3.0 * kernel.transform(values)])
    return fit_predict(lambda: RidgeCV(alphas=[0.03, 0.3, 3.0, 30.0]), widen(x), y, [widen(other) for other in others])
