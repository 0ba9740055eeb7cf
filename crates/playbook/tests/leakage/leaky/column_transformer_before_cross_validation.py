import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler
df = pd.read_csv("./input/train.csv")
y = df["left"]
X = df.drop(columns=["left"])
prepare = ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["team"])])
table = prepare.fit_transform(X)
scores = cross_val_score(LogisticRegression(), table, y, cv=5)
print("Final Validation Performance:", scores.mean())
