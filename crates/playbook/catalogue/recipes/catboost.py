# name: catboost
# title: Symmetric boosted trees (CatBoost)
# why: Shallow symmetric trees with ordered target statistics: strong on categories and on small data
# needs: catboost
# classes: 0..30
# rank: 12
# cost: 2

from catboost import CatBoostClassifier, CatBoostRegressor


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations={"multiclass": 300, "multilabel": 150}.get(KIND, 500),
        learning_rate={"multiclass": 0.08, "multilabel": 0.12}.get(KIND, 0.05), depth=6,
        boosting_type="Plain", one_hot_max_size=10, max_ctr_complexity=1, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    if KIND == "regression" and METRIC == "mae":
        settings.update(loss_function="MAE", iterations=800, learning_rate=0.08)  # minimise what is measured
    make = CatBoostRegressor if KIND == "regression" else CatBoostClassifier
    return fit_predict(lambda: make(**settings), x, y, others)
