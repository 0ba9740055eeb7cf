# name: members
# title: All members of all solutions
# why: An ensemble script combines the models of every solution; a name is "solution:model"

SOLUTIONS = []


def members(fit, y_fit, frames, seed):
    """Predictions of every model of every solution for every frame of `frames`."""
    found = {}
    for number, solution in enumerate(SOLUTIONS, start=1):
        for name, predictions in solution(fit, y_fit, frames, seed).items():
            found[f"{number}:{name}"] = predictions
    return found
