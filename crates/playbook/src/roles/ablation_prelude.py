# A study fits the solution several times: a part of the rows and three folds are enough to compare.
LIMIT = 3000
if len(train) > LIMIT:
    rows = np.sort(np.random.RandomState(SEED).permutation(len(train))[:LIMIT])
    train, y = train.iloc[rows].reset_index(drop=True), y[rows]
    groups = None if groups is None else groups[rows]


def silent(*words, **options):
    """Takes the place of print within variants."""
