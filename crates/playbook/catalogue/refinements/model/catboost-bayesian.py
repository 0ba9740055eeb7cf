# name: catboost
# title: Stronger random weights
# why: A wider Bayesian bootstrap and noisier splits make the trees differ more, so their sum overfits less
# needs: catboost
# of: catboost
# rank: 16
# cost: 2

from catboost import CatBoostClassifier, CatBoostRegressor


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations=300 if KIND in ("multiclass", "multilabel") else 600,
        learning_rate=0.07, depth=6, l2_leaf_reg=5.0, bagging_temperature=3.0, random_strength=3.0, rsm=0.7,
        boosting_type="Plain", one_hot_max_size=10, max_ctr_complexity=1, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    make = CatBoostRegressor if KIND == "regression" else CatBoostClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
