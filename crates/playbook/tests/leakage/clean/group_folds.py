import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold
from sklearn.ensemble import ExtraTreesClassifier
df = pd.read_csv("./input/train.csv")
groups = df["patient"]
y = df["ill"].to_numpy()
X = df.drop(columns=["ill", "patient"]).to_numpy()
scores = []
for tr, va in GroupKFold(5).split(X, y, groups):
    trees = ExtraTreesClassifier(300, random_state=0)
    trees.fit(X[tr], y[tr])
    scores.append(accuracy_score(y[va], trees.predict(X[va])))
print("Final Validation Performance:", float(np.mean(scores)))
