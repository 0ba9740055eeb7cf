import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler
train = pd.read_csv("./input/train.csv")
X = train.drop(columns=["class"])
y = train["class"]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
scaler = MinMaxScaler()
X_train = scaler.fit_transform(X_train)
X_val = scaler.fit_transform(X_val)
near = KNeighborsClassifier(5).fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, near.predict(X_val)))
