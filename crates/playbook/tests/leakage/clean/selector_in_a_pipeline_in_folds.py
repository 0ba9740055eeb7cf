import pandas as pd
import numpy as np
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

data = pd.read_csv("./input/train.csv")
y = data["load"].to_numpy()
X = data.drop(columns=["load"]).to_numpy()
losses = []
for past, future in KFold(4, shuffle=True, random_state=3).split(X):
    line = make_pipeline(SelectKBest(f_regression, k=2), LinearRegression())
    line.fit(X[past], y[past])
    losses.append(np.abs(line.predict(X[future]) - y[future]).mean())
print("Final Validation Performance:", np.mean(losses))
