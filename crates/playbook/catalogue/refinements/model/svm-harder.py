# name: svm
# title: Harder boundary, wider kernel
# why: A larger penalty on errors with a wider kernel: nearly linear, exact on the training rows, good for clean data
# rows: 0..9000
# of: svm
# rank: 12
# cost: 2

from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR


def model_svm(x, y, others, seed):
    x, others = dense(x, others)
    if KIND == "regression":
        # The widths of the tube and of the penalty are meant for a target with spread one.
        centre, spread = y.mean(), y.std() or 1.0
        found = fit_predict(lambda: SVR(C=30.0, epsilon=0.03, gamma=0.1 / x.shape[1]), x, (y - centre) / spread, others)
        return [centre + spread * p for p in found]
    least = min(np.unique(column, return_counts=True)[1].min() for column in y.reshape(len(y), -1).T)
    if least < 15:
        # Too few rows per class to turn margins into probabilities: a logistic regression on the same kernel gives them itself.
        kernel = lambda: Nystroem(gamma=0.2 / x.shape[1], n_components=min(500, len(y)), random_state=seed)
        return fit_predict(lambda: make_pipeline(kernel(), LogisticRegression(C=3000.0, max_iter=200)), x, y, others)
    return fit_predict(lambda: CalibratedClassifierCV(SVC(C=20.0, gamma=0.3 / x.shape[1]), cv=3, ensemble=False), x, y, others)
