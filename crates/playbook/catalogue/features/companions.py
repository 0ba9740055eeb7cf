# name: companions
# title: Rows that share a code
# why: Rows with the same code, or the same first part of it, belong together: how many there are and what they look like
# columns: codes
# rank: 17
# cost: 0.5


def features_companions(frame, fit):
    """Counts and mean values of the OTHER training rows with the same key (a row never describes itself)."""
    found = {}
    for column in CODES:
        keys = {"": lambda values: values.astype(str).where(values.notna())}
        keys["_start"] = lambda values: values.astype(str).where(values.notna()).str.extract(r"^([^\W_]+)[\W_]", expand=False)
        for ending, key_of in keys.items():
            here, known = key_of(frame[column]), key_of(fit[column])
            counts = known.value_counts()
            if len(counts) == 0 or counts.max() < 2 or len(counts) < 0.05 * len(fit):
                continue
            own = 1.0 if frame is fit else 0.0
            size = here.map(counts).astype(float).fillna(own) - own
            found[f"{column}{ending}_companions"] = size.where(here.notna())
            for number in NUMERIC[:12]:
                values = pd.to_numeric(fit[number], errors="coerce").astype(float)
                sums, sizes = values.groupby(known).sum(), values.groupby(known).count()
                total, count = here.map(sums).fillna(0.0), here.map(sizes).fillna(0.0)
                if frame is fit:
                    total, count = total - values.fillna(0.0), count - values.notna()
                found[f"{column}{ending}_mean_{number}"] = (total / count.where(count > 0)).astype(float)
    return pd.DataFrame(found, index=frame.index)
