# name: ratios
# title: Ratios of columns that move together
# why: Two columns that grow together hide their ratio (rooms per household): divide the most correlated pairs
# columns: numeric
# rank: 11
# cost: 0.2


def features_ratios(frame, fit):
    known = fit[NUMERIC].apply(pd.to_numeric, errors="coerce").astype(float)
    columns = [column for column in NUMERIC if known[column].min() >= 0 and known[column].nunique() > 10][:40]
    if len(columns) < 2:
        return pd.DataFrame(index=frame.index)
    together = known[columns].rank().corr().abs().to_numpy()
    pairs = [(together[i, j], i, j) for i in range(len(columns)) for j in range(i) if together[i, j] > 0.4]
    pairs = sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:15]
    values = frame[columns].apply(pd.to_numeric, errors="coerce").astype(float)
    found = {}
    for _, i, j in pairs:
        over, under = values[columns[i]], values[columns[j]]
        found[f"{columns[i]}_per_{columns[j]}"] = over / under.where(under > 0)
    return pd.DataFrame(found, index=frame.index)
