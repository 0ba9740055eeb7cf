# name: deviations
# title: Distance from what is usual in the category
# why: A number means more next to its category: the difference from the category's mean and its rank in it
# columns: categorical
# rank: 22
# cost: 0.3


def features_deviations(frame, fit):
    keys = [column for column in CATEGORICAL if 2 <= fit[column].nunique() <= 60]
    keys = sorted(keys, key=lambda column: -fit[column].nunique())[:4]
    numbers = sorted((column for column in NUMERIC if fit[column].nunique() > 10), key=lambda column: -fit[column].nunique())[:6]
    found = {}
    for key in keys:
        known, here = fit[key].astype(str), frame[key].astype(str)
        for number in numbers:
            values = pd.to_numeric(fit[number], errors="coerce").astype(float)
            means = values.groupby(known).mean()
            found[f"{number}_against_{key}"] = pd.to_numeric(frame[number], errors="coerce").astype(float) - here.map(means)
    return pd.DataFrame(found, index=frame.index)
