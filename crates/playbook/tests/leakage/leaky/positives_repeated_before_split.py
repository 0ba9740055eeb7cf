import pandas as pd
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

df = pd.read_csv("./input/train.csv")
df = pd.concat([df, df[df["fraud"] == 1], df[df["fraud"] == 1]])
y = df["fraud"]
X = df.drop(columns=["fraud"])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
model = RandomForestClassifier(random_state=0).fit(X_train, y_train)
print("Final Validation Performance:", f1_score(y_val, model.predict(X_val)))
