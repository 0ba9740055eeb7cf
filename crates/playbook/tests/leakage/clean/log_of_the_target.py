import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import GradientBoostingRegressor
df = pd.read_csv("./input/train.csv")
df["log_price"] = np.log1p(df["price"])
y = df["log_price"]
X = df.drop(columns=["price", "log_price", "id"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
model = GradientBoostingRegressor()
model.fit(X_train, y_train)
print("Final Validation Performance:", np.sqrt(np.mean((model.predict(X_val) - y_val) ** 2)))
