import pandas as pd
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
df["size_rank"] = df["size"].rank(pct=True)
y = df["price"]
X = df[["size_rank", "rooms"]]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
model = LinearRegression().fit(X_train, y_train)
print("Final Validation Performance:", np.sqrt(np.mean((model.predict(X_val) - y_val) ** 2)))
