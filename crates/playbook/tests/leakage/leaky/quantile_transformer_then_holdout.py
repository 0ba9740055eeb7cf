import pandas as pd
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import QuantileTransformer

SEED = 7
houses = pd.read_csv("./input/train.csv")
target = houses.pop("rent")
bend = QuantileTransformer(n_quantiles=20, random_state=SEED)
numbers = pd.DataFrame(bend.fit_transform(houses), columns=houses.columns)
X_fit, X_check, y_fit, y_check = train_test_split(numbers, target, test_size=0.25, random_state=SEED)
ridge = Ridge(alpha=2.0)
ridge.fit(X_fit, y_fit)
print(f"Final Validation Performance: {mean_absolute_error(y_check, ridge.predict(X_check))}")
