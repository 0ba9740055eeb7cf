import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
X = train.drop(columns=["id", "label"])
y = train["label"]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)
scaler = StandardScaler().fit(X_train)
model = LogisticRegression().fit(scaler.transform(X_train), y_train)
print("Final Validation Performance:", accuracy_score(y_val, model.predict(scaler.transform(X_val))))
scaler = StandardScaler()
full = scaler.fit_transform(X)
model = LogisticRegression().fit(full, y)
answer = model.predict(scaler.transform(test.drop(columns=["id"])))
pd.DataFrame({"id": test["id"], "label": answer}).to_csv("./final/submission.csv", index=False)
