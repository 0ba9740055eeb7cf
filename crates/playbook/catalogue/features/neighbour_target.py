# name: neighbour_target
# title: Target of the most similar rows
# why: The mean target of the nearest training rows on scaled numbers lends trees the view of a neighbour model
# columns: numeric
# rows: 100..30000
# rank: 24
# cost: 0.5

from sklearn.neighbors import NearestNeighbors


def features_neighbour_target(frame, fit):
    known = fit[NUMERIC].apply(pd.to_numeric, errors="coerce").astype(float)
    known = known.loc[:, known.nunique() > 1]
    if known.shape[1] == 0 or len(fit) < 40:
        return pd.DataFrame(index=frame.index)
    middle, spread = known.median(), known.std().replace(0, 1)
    here = frame[known.columns].apply(pd.to_numeric, errors="coerce").astype(float)
    known = ((known.fillna(middle) - middle) / spread).clip(-4, 4).to_numpy()
    here = ((here.fillna(middle) - middle) / spread).clip(-4, 4).to_numpy()
    target = np.asarray(y[fit.index], float)
    if KIND == "multiclass":
        target = (target[:, None] == np.arange(len(CLASSES))[:10]).astype(float)
    target = target.reshape(len(fit), -1)
    skip = 1 if frame is fit else 0  # a training row is not its own neighbour
    distances, rows = NearestNeighbors(n_neighbors=20 + skip).fit(known).kneighbors(here)
    distances, rows = distances[:, skip:], rows[:, skip:]
    found = {"neighbour_distance": distances[:, 4]}
    for k in range(target.shape[1]):
        found[f"neighbour_target{k}"] = target[rows, k].mean(axis=1)
    return pd.DataFrame(found, index=frame.index)
