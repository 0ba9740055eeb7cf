import pandas as pd
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

people = pd.read_csv("./input/train.csv")
others = pd.read_csv("./input/test.csv")
y = people["left"]
X = people.drop(columns=["left"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=2)
scaler = StandardScaler().fit(X_train)
model = LogisticRegression(max_iter=500).fit(scaler.transform(X_train), y_train)
print("Final Validation Performance:", f1_score(y_val, model.predict(scaler.transform(X_val)), zero_division=0))
last_scaler = StandardScaler().fit(X)
last = LogisticRegression(max_iter=500).fit(last_scaler.transform(X), y)
answers = last.predict(last_scaler.transform(others[X.columns]))
