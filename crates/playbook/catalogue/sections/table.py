# name: table
# title: The table that the models see
# why: The columns as they are plus the engineered features, with categories known from the training part

FEATURES = []


def table(frame, fit):
    """Base columns and features of `frame`; whatever has to be learnt comes from `fit`."""
    columns = {}
    for column in NUMERIC:
        columns[column] = pd.to_numeric(frame[column], errors="coerce").astype(float)
    for column in CATEGORICAL:
        columns[column] = pd.Series(category(frame[column], fit[column]), index=frame.index)
    for column in TEXT:
        columns[column] = frame[column].fillna("").astype(str).astype(object)
    base = pd.DataFrame(columns, index=frame.index)
    made = [make(frame, fit) for make in FEATURES]
    return pd.concat([base, *made], axis=1).replace([np.inf, -np.inf], np.nan) if made else base
