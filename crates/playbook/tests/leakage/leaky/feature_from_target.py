import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import LinearRegression
df = pd.read_csv("./input/train.csv")
df["price_per_area"] = df["price"] / df["area"]
y = df["price"]
X = df.drop(columns=["price"])
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
line = LinearRegression().fit(X_train, y_train)
print("Final Validation Performance:", np.sqrt(np.mean((line.predict(X_val) - y_val) ** 2)))
