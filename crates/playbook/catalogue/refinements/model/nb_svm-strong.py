# name: nb_svm
# title: Stronger penalty
# why: The ratios already carry the evidence: a stronger penalty keeps the weights near one
# kinds: binary multiclass multilabel
# columns: text
# of: nb_svm
# rank: 12
# cost: 1

from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression


class NaiveBayesLogistic:
    """For each class: presence of words times their log-count ratio, then logistic regression."""

    def __init__(self, penalty):
        self.penalty = penalty

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        self.parts = []
        for label in self.classes_[1:] if len(self.classes_) == 2 else self.classes_:
            inside = np.asarray(x[y == label].sum(axis=0)).ravel() + 1.0
            outside = np.asarray(x[y != label].sum(axis=0)).ravel() + 1.0
            ratio = np.log((inside / inside.sum()) / (outside / outside.sum()))
            model = LogisticRegression(C=self.penalty, solver="liblinear").fit(x.multiply(ratio).tocsr(), y == label)
            self.parts.append((ratio, model))
        return self

    def predict_proba(self, x):
        p = np.column_stack([model.predict_proba(x.multiply(ratio).tocsr())[:, 1] for ratio, model in self.parts])
        p = np.column_stack([1 - p, p]) if p.shape[1] == 1 else p + 1e-9
        return p / p.sum(axis=1, keepdims=True)


def model_nb_svm(x, y, others, seed):
    blocks = [[] for _ in range(1 + len(others))]
    for column in [name for name in x.columns if x[name].dtype == object]:
        vectoriser = CountVectorizer(ngram_range=(1, 2), min_df=2, binary=True, strip_accents="unicode", token_pattern=r"\w+|[!?#@]")
        try:
            vectoriser.fit(x[column])
        except ValueError:  # no word is frequent enough
            continue
        for block, frame in zip(blocks, [x, *others]):
            block.append(vectoriser.transform(frame[column]))
    for column in x.columns:
        if isinstance(x[column].dtype, pd.CategoricalDtype):
            for block, frame in zip(blocks, [x, *others]):
                block.append(sparse.csr_matrix(pd.get_dummies(frame[column]).to_numpy(float)))
    if not blocks[0]:
        blocks = [[sparse.csr_matrix(np.ones((len(frame), 1)))] for frame in [x, *others]]
    x, *others = [sparse.hstack(block).tocsr() for block in blocks]
    return fit_predict(lambda: NaiveBayesLogistic(0.08), x, y, others)
