# name: totals
# title: Totals of amounts
# why: Columns that are amounts with many zeros often add up to something that matters: their sum, how many are zero, shares
# columns: numeric
# rank: 10
# cost: 0.1


def features_totals(frame, fit):
    known = fit[NUMERIC].apply(pd.to_numeric, errors="coerce").astype(float)
    amounts = [c for c in NUMERIC if known[c].min() == 0 and known[c].nunique() > 20 and (known[c] == 0).mean() > 0.05]
    if len(amounts) < 2:
        return pd.DataFrame(index=frame.index)
    values = frame[amounts].apply(pd.to_numeric, errors="coerce").astype(float)
    total = values.sum(axis=1)
    found = {"total": total, "total_log": np.log1p(total), "zeros": (values == 0).sum(axis=1).astype(float), "none": (total == 0).astype(float)}
    for column in amounts[:12]:
        found[f"{column}_share"] = values[column] / total.where(total > 0)
    return pd.DataFrame(found, index=frame.index)
