# name: svm
# title: Support vector machine with a radial kernel
# why: Smooth boundaries between neighbours on scaled columns: strong when rows are few and columns many
# rows: 0..9000
# rank: 22
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
        found = fit_predict(lambda: SVR(C=10.0, epsilon=0.03, gamma=0.3 / x.shape[1]), x, (y - centre) / spread, others)
        return [centre + spread * p for p in found]
    least = min(np.unique(column, return_counts=True)[1].min() for column in y.reshape(len(y), -1).T)
    if least < 15:
        # Too few rows per class to turn margins into probabilities: a logistic regression on the same kernel gives them itself.
        kernel = lambda: Nystroem(gamma=0.5 / x.shape[1], n_components=min(500, len(y)), random_state=seed)
        return fit_predict(lambda: make_pipeline(kernel(), LogisticRegression(C=300.0, max_iter=200)), x, y, others)
    return fit_predict(lambda: CalibratedClassifierCV(SVC(C=3.0, gamma="scale"), cv=3, ensemble=False), x, y, others)
