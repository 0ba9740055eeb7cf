import pandas as pd
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

df = pd.read_csv("./input/train.csv")
y = df["ok"]
X = df.drop(columns=["ok"])
scaler = StandardScaler()
scaler.fit(train_test_split(X, test_size=0.2, random_state=5)[0])
X = scaler.transform(X)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=5)
model = LogisticRegression().fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, model.predict(X_val)))
