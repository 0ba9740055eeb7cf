# name: frequency
# title: How common each category is
# why: Rare values behave alike: replace each category by the number of training rows that have it
# columns: categorical
# rank: 18
# cost: 0.1


def features_frequency(frame, fit):
    found = {}
    for column in CATEGORICAL:
        if fit[column].nunique() > 5:
            counts = fit[column].astype(str).value_counts()
            found[f"{column}_count"] = frame[column].astype(str).map(counts).fillna(0).astype(float)
    return pd.DataFrame(found, index=frame.index)
