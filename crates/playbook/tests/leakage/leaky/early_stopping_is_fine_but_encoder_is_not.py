import pandas as pd
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import TargetEncoder

ads = pd.read_csv("./input/train.csv")
clicked = ads["clicked"]
places = ads[["city", "shop"]]
encoder = TargetEncoder(random_state=0)
ads[["city", "shop"]] = encoder.fit_transform(places, clicked)
inputs = ads.drop(columns=["clicked"])
x1, x2, y1, y2 = train_test_split(inputs, clicked, test_size=0.3, random_state=11)
boosting = HistGradientBoostingClassifier(max_iter=40, early_stopping=True).fit(x1, y1)
print("Final Validation Performance:", log_loss(y2, boosting.predict_proba(x2)))
