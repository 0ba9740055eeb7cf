import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import LabelEncoder
import lightgbm as lgb
df = pd.read_csv("./input/train.csv")
y = LabelEncoder().fit_transform(df["kind"])
X = df.drop(columns=["kind", "id"])
for column in X.select_dtypes("object"):
    X[column] = X[column].astype("category")
X_train, X_val, y_train, y_val = train_test_split(X, y, stratify=y, random_state=0)
model = lgb.LGBMClassifier()
model.fit(X_train, y_train, eval_set=[(X_val, y_val)])
print("Final Validation Performance:", accuracy_score(y_val, model.predict(X_val)))
