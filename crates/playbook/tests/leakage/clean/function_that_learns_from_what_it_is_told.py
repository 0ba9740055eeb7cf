import pandas as pd
import numpy as np
from sklearn.impute import KNNImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split


def prepare(fit, others):
    imputer = KNNImputer().fit(fit)
    return imputer.transform(fit), [imputer.transform(other) for other in others]


df = pd.read_csv("./input/train.csv")
y = df["price"]
X = df.drop(columns=["price"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
X_train, (X_val,) = prepare(X_train, [X_val])
model = Ridge().fit(X_train, y_train)
print("Final Validation Performance:", np.abs(model.predict(X_val) - y_val).mean())
