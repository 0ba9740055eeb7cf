# name: linear
# title: Linear model on scaled numbers and one-hot categories
# why: Logistic or ridge regression: the trend that trees only approximate in steps, and hard to overfit
# rank: 16
# cost: 0.5

from sklearn.linear_model import LogisticRegression, Ridge


def model_linear(x, y, others, seed):
    x, others = dense(x, others)
    if KIND == "regression":
        return fit_predict(lambda: Ridge(alpha=10.0), x, y, others)
    penalty = 10.0 if KIND == "multiclass" and len(y) < 20 * len(CLASSES) else 1.0  # small classes far apart need sharp answers
    return fit_predict(lambda: LogisticRegression(C=penalty, max_iter=300), x, y, others)
