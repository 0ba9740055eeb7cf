import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
import lightgbm as lgb
df = pd.read_csv("./input/train.csv")
y = df["strength"]
X = df.drop(columns=["strength", "id"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)
train_set = lgb.Dataset(X_train, label=y_train)
valid_set = lgb.Dataset(X_val, label=y_val)
params = {"objective": "regression", "metric": "rmse", "verbosity": -1}
model = lgb.train(params, train_set, 500, valid_sets=[valid_set])
print("Final Validation Performance:", np.sqrt(np.mean((model.predict(X_val) - y_val) ** 2)))
