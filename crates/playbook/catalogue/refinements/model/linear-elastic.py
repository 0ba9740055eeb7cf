# name: linear
# title: Ridge and lasso averaged
# why: A mix of both penalties with inner folds, averaged with a plain ridge: sturdy on wide tables with many related columns
# kinds: regression
# of: linear
# rank: 8
# cost: 3

from sklearn.linear_model import ElasticNetCV, RidgeCV


def model_linear(x, y, others, seed):
    x, others = dense(x, others)
    centre, spread = y.mean(), y.std() or 1.0
    scaled = (y - centre) / spread
    mixed = fit_predict(lambda: ElasticNetCV(l1_ratio=[0.3, 0.9], alphas=np.geomspace(5e-4, 0.1, 10), cv=min(4, len(y)), max_iter=3000), x, scaled, others)
    ridge = fit_predict(lambda: RidgeCV(alphas=np.geomspace(0.3, 300, 13)), x, scaled, others)
    return [centre + spread * (p + q) / 2 for p, q in zip(mixed, ridge)]
