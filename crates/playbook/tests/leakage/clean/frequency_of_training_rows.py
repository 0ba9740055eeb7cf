import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from catboost import CatBoostClassifier
df = pd.read_csv("./input/train.csv")
fit, held = train_test_split(df, test_size=0.2, random_state=9, stratify=df["won"])
counts = fit["team"].value_counts()
for part in (fit, held):
    part["team_count"] = part["team"].map(counts).fillna(0)
X, Z = fit.drop(columns=["won"]), held.drop(columns=["won"])
model = CatBoostClassifier(verbose=0, cat_features=["team"]).fit(X, fit["won"])
print("Final Validation Performance:", accuracy_score(held["won"], model.predict(Z)))
