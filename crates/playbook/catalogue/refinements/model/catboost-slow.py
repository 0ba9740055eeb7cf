# name: catboost
# title: More, smaller steps
# why: Twice as many trees at half the rate: a finer fit that mostly pays on small data
# needs: catboost
# of: catboost
# rank: 14
# cost: 3.5

from catboost import CatBoostClassifier, CatBoostRegressor


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations=500 if KIND in ("multiclass", "multilabel") else 1000,
        learning_rate=0.04 if KIND in ("multiclass", "multilabel") else 0.03, depth=6, l2_leaf_reg=5.0,
        boosting_type="Plain", one_hot_max_size=10, max_ctr_complexity=1, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    make = CatBoostRegressor if KIND == "regression" else CatBoostClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
