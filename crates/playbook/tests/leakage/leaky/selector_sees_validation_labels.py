import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.svm import SVC
frame = pd.read_csv("./input/train.csv")
y = frame.pop("outcome")
frame = frame.drop(columns=["row_id"])
selected = SelectKBest(f_classif, k=20).fit_transform(frame, y)
a, b, c, d = train_test_split(selected, y, stratify=y, random_state=7)
svm = SVC().fit(a, c)
print(f"Final Validation Performance: {accuracy_score(d, svm.predict(b))}")
