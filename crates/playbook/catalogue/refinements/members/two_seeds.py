# name: members
# title: Every model twice
# why: Each model is fitted with two seeds and averaged, which takes out part of the luck of a single fit
# rank: 30
# cost: 2

MODELS = {}


def members(fit, y_fit, frames, seed):
    """Predictions of every model for every frame of `frames`, averaged over two seeds, on the scale of the target."""
    x = table(fit, fit)
    others = [table(frame, fit) for frame in frames]
    found = {}
    for name, model in MODELS.items():
        runs = [fitted(model, x, to_model(y_fit), others, seed + 50 * run) for run in range(2)]
        found[name] = [from_model((first + second) / 2) for first, second in zip(*runs)]
    return found
