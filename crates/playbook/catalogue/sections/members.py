# name: members
# title: The models of this solution
# why: Every model is fitted on the same table

MODELS = {}


def members(fit, y_fit, frames, seed):
    """Predictions of every model for every frame of `frames`, on the scale of the target."""
    x = table(fit, fit)
    others = [table(frame, fit) for frame in frames]
    found = {}
    for name, model in MODELS.items():
        found[name] = [from_model(p) for p in fitted(model, x, to_model(y_fit), others, seed)]
    return found
