# name: members
# title: All members of all solutions
# why: An ensemble script combines the models of every solution; a name is "solution:model"

from types import SimpleNamespace

SOLUTIONS = []


def members(fit, y_fit, frames, seed):
    """Predictions of every model of every solution for every frame of `frames`."""
    found = {}
    for number, solution in enumerate(SOLUTIONS, start=1):
        for name, predictions in solution.members(fit, y_fit, frames, seed).items():
            found[f"{number}:{name}"] = predictions
    return found


def models_of(number, predictions):
    """The predictions of one solution's models, under the names by which the solution knows them."""
    start = f"{number}:"
    return {name.removeprefix(start): p for name, p in predictions.items() if name.startswith(start)}


def own_weights(oof, y):
    """How each solution weighs its own models."""
    return [solution.weigh(models_of(number, oof), y) for number, solution in enumerate(SOLUTIONS, start=1)]


def voices(predictions, weights):
    """What each solution says as a whole, blended in its own way."""
    spoken = zip(SOLUTIONS, weights)
    return {f"solution {number}": solution.combine(models_of(number, predictions), own) for number, (solution, own) in enumerate(spoken, start=1)}
