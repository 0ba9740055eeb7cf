import pandas as pd
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
fit, check = train_test_split(df, test_size=0.2, random_state=0)
fit = pd.concat([fit, fit[fit["fraud"] == 1]])
model = RandomForestClassifier(random_state=0).fit(fit.drop(columns=["fraud"]), fit["fraud"])
print("Final Validation Performance:", f1_score(check["fraud"], model.predict(check.drop(columns=["fraud"]))))
