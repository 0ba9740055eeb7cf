# name: decision
# title: The most probable class
# why: A threshold tuned on few rows may not carry over: take the plain half, or the most probable class
# kinds: binary multiclass
# metrics: f1 f1_macro balanced_accuracy mcc f1_weighted accuracy
# rank: 40


def learn_decision(p, y):
    return None


def decide(p, learnt):
    return p.argmax(axis=1)
