# name: missing
# title: Missing values
# why: Whether a value is missing is information: a flag per column with gaps and the number of gaps per row
# rank: 20
# cost: 0.1


def features_missing(frame, fit):
    columns = [column for column in NUMERIC + CATEGORICAL + CODES + TEXT + DATES if column in fit and 0 < fit[column].isna().mean() < 1]
    found = pd.DataFrame(index=frame.index)
    if columns:
        found["missing_count"] = frame[columns].isna().sum(axis=1).astype(float)
    flags = {f"missing_{column}": frame[column].isna().astype(float) for column in columns if fit[column].isna().mean() > 0.01}
    return pd.concat([found, pd.DataFrame(flags, index=frame.index)], axis=1)
