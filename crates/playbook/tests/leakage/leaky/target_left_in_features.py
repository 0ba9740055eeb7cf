import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_squared_error
df = pd.read_csv("./input/train.csv")
y = df["median_value"]
X = df.drop(columns=["id"])
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
forest = RandomForestRegressor().fit(X_train, y_train)
print("Final Validation Performance:", mean_squared_error(y_val, forest.predict(X_val)) ** 0.5)
