import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
y = train["species"]
both = pd.concat([train.drop(columns=["species"]), test])
pca = PCA(n_components=10, random_state=0)
reduced = pca.fit_transform(both)
X = reduced[:len(train)]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
model = LogisticRegression().fit(X_train, y_train)
print("Final Validation Performance:", accuracy_score(y_val, model.predict(X_val)))
