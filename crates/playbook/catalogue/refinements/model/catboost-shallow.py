# name: catboost
# title: Depth four with strong shrinkage
# why: Shallow symmetric trees with strong shrinkage of the leaves: less variance where rows are few
# needs: catboost
# of: catboost
# rank: 10
# cost: 1.5

from catboost import CatBoostClassifier, CatBoostRegressor


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations=400 if KIND in ("multiclass", "multilabel") else 900,
        learning_rate=0.06, depth=4, l2_leaf_reg=8.0, random_strength=2.0,
        boosting_type="Plain", one_hot_max_size=10, max_ctr_complexity=1, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    make = CatBoostRegressor if KIND == "regression" else CatBoostClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
