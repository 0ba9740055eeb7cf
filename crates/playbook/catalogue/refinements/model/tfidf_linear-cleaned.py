# name: tfidf_linear
# title: Links, names and numbers made alike
# why: Every link, mention and number is different, yet says the same: replace them by one token each before counting words
# columns: text
# of: tfidf_linear
# rank: 10
# cost: 1

from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge


def cleaned(values):
    values = values.str.lower().str.replace(r"https?:\S+|www\.\S+", " linktoken ", regex=True).str.replace(r"@\w+", " nametoken ", regex=True)
    return values.str.replace(r"\d+", " 0 ", regex=True).str.replace(r"&\w+;", " ", regex=True).str.replace(r"(.)\1{2,}", r"\1\1", regex=True)


def model_tfidf_linear(x, y, others, seed):
    blocks = [[] for _ in range(1 + len(others))]
    for column in [name for name in x.columns if x[name].dtype == object]:
        texts = [cleaned(frame[column]) for frame in [x, *others]]
        for vectoriser in (
            TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, strip_accents="unicode", token_pattern=r"\w+|[!?#]"),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=3, max_features=60000, sublinear_tf=True, dtype=np.float32),
        ):
            try:
                vectoriser.fit(texts[0])
            except ValueError:  # no word is frequent enough
                continue
            for block, text in zip(blocks, texts):
                block.append(vectoriser.transform(text))
    first, rest = dense(x, others)
    for block, numbers in zip(blocks, [first, *rest]):
        block.append(sparse.csr_matrix(0.3 * numbers))
    x, *others = [sparse.hstack(block).tocsr() for block in blocks]
    if KIND == "regression":
        return fit_predict(lambda: Ridge(alpha=1.0), x, y, others)
    return fit_predict(lambda: LogisticRegression(C=3.0, solver="liblinear" if KIND != "multiclass" else "lbfgs", max_iter=300), x, y, others)
