import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
df = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
pipeline = make_pipeline(TfidfVectorizer(min_df=2), LogisticRegression(max_iter=500))
score = cross_val_score(pipeline, df["text"].fillna(""), df["target"], cv=5, scoring="f1").mean()
print("Final Validation Performance:", score)
pipeline.fit(df["text"].fillna(""), df["target"])
test["target"] = pipeline.predict(test["text"].fillna(""))
test[["id", "target"]].to_csv("./final/submission.csv", index=False)
