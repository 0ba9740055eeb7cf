# name: decision
# title: Threshold at half the best F1
# why: For calibrated probabilities the best threshold for F1 is half of the best F1: calibrate, then use that rule
# kinds: binary
# metrics: f1
# rank: 10

from sklearn.linear_model import LogisticRegression


def calibrated(p, model):
    odds = np.log(np.clip(p[:, 1], 1e-6, 1)) - np.log(np.clip(p[:, 0], 1e-6, 1))
    return model.predict_proba(odds.reshape(-1, 1))[:, 1]


def learn_decision(p, y):
    """A logistic calibration (two numbers) and the F1 that is expected of the best threshold on it."""
    if len(np.unique(y)) < 2:
        return None
    odds = np.log(np.clip(p[:, 1], 1e-6, 1)) - np.log(np.clip(p[:, 0], 1e-6, 1))
    model = LogisticRegression(C=100.0).fit(odds.reshape(-1, 1), y)
    chance = np.sort(calibrated(p, model))[::-1]
    expected = 2 * np.cumsum(chance) / (np.arange(1, len(chance) + 1) + chance.sum())
    return model, float(expected.max() / 2)


def decide(p, learnt):
    if learnt is None:
        return p.argmax(axis=1)
    return (calibrated(p, learnt[0]) >= learnt[1]).astype(int)
