import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
df = pd.read_csv("./input/train.csv")
errors = []
for fit_index, held_index in KFold(5, shuffle=True, random_state=1).split(df):
    fit, held = df.iloc[fit_index].copy(), df.iloc[held_index].copy()
    rates = fit.groupby("shop")["sales"].mean()
    fit["rate"] = fit["shop"].map(rates)
    held["rate"] = held["shop"].map(rates).fillna(fit["sales"].mean())
    ridge = Ridge().fit(fit[["rate", "size"]], fit["sales"])
    errors.append(np.abs(ridge.predict(held[["rate", "size"]]) - held["sales"]).mean())
print("Final Validation Performance:", np.mean(errors))
