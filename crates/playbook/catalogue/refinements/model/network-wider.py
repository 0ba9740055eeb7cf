# name: network
# title: Wider and longer
# why: More hidden units and a stronger penalty: more room for interactions, held back by weight decay
# of: network
# rank: 12
# cost: 4

from sklearn.neural_network import MLPClassifier, MLPRegressor


def model_network(x, y, others, seed):
    x, others = dense(x, others)
    epochs = int(np.clip(400_000 / len(y), 15, 100))
    settings = dict(hidden_layer_sizes=(192, 96), alpha=1e-1, learning_rate_init=1e-3, batch_size=min(len(y), 64 if len(y) < 5000 else 128), max_iter=epochs)
    runs = []
    for bag in range(2):
        settings["random_state"] = seed + bag
        if KIND == "regression":
            centre, spread = y.mean(), y.std() or 1.0
            found = fit_predict(lambda: MLPRegressor(**settings), x, (y - centre) / spread, others)
            runs.append([centre + spread * p for p in found])
        elif KIND == "multilabel" and len(np.unique(y)) == 2:
            # One network with all targets as outputs shares what it learns between them.
            network = MLPClassifier(**settings).fit(x, y)
            runs.append([network.predict_proba(other) for other in others])
        else:
            runs.append(fit_predict(lambda: MLPClassifier(**settings), x, y, others))
    return [np.mean(found, axis=0) for found in zip(*runs)]
