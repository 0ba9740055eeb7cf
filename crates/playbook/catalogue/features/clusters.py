# name: clusters
# title: Distance to typical rows
# why: Rows fall into types: the distance to each centre of a k-means clustering of the scaled numbers
# columns: numeric
# rank: 32
# cost: 0.3

from sklearn.cluster import KMeans


def features_clusters(frame, fit):
    known = fit[NUMERIC].apply(pd.to_numeric, errors="coerce").astype(float)
    known = known.loc[:, known.nunique() > 1]
    if known.shape[1] < 3 or len(fit) < 50:
        return pd.DataFrame(index=frame.index)
    middle, spread = known.median(), known.std().replace(0, 1)
    scale = lambda values: ((values[known.columns].apply(pd.to_numeric, errors="coerce").astype(float).fillna(middle) - middle) / spread).clip(-4, 4).to_numpy()
    centres = KMeans(8, n_init=2, random_state=SEED).fit(scale(fit))
    return pd.DataFrame({f"cluster{k}": values for k, values in enumerate(centres.transform(scale(frame)).T)}, index=frame.index)
