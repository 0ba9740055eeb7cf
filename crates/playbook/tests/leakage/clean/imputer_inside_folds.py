import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
data = pd.read_csv("input/train.csv")
target = data["price"].values
features = data.drop(["price"], axis=1).select_dtypes("number").values
errors = []
for fit_rows, valid_rows in KFold(5, shuffle=True, random_state=0).split(features):
    imputer = SimpleImputer(strategy="median")
    a = imputer.fit_transform(features[fit_rows])
    b = imputer.transform(features[valid_rows])
    forest = RandomForestRegressor(random_state=0)
    forest.fit(a, target[fit_rows])
    errors.append(np.mean((forest.predict(b) - target[valid_rows]) ** 2))
print(f"Final Validation Performance: {np.sqrt(np.mean(errors))}")
