# name: catboost
# title: Deeper trees with sampled columns
# why: Depth eight with half of the columns at each level: richer interactions, held back by sampling
# rows: 2000..100000
# needs: catboost
# of: catboost
# rank: 18
# cost: 3

from catboost import CatBoostClassifier, CatBoostRegressor


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations=200 if KIND in ("multiclass", "multilabel") else 350,
        learning_rate=0.07, depth=8, l2_leaf_reg=6.0, rsm=0.5, bootstrap_type="Bernoulli", subsample=0.8,
        boosting_type="Plain", one_hot_max_size=10, max_ctr_complexity=1, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    make = CatBoostRegressor if KIND == "regression" else CatBoostClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
