# name: coordinates
# title: Places on the map
# why: A pair of coordinates is a place: turned axes, distance to centres of crowded areas, and the target of the neighbours
# columns: numeric
# rank: 6
# cost: 0.4

from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors


def places(fit):
    """A latitude and a longitude, told by their values: two columns side by side, within 90 and 180 degrees,
    written as finely and spread about as far as each other, and either far from zero for their spread or all around the globe."""
    def decimals(values):
        return int(np.median([len(f"{value:.6f}".rstrip("0").split(".")[1]) for value in values[:500]]))

    known = {column: fit[column].dropna().to_numpy(float) for column in NUMERIC}
    for first, second in zip(NUMERIC, NUMERIC[1:]):
        pair = sorted((first, second), key=lambda column: np.abs(known[column]).max(initial=0))
        latitude, longitude = known[pair[0]], known[pair[1]]
        if min(len(np.unique(latitude)), len(np.unique(longitude))) <= 20:
            continue
        if np.abs(latitude).max() > 90 or np.abs(longitude).max() > 180:
            continue
        fine = decimals(latitude), decimals(longitude)
        if min(fine) < 2 or abs(fine[0] - fine[1]) > 1:
            continue
        if not 0.125 < latitude.std() / longitude.std() < 8:
            continue
        regional = all(np.ptp(values) < 60 and np.hypot(latitude.mean(), longitude.mean()) > 6 * values.std() for values in (latitude, longitude))
        global_ = np.ptp(longitude) > 180 and np.ptp(latitude) > 45 and longitude.min() < -90 and longitude.max() > 90
        if (regional and max(np.abs(latitude).max(), np.abs(longitude).max()) > 20) or global_:
            return pair
    return []


def features_coordinates(frame, fit):
    pair = places(fit)
    if not pair:
        return pd.DataFrame(index=frame.index)
    middle = fit[pair].median()
    known, here = fit[pair].fillna(middle).to_numpy(float), frame[pair].fillna(middle).to_numpy(float)
    # A degree of longitude is shorter than one of latitude away from the equator.
    shrink = np.array([1.0, np.cos(np.radians(middle.iloc[0]))])
    known, here = known * shrink, here * shrink
    found = {}
    for angle in (15, 30, 45, 60):
        turn = np.radians(angle)
        found[f"turned{angle}"] = here[:, 0] * np.cos(turn) + here[:, 1] * np.sin(turn)
        found[f"turned{angle}_across"] = here[:, 1] * np.cos(turn) - here[:, 0] * np.sin(turn)
    centres = KMeans(min(12, len(fit)), n_init=3, random_state=SEED).fit(known)
    for k, distance in enumerate(centres.transform(here).T):
        found[f"centre{k}_distance"] = distance
    if KIND != "multiclass" and len(fit) > 50:
        target = np.asarray(y[fit.index], float).reshape(len(fit), -1)
        skip = 1 if frame is fit else 0  # a training row is not its own neighbour
        distances, rows = NearestNeighbors(n_neighbors=20 + skip).fit(known).kneighbors(here)
        distances, rows = distances[:, skip:], rows[:, skip:]
        found["crowding"] = distances[:, 9]
        for k in range(target.shape[1]):
            for count in (5, 20):
                weights = 1.0 / (distances[:, :count] + 0.01)
                found[f"near{count}_target{k}"] = (target[rows[:, :count], k] * weights).sum(axis=1) / weights.sum(axis=1)
    return pd.DataFrame(found, index=frame.index)
