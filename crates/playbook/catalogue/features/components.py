# name: components
# title: Principal components
# why: Many correlated columns hide a few directions: the leading components of the scaled numbers
# columns: numeric
# rank: 30
# cost: 0.2

from sklearn.decomposition import PCA


def features_components(frame, fit):
    known = fit[NUMERIC].apply(pd.to_numeric, errors="coerce").astype(float)
    known = known.loc[:, known.nunique() > 1]
    if known.shape[1] < 6 or len(fit) < 20:
        return pd.DataFrame(index=frame.index)
    middle, spread = known.median(), known.std().replace(0, 1)
    scale = lambda values: ((values[known.columns].apply(pd.to_numeric, errors="coerce").astype(float).fillna(middle) - middle) / spread).clip(-5, 5).to_numpy()
    pca = PCA(min(10, known.shape[1] // 2), random_state=SEED).fit(scale(fit))
    return pd.DataFrame({f"component{k}": values for k, values in enumerate(pca.transform(scale(frame)).T)}, index=frame.index)
