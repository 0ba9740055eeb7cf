import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import RobustScaler
df = pd.read_csv("./input/train.csv").sample(frac=1.0, random_state=0)
y = df["ok"].values
X = df.drop(columns=["ok"]).values
X = RobustScaler().fit_transform(X)
cut = int(len(X) * 0.8)
X_train, X_val = X[:cut], X[cut:]
y_train, y_val = y[:cut], y[cut:]
model = SGDClassifier().fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, model.predict(X_val)))
