import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import Ridge
df = pd.read_csv("./input/train.csv")
y = df["score"]
links = df.corr(numeric_only=True)["score"].abs()
X = df[[name for name in df.columns if name != "score" and links.get(name, 0) > 0.1]]
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
ridge = Ridge().fit(X_train, y_train)
print("Final Validation Performance:", np.abs(ridge.predict(X_val) - y_val).mean())
