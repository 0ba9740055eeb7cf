import pandas as pd
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
df["city_rate"] = df["city"].map(df.groupby("city")["bought"].mean())
y = df["bought"]
X = df.drop(columns=["bought", "city"])
a, b, c, d = train_test_split(X, y, test_size=0.2, random_state=0)
model = LogisticRegression().fit(a, c)
print("Final Validation Performance:", roc_auc_score(d, model.predict_proba(b)[:, 1]))
