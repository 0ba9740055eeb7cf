import pandas as pd
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import cross_val_score

train = pd.read_csv("./input/train.csv")
visits = pd.read_csv("./input/test.csv")
train["rooms_total"] = train[["rooms", "baths"]].sum(axis=1)
train["largest"] = train[["rooms", "baths"]].max(axis=1)
y = np.log1p(train["price"])
X = train.drop(columns=["price"])
print("rows for later:", len(visits))
scores = cross_val_score(ExtraTreesRegressor(n_estimators=30, random_state=0), X, y, cv=3, scoring="r2")
print("Final Validation Performance:", scores.mean())
