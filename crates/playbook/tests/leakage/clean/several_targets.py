import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
train = pd.read_csv("./input/train.csv")
targets = ["scratch", "stain", "bump"]
X = train.drop(columns=targets + ["id"])
Y = train[targets]
X_train, X_val, Y_train, Y_val = train_test_split(X, Y, test_size=0.2, random_state=0)
model = MultiOutputClassifier(LogisticRegression()).fit(X_train, Y_train)
parts = [p[:, 1] for p in model.predict_proba(X_val)]
print("Final Validation Performance:", np.mean([roc_auc_score(Y_val.iloc[:, k], p) for k, p in enumerate(parts)]))
