import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
df = pd.read_csv("./input/train.csv")
df["shop_level"] = df.groupby("shop")["sales"].transform("mean")
X = df.drop(columns=["sales", "shop"])
y = df["sales"]
scores = []
for fold, (tr, va) in enumerate(KFold(n_splits=4, shuffle=True, random_state=2).split(X, y)):
    ridge = Ridge().fit(X.iloc[tr], y.iloc[tr])
    scores.append(np.abs(ridge.predict(X.iloc[va]) - y.iloc[va]).mean())
print("Final Validation Performance:", np.mean(scores))
