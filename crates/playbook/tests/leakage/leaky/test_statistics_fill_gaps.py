import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import ExtraTreesClassifier
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
everything = pd.concat([train, test], ignore_index=True)
middle = everything["income"].median()
train["income"] = train["income"].fillna(middle)
X = train[["income", "debt", "age"]]
y = train["default"]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
trees = ExtraTreesClassifier(n_estimators=300).fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, trees.predict(X_val)))
