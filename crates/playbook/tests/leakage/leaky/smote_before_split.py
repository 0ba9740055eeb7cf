import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from imblearn.over_sampling import SMOTE
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import f1_score
data = pd.read_csv("./input/train.csv")
X, y = data.drop(columns="fraud"), data["fraud"]
X, y = SMOTE(random_state=0).fit_resample(X, y)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
booster = GradientBoostingClassifier().fit(X_train, y_train)
print("Final Validation Performance:", f1_score(y_test, booster.predict(X_test)))
