import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import OrdinalEncoder
from catboost import CatBoostClassifier
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
cats = ["shop", "brand"]
encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
encoder.fit(pd.concat([train[cats], test[cats]]))
train[cats] = encoder.transform(train[cats])
y = train["bought"]
X = train.drop(columns=["bought"])
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=4)
model = CatBoostClassifier(verbose=0).fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, model.predict(X_val)))
