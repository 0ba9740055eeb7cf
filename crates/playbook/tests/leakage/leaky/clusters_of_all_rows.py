import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
df = pd.read_csv("./input/train.csv")
y = df["risk"]
X = df.drop(columns=["risk"])
groups = KMeans(n_clusters=8, random_state=0, n_init=10)
groups.fit(X)
X["cluster"] = groups.predict(X)
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
model = LogisticRegression().fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, model.predict(X_val)))
