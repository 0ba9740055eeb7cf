"""Writes the digits that come with scikit-learn as a task: train, test, sample submission."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

folder = Path(sys.argv[1])
digits = load_digits(as_frame=True).frame
digits["digit"] = digits.pop("target")
digits = digits.sample(frac=1.0, random_state=0).reset_index(drop=True)
digits.insert(0, "id", np.arange(len(digits)))

train, test = digits[:1000], digits[1000:]
folder.mkdir(parents=True, exist_ok=True)
train.to_csv(folder / "train.csv", index=False)
test.drop(columns="digit").to_csv(folder / "test.csv", index=False)
sample = pd.DataFrame({"id": test["id"], **{str(digit): 0.1 for digit in range(10)}})
sample.to_csv(folder / "sample_submission.csv", index=False)
# For whoever wants to know how good the submission is. The agents never see it.
test[["id", "digit"]].to_csv(folder.parent / "answers.csv", index=False)
