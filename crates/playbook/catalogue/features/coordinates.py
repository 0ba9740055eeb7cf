# name: coordinates
# title: Places on the map
# why: A pair of coordinates is a place: turned axes, distance to centres of crowded areas, and the target of the neighbours
# columns: places
# rank: 6
# cost: 0.4

from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors


def features_coordinates(frame, fit):
    middle = fit[PLACES].median()
    known, here = fit[PLACES].fillna(middle).to_numpy(float), frame[PLACES].fillna(middle).to_numpy(float)
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
