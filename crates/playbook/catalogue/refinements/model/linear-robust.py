# name: linear
# title: Fit that ignores outliers
# why: A few extreme targets pull a least-squares line away: count large errors linearly instead
# kinds: regression
# of: linear
# rank: 18
# cost: 1.5

from sklearn.linear_model import HuberRegressor


def model_linear(x, y, others, seed):
    x, others = dense(x, others)
    centre, spread = np.median(y), y.std() or 1.0
    found = fit_predict(lambda: HuberRegressor(epsilon=1.2, alpha=3.0, max_iter=200), x, (y - centre) / spread, others)
    return [centre + spread * p for p in found]
