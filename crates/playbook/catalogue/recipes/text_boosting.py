# name: text_boosting
# title: Boosted trees on topics of the texts and the other columns
# why: Tf-idf condensed to a few dozen directions feeds boosted trees together with the numbers and categories
# needs: lightgbm
# columns: text
# classes: 0..30
# rank: 8
# cost: 2

from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer


def model_text_boosting(x, y, others, seed):
    texts = [name for name in x.columns if x[name].dtype == object]
    first, rest = tabular(x, others)
    frames = [first.reset_index(drop=True)] + [frame.reset_index(drop=True) for frame in rest]
    for number, column in enumerate(texts):
        vectoriser = TfidfVectorizer(ngram_range=(1, 1), min_df=3, sublinear_tf=True, strip_accents="unicode", token_pattern=r"\w+")
        try:
            words = vectoriser.fit_transform(x[column])
        except ValueError:  # no word is frequent enough
            continue
        topics = TruncatedSVD(max(1, min(60, words.shape[1] - 1, len(x) - 1)), random_state=seed).fit(words)
        for k, frame in enumerate([x, *others]):
            values = topics.transform(vectoriser.transform(frame[column]))
            named = pd.DataFrame(values, columns=[f"t{number}_{i}" for i in range(values.shape[1])])
            frames[k] = pd.concat([frames[k], named], axis=1)
    settings = dict(
        n_estimators=250, learning_rate=0.05, num_leaves=15, min_child_samples=20, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.4, reg_lambda=2.0, random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: make(**settings), frames[0], y, frames[1:])
