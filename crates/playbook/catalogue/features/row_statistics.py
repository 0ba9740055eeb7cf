# name: row_statistics
# title: Statistics across each row
# why: Many measurements of the same kind have a level, a spread and extremes of their own
# columns: numeric
# rank: 28
# cost: 0.1


def features_row_statistics(frame, fit):
    columns = [column for column in NUMERIC if fit[column].nunique() > 1]
    if len(columns) < 8:
        return pd.DataFrame(index=frame.index)
    known = fit[columns].apply(pd.to_numeric, errors="coerce").astype(float)
    values = frame[columns].apply(pd.to_numeric, errors="coerce").astype(float)
    values = (values - known.mean()) / known.std().replace(0, 1)
    found = {"row_mean": values.mean(axis=1), "row_spread": values.std(axis=1), "row_high": values.max(axis=1), "row_low": values.min(axis=1)}
    return pd.DataFrame(found, index=frame.index)
