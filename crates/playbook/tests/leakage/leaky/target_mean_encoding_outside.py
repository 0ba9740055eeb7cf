import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
import lightgbm as lgb
from sklearn.metrics import roc_auc_score
df = pd.read_csv("./input/train.csv")
rates = df.groupby("city")["clicked"].mean()
df["city_rate"] = df["city"].map(rates)
X = df[["city_rate", "hour", "age"]]
y = df["clicked"]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=0)
model = lgb.LGBMClassifier(n_estimators=200)
model.fit(X_train, y_train)
print(f"Final Validation Performance: {roc_auc_score(y_val, model.predict_proba(X_val)[:, 1])}")
