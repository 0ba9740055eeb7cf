# name: catboost
# title: Absolute error as the objective
# why: The metric is an absolute error: minimise exactly that
# kinds: regression
# metrics: mae
# needs: catboost
# of: catboost
# rank: 5
# cost: 3

from catboost import CatBoostClassifier, CatBoostRegressor


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations=1200, loss_function="MAE", learning_rate=0.08, depth=6, l2_leaf_reg=3.0,
        boosting_type="Plain", one_hot_max_size=10, max_ctr_complexity=1, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    make = CatBoostRegressor if KIND == "regression" else CatBoostClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
