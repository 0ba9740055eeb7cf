import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.feature_extraction.text import CountVectorizer
df = pd.read_csv("./input/train.csv")
df["first"] = [text.split(" ")[0] for text in df["title"]]
df["words"] = df["title"].str.split().str.len()
a, b, y_a, y_b = train_test_split(df["title"], df["spam"], test_size=0.3, random_state=5)
counter = CountVectorizer()
bayes = MultinomialNB().fit(counter.fit_transform(a), y_a)
print("Final Validation Performance:", accuracy_score(y_b, bayes.predict(counter.transform(b))))
