import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
train = pd.read_csv("./input/train.csv")
X = train.drop(columns=["id", "label"])
y = train["label"]
scaler = StandardScaler()
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)
X_train = scaler.fit_transform(X_train)
X_val = scaler.transform(X_val)
model = LogisticRegression(max_iter=1000)
model.fit(X_train, y_train)
print(f"Final Validation Performance: {accuracy_score(y_val, model.predict(X_val))}")
