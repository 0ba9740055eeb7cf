import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import HuberRegressor
df = pd.read_csv("./input/train.csv")
df = df[df["area"] < 4000].reset_index(drop=True)
df["age"] = df["sold"] - df["built"]
df["garage"] = df["garage"].fillna(0)
y = np.log1p(df["price"])
X = df[["area", "age", "garage"]]
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
model = HuberRegressor().fit(X_train, y_train)
print("Final Validation Performance:", np.sqrt(np.mean((model.predict(X_val) - y_val) ** 2)))
