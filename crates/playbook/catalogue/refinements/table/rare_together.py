# name: table
# title: Rare categories together
# why: Values seen in a handful of rows cannot be learnt one by one: put them into one category
# columns: categorical
# rank: 10

FEATURES = []


def table(frame, fit):
    """Base columns and features of `frame`; categories with fewer than ten training rows become "rare"."""
    columns = {}
    for column in NUMERIC:
        columns[column] = pd.to_numeric(frame[column], errors="coerce").astype(float)
    for column in CATEGORICAL:
        counts = fit[column].dropna().astype(str).value_counts()
        common = set(counts.index[counts >= 10])
        here = frame[column].astype(str).where(frame[column].notna())
        here = here.where(here.isna() | here.isin(common), "rare")
        columns[column] = pd.Series(pd.Categorical(here, categories=sorted(common | {"rare"})), index=frame.index)
    for column in TEXT:
        columns[column] = frame[column].fillna("").astype(str).astype(object)
    base = pd.DataFrame(columns, index=frame.index)
    made = [make(frame, fit) for make in FEATURES]
    return pd.concat([base, *made], axis=1).replace([np.inf, -np.inf], np.nan) if made else base
