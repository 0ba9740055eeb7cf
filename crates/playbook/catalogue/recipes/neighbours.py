# name: neighbours
# title: Nearest neighbours
# why: Rows are answered by the rows most like them on scaled columns: few assumptions, very different mistakes
# rows: 0..30000
# rank: 34
# cost: 0.7

from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor


def model_neighbours(x, y, others, seed):
    x, others = dense(x, others)
    # Fewer neighbours where classes are small, more where there is plenty of data.
    count = int(np.clip(np.sqrt(len(y)) / 2, 3, 25))
    if KIND == "multiclass":
        count = int(np.clip(len(y) / len(CLASSES) / 3, 2, count))
    make = KNeighborsRegressor if KIND == "regression" else KNeighborsClassifier
    return fit_predict(lambda: make(n_neighbors=min(count, len(y)), weights="distance"), x, y, others, together=True)
