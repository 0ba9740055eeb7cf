# name: catboost
# title: One model for all targets
# why: One set of trees that predicts all targets at once shares what the targets have in common
# kinds: multilabel
# needs: catboost
# of: catboost
# rank: 30
# cost: 5

from catboost import CatBoostClassifier


def model_catboost(x, y, others, seed):
    x, others = tabular(x, others)
    words = [column for column in x.columns if isinstance(x[column].dtype, pd.CategoricalDtype)]
    for frame in [x, *others]:
        for column in words:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    settings = dict(
        iterations=200, learning_rate=0.12, depth=5, l2_leaf_reg=5.0, loss_function="MultiLogloss",
        boosting_type="Plain", one_hot_max_size=10, max_ctr_complexity=1, cat_features=words, random_seed=seed, verbose=False, allow_writing_files=False,
    )
    if any(len(np.unique(column)) < 2 for column in y.T):
        settings.pop("loss_function")
        return fit_predict(lambda: CatBoostClassifier(**settings), x, y, others)
    model = CatBoostClassifier(**settings).fit(x, y.astype(int))
    return [model.predict_proba(other) for other in others]
