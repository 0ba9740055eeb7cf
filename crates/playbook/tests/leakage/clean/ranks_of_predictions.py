import pandas as pd
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
y = df["kind"]
X = df.drop(columns=["kind"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
first = pd.Series(LogisticRegression().fit(X_train, y_train).predict_proba(X_val)[:, 1]).rank()
second = pd.Series(LogisticRegression(C=0.1).fit(X_train, y_train).predict_proba(X_val)[:, 1]).rank()
print("Final Validation Performance:", roc_auc_score(y_val, first + second))
