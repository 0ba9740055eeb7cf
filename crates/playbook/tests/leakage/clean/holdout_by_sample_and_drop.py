import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import PowerTransformer
from sklearn.linear_model import Lasso
df = pd.read_csv("./input/train.csv")
fit_part = df.sample(frac=0.8, random_state=3)
holdout = df.drop(fit_part.index)
columns = ["a", "b", "c"]
power = PowerTransformer()
lasso = Lasso(alpha=0.01).fit(power.fit_transform(fit_part[columns]), fit_part["y"])
print("Final Validation Performance:", np.abs(lasso.predict(power.transform(holdout[columns])) - holdout["y"]).mean())
