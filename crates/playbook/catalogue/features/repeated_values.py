# name: repeated_values
# title: How often each number occurs
# why: In generated or measured data the same number comes back: how common a value is can tell its origin
# columns: numeric
# rank: 34
# cost: 0.1


def features_repeated_values(frame, fit):
    found = {}
    own = 1.0 if frame is fit else 0.0  # a training row does not count itself
    for column in NUMERIC:
        counts = fit[column].value_counts()
        if 10 < len(counts) < 0.7 * len(fit):
            found[f"{column}_repeats"] = np.log1p((frame[column].map(counts).fillna(own) - own).astype(float))
    return pd.DataFrame(found, index=frame.index)
