# name: shared_words
# title: First and last words of names
# why: The first or last word of a short text is often a family or a brand: how many rows share it and how they turned out
# columns: text
# rank: 15
# cost: 0.3

from sklearn.model_selection import KFold


def features_shared_words(frame, fit):
    """Count and shrunken mean target of rows with the same first or last word; training rows see other inner folds only."""
    found = {}
    target = np.asarray(y[fit.index], float)
    target = target[:, :1] if target.ndim == 2 else target[:, None]
    for column in TEXT:
        if fit[column].fillna("").astype(str).str.len().mean() > 80:
            continue  # prose, not a name
        for place in (0, -1):
            word = lambda values: values.fillna("").astype(str).str.findall(r"\w+").str[place].to_numpy(object)
            here, known = word(frame[column]), word(fit[column])
            counts = pd.Series(known).value_counts()
            if len(counts) == 0 or counts.max() < 2:
                continue
            own = 1.0 if frame is fit else 0.0
            side = "first" if place == 0 else "last"
            found[f"{column}_{side}_shared"] = pd.Series(here).map(counts).fillna(own).to_numpy(float) - own
            if KIND == "multiclass":
                continue
            values = np.full(len(frame), np.nan)
            parts = [(np.arange(len(fit)), np.arange(len(frame)))]
            if frame is fit:
                parts = KFold(min(10, len(fit)), shuffle=True, random_state=SEED).split(fit)
            for learn, fill in parts:
                by_word = pd.Series(target[learn, 0]).groupby(known[learn])
                smooth = (by_word.sum() + 2 * target[learn, 0].mean()) / (by_word.count() + 2)
                values[fill] = pd.Series(here[fill]).map(smooth)
            found[f"{column}_{side}_target"] = values
    return pd.DataFrame(found, index=frame.index)
