import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
df = pd.read_csv("./input/train.csv")
X = df.drop(columns=["y"]).to_numpy()
y = df["y"].to_numpy()
results = []
for train_index, val_index in StratifiedKFold(5).split(X, y):
    model = LogisticRegression()
    model.fit(X, y)
    results.append(accuracy_score(y[val_index], model.predict(X[val_index])))
print("Final Validation Performance:", np.mean(results))
