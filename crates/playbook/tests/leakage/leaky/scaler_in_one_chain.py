import pandas as pd
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

df = pd.read_csv("./input/train.csv")
y = df["label"]
X = df.drop(columns=["label"])
scaled = StandardScaler().fit(X).transform(X)
scores = cross_val_score(LogisticRegression(), scaled, y, cv=3)
print("Final Validation Performance:", scores.mean())
