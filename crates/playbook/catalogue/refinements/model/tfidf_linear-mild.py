# name: tfidf_linear
# title: Single words with a stronger penalty
# why: Short texts with noisy labels: fewer, more frequent features and a stronger penalty overfit less
# columns: text
# of: tfidf_linear
# rank: 12
# cost: 0.8

from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge


def model_tfidf_linear(x, y, others, seed):
    blocks = [[] for _ in range(1 + len(others))]
    for column in [name for name in x.columns if x[name].dtype == object]:
        for vectoriser in (
            TfidfVectorizer(ngram_range=(1, 1), min_df=2, sublinear_tf=True, strip_accents="unicode", token_pattern=r"\w+"),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=5, max_features=30000, sublinear_tf=True, dtype=np.float32),
        ):
            try:
                vectoriser.fit(x[column])
            except ValueError:  # no word is frequent enough
                continue
            for block, frame in zip(blocks, [x, *others]):
                block.append(vectoriser.transform(frame[column]))
    first, rest = dense(x, others)
    for block, numbers in zip(blocks, [first, *rest]):
        block.append(sparse.csr_matrix(0.15 * numbers))
    x, *others = [sparse.hstack(block).tocsr() for block in blocks]
    if KIND == "regression":
        return fit_predict(lambda: Ridge(alpha=3.0), x, y, others)
    return fit_predict(lambda: LogisticRegression(C=1.5, solver="liblinear" if KIND != "multiclass" else "lbfgs", max_iter=300), x, y, others)
