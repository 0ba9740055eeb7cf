def table(frame, fit):
    """The table without gaps and infinities: the middle of the training part takes their place."""
    made, known = unguarded_table(frame, fit), unguarded_table(fit, fit)
    for column in made.columns:
        if made[column].dtype == object:
            made[column] = made[column].fillna("").astype(str)
            continue
        if isinstance(made[column].dtype, pd.CategoricalDtype):
            made[column], known[column] = made[column].cat.codes, known[column].cat.codes
        numbers = pd.to_numeric(known[column], errors="coerce").replace([np.inf, -np.inf], np.nan)
        middle = numbers.median() if numbers.notna().any() else 0.0
        values = pd.to_numeric(made[column], errors="coerce").replace([np.inf, -np.inf], np.nan)
        made[column] = values.fillna(middle).astype(float)
    return made
