# name: hist_gradient_boosting
# title: Gradient boosted trees (scikit-learn)
# why: Boosted trees on binned values that need no package beyond scikit-learn
# classes: 0..30
# rank: 30
# cost: 1.5

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor


def model_hist_gradient_boosting(x, y, others, seed):
    x, others = tabular(x, others)
    for column in x.columns:
        # Native categories are limited to 255 values here: use the codes, which are ordered by name.
        if isinstance(x[column].dtype, pd.CategoricalDtype):
            for frame in [x, *others]:
                frame[column] = frame[column].cat.codes.replace(-1, np.nan).astype(float)
    settings = dict(max_iter=200, learning_rate=0.06, max_leaf_nodes=31, l2_regularization=1.0, early_stopping=False, random_state=seed)
    make = HistGradientBoostingRegressor if KIND == "regression" else HistGradientBoostingClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
