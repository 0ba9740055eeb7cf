# name: text_words
# title: Frequent words as flags
# why: Titles and key words inside names and short texts: a flag for each of the words that tell most about the target
# columns: text
# rank: 7
# cost: 0.3

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import f_classif, f_regression


def features_text_words(frame, fit):
    target = np.asarray(y[fit.index], float)
    target = target[:, 0] if target.ndim == 2 else target
    found = {}
    for column in TEXT:
        counter = CountVectorizer(binary=True, min_df=max(5, len(fit) // 200), max_features=2000, token_pattern=r"\w+", strip_accents="unicode")
        try:
            known = counter.fit_transform(fit[column].fillna("").astype(str))
        except ValueError:  # no word is frequent enough
            continue
        if len(np.unique(target)) < 2:
            continue
        strength = np.nan_to_num((f_regression if KIND == "regression" else f_classif)(known, target)[0])
        best = np.argsort(-strength, kind="stable")[:20]
        here = counter.transform(frame[column].fillna("").astype(str))[:, best].toarray()
        names = counter.get_feature_names_out()[best]
        for k, name in enumerate(names):
            found[f"{column} has {name}"] = here[:, k].astype(float)
    return pd.DataFrame(found, index=frame.index)
