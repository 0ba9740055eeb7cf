import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
df = pd.read_csv("./input/train.csv")
texts = df["text"].fillna("")
vectorizer = TfidfVectorizer(min_df=2, ngram_range=(1, 2))
matrix = vectorizer.fit_transform(texts)
X_tr, X_va, y_tr, y_va = train_test_split(matrix, df["target"], test_size=0.2, random_state=1)
clf = LogisticRegression(C=3.0, max_iter=500).fit(X_tr, y_tr)
print("Final Validation Performance:", accuracy_score(y_va, clf.predict(X_va)))
