def key_of(frame, columns):
    """The key of each row as text, so that 7, 7.0 and "7" are the same."""
    parts = [frame[column].astype(str).str.strip().str.replace(r"\.0$", "", regex=True) for column in columns]
    return parts[0].str.cat(parts[1:], sep="|")


def summed_up(rows, keys, numbers, categories, dates):
    """What the rows of each key have in common: how many there are, and what their columns come to."""
    key = key_of(rows, keys)
    made = {"count": rows.groupby(key).size().astype(float)}, {}, {}
    for column in numbers:
        values = pd.to_numeric(rows[column], errors="coerce").groupby(key)
        made[0].update({f"{column} {how}": values.agg(how) for how in ("mean", "min", "max", "sum")})
    for column in categories:
        made[0][f"{column} kinds"] = rows[column].groupby(key).nunique().astype(float)
        counts = rows.groupby([key, rows[column].astype(str).where(rows[column].notna())]).size()
        most = counts.sort_values(ascending=False, kind="stable").reset_index().drop_duplicates(counts.index.names[0])
        made[1][f"most frequent {column}"] = most.set_index(most.columns[0])[most.columns[1]]
    for column in dates:
        moments = pd.to_datetime(rows[column], errors="coerce", utc=True).groupby(key)
        made[2][f"last {column}"] = moments.max().dt.strftime("%Y-%m-%d %H:%M:%S")
    return made


def looked_up(rows, keys, numbers, categories, dates):
    """The columns of the one row that each key has."""
    rows = rows.set_axis(key_of(rows, keys))
    rows = rows[~rows.index.duplicated()]
    texts = lambda columns: {column: rows[column].astype(str).where(rows[column].notna()) for column in columns}
    return {column: pd.to_numeric(rows[column], errors="coerce") for column in numbers}, texts(categories), texts(dates)


def joined(frame, keys, name, made):
    """`frame` with the columns that its keys find; no row comes or goes."""
    place = key_of(frame, keys).where(frame[keys].notna().all(axis=1))
    found = {f"{name} {column}": place.map(values) for part in made for column, values in part.items()}
    found = pd.DataFrame(found, index=frame.index)
    if f"{name} count" in found:
        found[f"{name} count"] = found[f"{name} count"].fillna(0.0)
    return pd.concat([frame, found], axis=1)
