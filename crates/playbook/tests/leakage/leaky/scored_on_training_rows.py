import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import RandomForestClassifier
df = pd.read_csv("./input/train.csv")
X = df[["x1", "x2", "x3"]]
y = df["label"]
model = RandomForestClassifier()
model.fit(X, y)
predictions = model.predict(X)
print(f"Final Validation Performance: {accuracy_score(y, predictions)}")
