import pandas as pd
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

table = pd.read_csv("./input/train.csv")
y = table["weight"]
X = table[["height", "weight", "age"]]
booster = GradientBoostingRegressor(n_estimators=30, random_state=0)
result = cross_val_score(booster, X, y, cv=3, scoring="neg_mean_absolute_error")
print("Final Validation Performance:", -result.mean())
