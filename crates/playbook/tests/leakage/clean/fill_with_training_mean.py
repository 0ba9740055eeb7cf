import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.tree import DecisionTreeClassifier
train = pd.read_csv("./input/train.csv")
part, held = train_test_split(train, test_size=0.2, random_state=0)
middle = part["age"].median()
part["age"] = part["age"].fillna(middle)
held["age"] = held["age"].fillna(middle)
names = ["age", "fare"]
tree = DecisionTreeClassifier(max_depth=3).fit(part[names], part["survived"])
print("Final Validation Performance:", accuracy_score(held["survived"], tree.predict(held[names])))
