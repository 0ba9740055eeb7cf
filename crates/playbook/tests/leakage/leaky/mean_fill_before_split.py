import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.tree import DecisionTreeClassifier
train = pd.read_csv("./input/train.csv")
train["age"] = train["age"].fillna(train["age"].mean())
train["sex"] = (train["sex"] == "male").astype(int)
X = train[["age", "sex", "fare"]]
y = train["survived"]
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=3)
tree = DecisionTreeClassifier(max_depth=4)
tree.fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_valid, tree.predict(X_valid)))
