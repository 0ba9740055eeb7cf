# name: decision
# title: Cut points for ordered classes
# why: Weighted kappa rewards the right spread over the classes: move the cut points until it is highest
# kinds: regression
# metrics: qwk
# rank: 5


def learn_decision(p, y):
    """Cut points between the classes, moved one at a time over two rounds."""
    classes = np.unique(y)
    cuts = (classes[1:] + classes[:-1]) / 2
    best = metric(y, classes[np.searchsorted(cuts, p)])
    for _ in range(2):
        for k in range(len(cuts)):
            for step in np.linspace(-0.45, 0.45, 19):
                tried = cuts.copy()
                tried[k] = (classes[k] + classes[k + 1]) / 2 + step * (classes[k + 1] - classes[k])
                if np.all(np.diff(tried) > 0):
                    value = metric(y, classes[np.searchsorted(tried, p)])
                    if value > best:
                        cuts, best = tried, value
    return classes, cuts


def decide(p, learnt):
    classes, cuts = learnt
    return classes[np.searchsorted(cuts, p)]
