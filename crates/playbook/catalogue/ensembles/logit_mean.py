# name: logit_mean
# title: Mean of log-odds
# why: Average on the scale of log-odds, where a confident model weighs more, with hill-climbed weights
# kinds: binary multiclass multilabel
# rank: 7


def log_odds(p):
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p) - np.log(1 - p) if KIND == "multilabel" else np.log(p)


def probabilities(odds):
    if KIND == "multilabel":
        return 1 / (1 + np.exp(-odds))
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def weigh(oof, y):
    return climb({name: log_odds(p) for name, p in distinct(oof).items()}, y, seen_as=probabilities)


def combine(predictions, weights):
    return probabilities(sum(weight * log_odds(predictions[name]) for name, weight in weights.items()))
