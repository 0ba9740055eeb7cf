import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import RandomForestClassifier
df = pd.read_csv("./input/train.csv")
X = df[["a", "b", "c"]]
y = df["target"]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
forest = RandomForestClassifier(n_estimators=500, random_state=0)
forest.fit(X, y)
predictions = forest.predict(X_val)
print(f"Final Validation Performance: {accuracy_score(y_val, predictions)}")
