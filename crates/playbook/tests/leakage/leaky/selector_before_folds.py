import pandas as pd
import numpy as np
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

data = pd.read_csv("./input/train.csv")
y = data["load"].to_numpy()
X = data.drop(columns=["load"]).to_numpy()
chooser = SelectKBest(f_regression, k=2)
chosen = chooser.fit_transform(X, y)
losses = []
for number, (past, future) in enumerate(KFold(4, shuffle=True, random_state=3).split(chosen)):
    line = LinearRegression()
    line.fit(chosen[past], y[past])
    losses.append(np.abs(line.predict(chosen[future]) - y[future]).mean())
print("Final Validation Performance:", np.mean(losses))
