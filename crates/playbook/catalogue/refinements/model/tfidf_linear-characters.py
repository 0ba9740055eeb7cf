# name: tfidf_linear
# title: Character pieces only, across word borders
# why: Misspellings, word endings and emoticons live in characters: longer pieces, also across spaces, and no words at all
# columns: text
# of: tfidf_linear
# rank: 18
# cost: 1.5

from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge


def model_tfidf_linear(x, y, others, seed):
    blocks = [[] for _ in range(1 + len(others))]
    for column in [name for name in x.columns if x[name].dtype == object]:
        vectoriser = TfidfVectorizer(analyzer="char", ngram_range=(3, 6), min_df=4, max_features=120000, sublinear_tf=True, dtype=np.float32)
        try:
            vectoriser.fit(x[column])
        except ValueError:  # the texts are too short
            continue
        for block, frame in zip(blocks, [x, *others]):
            block.append(vectoriser.transform(frame[column]))
    first, rest = dense(x, others)
    for block, numbers in zip(blocks, [first, *rest]):
        block.append(sparse.csr_matrix(0.3 * numbers))
    x, *others = [sparse.hstack(block).tocsr() for block in blocks]
    if KIND == "regression":
        return fit_predict(lambda: Ridge(alpha=1.0), x, y, others)
    return fit_predict(lambda: LogisticRegression(C=5.0, solver="liblinear" if KIND != "multiclass" else "lbfgs", max_iter=300), x, y, others)
