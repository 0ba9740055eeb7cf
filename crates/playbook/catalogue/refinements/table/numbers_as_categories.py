# name: table
# title: Whole numbers with few values also as categories
# why: A class, a month or a type written as a number is not a quantity: offer it as a category too
# columns: numeric
# rank: 20

FEATURES = []


def table(frame, fit):
    """Base columns and features of `frame`, plus a category for each number with 3 to 20 whole values."""
    columns = {}
    for column in NUMERIC:
        columns[column] = pd.to_numeric(frame[column], errors="coerce").astype(float)
        known = pd.to_numeric(fit[column], errors="coerce").astype(float)
        if 3 <= known.nunique() <= 20 and (known.dropna() % 1 == 0).all():
            columns[f"{column} as category"] = pd.Series(category(columns[column], known, 3), index=frame.index)
    for column in CATEGORICAL:
        columns[column] = pd.Series(category(frame[column], fit[column]), index=frame.index)
    for column in TEXT:
        columns[column] = frame[column].fillna("").astype(str).astype(object)
    base = pd.DataFrame(columns, index=frame.index)
    made = [make(frame, fit) for make in FEATURES]
    return pd.concat([base, *made], axis=1).replace([np.inf, -np.inf], np.nan) if made else base
