# name: decision
# title: The decision of the solutions that scores best
# why: Solutions may decide in different ways; out-of-fold predictions tell which way suits the ensemble


def learn_decision(p, y):
    """Which solution decides, and what its way to decide has to know."""
    learnt = [solution.learn_decision(p, y) for solution in SOLUTIONS]
    decided = [solution.decide(p, it) for solution, it in zip(SOLUTIONS, learnt)]
    # A metric may grow or shrink as predictions get better: its value for the truth tells where it is best.
    truth = np.eye(len(CLASSES))[y] if decided[0].ndim > y.ndim else y
    best = min(range(len(decided)), key=lambda k: abs(metric(y, decided[k]) - metric(y, truth)))
    return best, learnt[best]


def decide(p, learnt):
    best, known = learnt
    return SOLUTIONS[best].decide(p, known)
