import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score
import lightgbm as lgb
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import roc_auc_score
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
TARGET = "clicked"
features = [column for column in train.columns if column not in ("id", TARGET)]
oof = np.zeros(len(train))
answer = np.zeros(len(test))
folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=42)
for fold, (tr, va) in enumerate(folds.split(train, train[TARGET])):
    model = lgb.LGBMClassifier(n_estimators=500, learning_rate=0.03)
    model.fit(train[features].iloc[tr], train[TARGET].iloc[tr])
    oof[va] = model.predict_proba(train[features].iloc[va])[:, 1]
    answer += model.predict_proba(test[features])[:, 1] / 5
print("Final Validation Performance:", roc_auc_score(train[TARGET], oof))
