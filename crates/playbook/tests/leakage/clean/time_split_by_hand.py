import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
df = pd.read_csv("./input/train.csv").sort_values("date")
train_part = df[df["date"] < "2021-01-01"]
valid_part = df[df["date"] >= "2021-01-01"]
columns = ["temperature", "wind"]
scaler = StandardScaler().fit(train_part[columns])
ridge = Ridge().fit(scaler.transform(train_part[columns]), train_part["demand"])
error = np.abs(ridge.predict(scaler.transform(valid_part[columns])) - valid_part["demand"]).mean()
print("Final Validation Performance:", error)
