import pandas as pd
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
df["yesterday"] = df["rain"].shift(1).fillna(0)
y = df["demand"]
X = df.drop(columns=["demand"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, shuffle=False)
model = LinearRegression().fit(X_train, y_train)
print("Final Validation Performance:", np.abs(model.predict(X_val) - y_val).mean())
