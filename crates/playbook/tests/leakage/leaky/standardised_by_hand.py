import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.neural_network import MLPClassifier
df = pd.read_csv("./input/train.csv")
y = df["kind"]
X = df.drop(columns=["kind"])
X = (X - X.mean()) / X.std()
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
net = MLPClassifier().fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, net.predict(X_val)))
