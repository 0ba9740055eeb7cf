# name: table
# title: Missing numbers filled in from similar rows
# why: A missing number is estimated from the other columns instead of being left open, with a flag that says so
# columns: numeric
# rows: 0..20000
# rank: 30

from sklearn.ensemble import ExtraTreesRegressor

FEATURES = []


def table(frame, fit):
    """Base columns and features of `frame`; gaps of numbers are predicted from the other numbers and categories."""
    number = lambda data, column: pd.to_numeric(data[column], errors="coerce").astype(float)
    columns = {column: number(frame, column) for column in NUMERIC}
    middles = {column: number(fit, column).median() for column in NUMERIC}
    for column in NUMERIC:
        gaps = number(fit, column).isna()
        if not 0.01 < gaps.mean() < 0.7:
            continue
        helpers = [other for other in NUMERIC if other != column]
        crosses = [other for other in CATEGORICAL if fit[other].nunique() <= 30]
        view = lambda data: np.column_stack(
            [np.zeros(len(data))]
            + [number(data, other).fillna(middles[other]).fillna(0.0) for other in helpers]
            + [pd.Series(category(data[other], fit[other]).codes) for other in crosses]
        )
        guess = ExtraTreesRegressor(50, min_samples_leaf=5, random_state=SEED)
        guess.fit(view(fit)[~gaps.to_numpy()], number(fit, column)[~gaps])
        holes = columns[column].isna()
        columns[f"{column} was missing"] = holes.astype(float)
        if holes.any():
            columns[column] = columns[column].copy()
            columns[column][holes] = guess.predict(view(frame)[holes.to_numpy()])
    for column in CATEGORICAL:
        columns[column] = pd.Series(category(frame[column], fit[column]), index=frame.index)
    for column in TEXT:
        columns[column] = frame[column].fillna("").astype(str).astype(object)
    base = pd.DataFrame(columns, index=frame.index)
    made = [make(frame, fit) for make in FEATURES]
    return pd.concat([base, *made], axis=1).replace([np.inf, -np.inf], np.nan) if made else base
