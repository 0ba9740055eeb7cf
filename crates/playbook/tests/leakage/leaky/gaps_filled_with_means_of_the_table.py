import pandas as pd
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
df = df.fillna(df.mean(numeric_only=True))
y = df["price"]
X = df.drop(columns=["price"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
model = Ridge().fit(X_train, y_train)
print("Final Validation Performance:", np.abs(model.predict(X_val) - y_val).mean())
