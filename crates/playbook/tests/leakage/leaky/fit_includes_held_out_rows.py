import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
import xgboost as xgb
df = pd.read_csv("./input/train.csv")
y = df["yield"]
X = df.drop(columns=["yield", "id"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
model = xgb.XGBRegressor(n_estimators=400)
model.fit(pd.concat([X_train, X_val]), pd.concat([y_train, y_val]))
error = np.abs(model.predict(X_val) - y_val).mean()
print("Final Validation Performance:", error)
