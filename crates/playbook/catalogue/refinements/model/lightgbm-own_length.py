# name: lightgbm
# title: Number of trees found on an inner split
# why: How many trees are enough depends on the data: stop where an inner hold-out of the training part stops improving
# needs: lightgbm
# of: lightgbm
# rank: 14
# cost: 1.6

from lightgbm import LGBMClassifier, LGBMRegressor
from lightgbm import early_stopping
from sklearn.model_selection import train_test_split


class Stopped:
    """Finds the number of trees on an inner hold-out (never on scored rows), then fits all rows with it."""

    def __init__(self, make, settings):
        self.make, self.settings = make, settings

    def fit(self, x, y):
        counts = np.bincount(y) if KIND != "regression" else np.array([2])
        inner, held = train_test_split(np.arange(len(y)), test_size=0.2, random_state=SEED, stratify=y if KIND != "regression" and counts.min() >= 5 else None)
        trial = self.make(n_estimators=2000, **self.settings)
        if KIND == "regression" or len(np.unique(y[inner])) == len(np.unique(y)):
            trial.fit(x.iloc[inner], y[inner], eval_set=[(x.iloc[held], y[held])], callbacks=[early_stopping(40, verbose=False)])
            count = max(20, int(1.1 * (trial.best_iteration_ or 200)))
        else:
            count = 200
        self.model = self.make(n_estimators=count, **self.settings).fit(x, y)
        if KIND != "regression":
            self.predict_proba = self.model.predict_proba
        return self

    def predict(self, x):
        return self.model.predict(x)

def model_lightgbm(x, y, others, seed):
    x, others = tabular(x, others)
    settings = dict(
        learning_rate=0.05, num_leaves=31, min_child_samples=20, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.5, reg_lambda=2.0, random_state=seed, deterministic=True, verbose=-1,
    )
    make = LGBMRegressor if KIND == "regression" else LGBMClassifier
    return fit_predict(lambda: Stopped(make, settings), x, y, others)
