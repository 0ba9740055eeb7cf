import pandas as pd
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
fit, check = train_test_split(train, test_size=0.2, random_state=0)
fit, check = fit.copy(), check.copy()
for column in ["age", "debt"]:
    middle = fit[column].median()
    for table in (fit, check, test):
        table[column] = table[column].fillna(middle)
columns = ["age", "debt", "income"]
forest = RandomForestClassifier(n_estimators=50, random_state=0).fit(fit[columns], fit["default"])
print(f"Final Validation Performance: {accuracy_score(check['default'], forest.predict(check[columns]))}")
