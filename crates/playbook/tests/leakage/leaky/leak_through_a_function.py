import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

def evaluate(X, y):
    scores = []
    for fit, held in KFold(5).split(X):
        model = LogisticRegression().fit(X[fit], y[fit])
        scores.append(accuracy_score(y[held], model.predict(X[held])))
    return np.mean(scores)

df = pd.read_csv("./input/train.csv")
labels = df["label"].to_numpy()
table = StandardScaler().fit_transform(df.drop(columns=["label"]))
print("Final Validation Performance:", evaluate(table, labels))
