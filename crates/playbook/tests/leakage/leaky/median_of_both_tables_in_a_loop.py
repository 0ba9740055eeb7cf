import pandas as pd
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
both = pd.concat([train, test], axis=0)
for column in ["age", "debt"]:
    train[column] = train[column].fillna(both[column].median())
    test[column] = test[column].fillna(both[column].median())
X = train.drop(columns=["default"])
y = train["default"]
scores = cross_val_score(RandomForestClassifier(n_estimators=50, random_state=0), X, y, cv=3)
print(f"Final Validation Performance: {scores.mean():.5f}")
