import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import RandomForestClassifier
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
y = train["left"]
both = pd.concat([train.drop(columns=["left"]), test])
both = pd.get_dummies(both)
X, X_test = both[:len(train)], both[len(train):]
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
forest = RandomForestClassifier().fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, forest.predict(X_val)))
