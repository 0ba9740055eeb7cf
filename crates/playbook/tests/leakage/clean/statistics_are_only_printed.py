import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import HistGradientBoostingRegressor
df = pd.read_csv("./input/train.csv")
print("mean price", df["price"].mean(), "rows", len(df))
print(df.groupby("town")["price"].mean().head())
y = df["price"]
X = df.drop(columns=["price", "town"])
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
model = HistGradientBoostingRegressor().fit(X_train, y_train)
baseline = np.full(len(y_val), y_train.mean())
print("baseline", np.abs(baseline - y_val).mean())
print("Final Validation Performance:", np.abs(model.predict(X_val) - y_val).mean())
