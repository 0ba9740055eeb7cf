# name: linear
# title: Weak penalty for many small classes
# why: With many classes of few rows the classes are far apart in many columns: a weaker penalty gives sharper probabilities
# kinds: multiclass
# of: linear
# rank: 6
# cost: 2

from sklearn.linear_model import LogisticRegression


def model_linear(x, y, others, seed):
    x, others = dense(x, others)
    return fit_predict(lambda: LogisticRegression(C=30.0, max_iter=300), x, y, others)
