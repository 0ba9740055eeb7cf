import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
scaler = StandardScaler()
X = scaler.fit_transform(train.drop(columns=["id", "y"]))
model = LogisticRegression().fit(X, train["y"])
test["y"] = model.predict(scaler.transform(test.drop(columns=["id"])))
test[["id", "y"]].to_csv("./final/submission.csv", index=False)
