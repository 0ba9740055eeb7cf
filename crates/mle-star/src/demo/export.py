"""Writes the tumours that come with scikit-learn as a task: train, test, sample submission."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

folder = Path(sys.argv[1])
tumours = load_breast_cancer(as_frame=True).frame
tumours["malignant"] = 1 - tumours.pop("target")
tumours = tumours.sample(frac=1.0, random_state=0).reset_index(drop=True)
tumours.insert(0, "id", np.arange(len(tumours)))

cut = int(len(tumours) * 0.7)
train, test = tumours[:cut], tumours[cut:]
folder.mkdir(parents=True, exist_ok=True)
train.to_csv(folder / "train.csv", index=False)
test.drop(columns="malignant").to_csv(folder / "test.csv", index=False)
sample = pd.DataFrame({"id": test["id"], "malignant": 0.5})
sample.to_csv(folder / "sample_submission.csv", index=False)
# For whoever wants to know how good the submission is. The agents never see it.
test[["id", "malignant"]].to_csv(folder.parent / "answers.csv", index=False)
