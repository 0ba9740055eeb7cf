import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
import xgboost as xgb
df = pd.read_csv("./input/train.csv")
df["family"] = df["siblings"] + df["parents"] + 1
df["spent"] = df[["food", "spa", "shop"]].sum(axis=1)
df["mean_spent"] = df[["food", "spa", "shop"]].mean(axis=1)
df["log_fare"] = np.log1p(df["fare"])
y = df["survived"]
X = df[["family", "spent", "mean_spent", "log_fare"]]
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
model = xgb.XGBClassifier().fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, model.predict(X_val)))
