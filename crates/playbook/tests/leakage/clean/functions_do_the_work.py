import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.linear_model import LogisticRegression

def prepare(fit, others):
    scaler = StandardScaler()
    scaler.fit(fit)
    return [scaler.transform(table) for table in [fit, *others]]

def main():
    df = pd.read_csv("./input/train.csv")
    test = pd.read_csv("./input/test.csv")
    y = df.pop("label")
    X_train, X_val, y_train, y_val = train_test_split(df, y, test_size=0.2, random_state=0)
    a, b, c = prepare(X_train, [X_val, test])
    model = LogisticRegression().fit(a, y_train)
    print("Final Validation Performance:", accuracy_score(y_val, model.predict(b)))

main()
