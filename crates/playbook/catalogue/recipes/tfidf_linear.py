# name: tfidf_linear
# title: Linear model on words and character n-grams
# why: Tf-idf of words and of character pieces with a regularised linear model: the classic that is hard to beat on short texts
# columns: text
# rank: 2
# cost: 1

from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge


def model_tfidf_linear(x, y, others, seed):
    blocks = [[] for _ in range(1 + len(others))]
    for column in [name for name in x.columns if x[name].dtype == object]:
        for vectoriser in (
            TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, strip_accents="unicode", token_pattern=r"\w+"),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=3, max_features=60000, sublinear_tf=True, dtype=np.float32),
        ):
            try:
                vectoriser.fit(x[column])
            except ValueError:  # no word is frequent enough
                continue
            for block, frame in zip(blocks, [x, *others]):
                block.append(vectoriser.transform(frame[column]))
    first, rest = dense(x, others)
    for block, numbers in zip(blocks, [first, *rest]):
        block.append(sparse.csr_matrix(0.3 * numbers))
    x, *others = [sparse.hstack(block).tocsr() for block in blocks]
    if KIND == "regression":
        return fit_predict(lambda: Ridge(alpha=1.0), x, y, others)
    return fit_predict(lambda: LogisticRegression(C=3.0, solver="liblinear" if KIND != "multiclass" else "lbfgs", max_iter=300), x, y, others)
