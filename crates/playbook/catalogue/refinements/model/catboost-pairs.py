# name: catboost
# title: Combinations of categories
# why: Let the library combine categories more often and one-hot only the smallest: target statistics of combinations
# columns: categorical
# needs: catboost
# of: catboost
# rank: 20
# cost: 2

from catboost import CatBoostClassifier, CatBoostRegressor


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations=300 if KIND in ("multiclass", "multilabel") else 500,
        learning_rate=0.06, depth=6, l2_leaf_reg=4.0, one_hot_max_size=8, border_count=128,
        boosting_type="Plain", max_ctr_complexity=2, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    make = CatBoostRegressor if KIND == "regression" else CatBoostClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
