import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer
from sklearn.svm import SVR
df = pd.read_csv("./input/train.csv")
y = df["speed"]
X = df.drop(columns=["speed"])
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
search = GridSearchCV(Pipeline([("q", QuantileTransformer()), ("m", SVR())]), {"m__C": [1, 10]}, cv=3)
search.fit(X_train, y_train)
print("Final Validation Performance:", np.abs(search.predict(X_val) - y_val).mean())
