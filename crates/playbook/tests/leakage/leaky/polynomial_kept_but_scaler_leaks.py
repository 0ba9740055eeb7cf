import pandas as pd
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

frame = pd.read_csv("./input/train.csv")
labels = frame["sick"]
rows = frame.drop(columns=["sick"])
rows = PolynomialFeatures(degree=2).fit_transform(rows)
rows = StandardScaler().fit_transform(rows)
a, b, ya, yb = train_test_split(rows, labels, stratify=labels)
judge = LogisticRegression(max_iter=2000).fit(a, ya)
print("Final Validation Performance:", roc_auc_score(yb, judge.predict_proba(b)[:, 1]))
