# name: submission
# title: Predict the test rows
# why: The same models fitted on all training rows with several seeds, combined and decided as validation found best

SEEDS = 3 if len(train) < 12000 else 2
FIT_ROWS = None

runs = [members(train, y, [test], SEED + 1000 + run) for run in range(SEEDS)]
predictions = {name: np.mean([run[name][0] for run in runs], axis=0) for name in runs[0]}
answer = decide(combine(tempered(predictions, heats), weights), learnt)

# Rows in the order of the test file; columns as in the sample submission where there is one.
submission = pd.DataFrame({ID: test[ID]} if ID else {}, index=test.index)
names = [column for column in SAMPLE.columns if column != ID] if SAMPLE is not None else list(TARGETS)
if KIND in ("binary", "multiclass") and np.ndim(answer) == 2:
    if len(names) == 1 and len(CLASSES) == 2:
        submission[names[0]] = answer[:, 1]
    else:
        # One column per class: the columns of the sample name the classes.
        place = {str(label): k for k, label in enumerate(CLASSES)}
        for column in names if SAMPLE is not None else CLASSES:
            submission[column] = answer[:, place[str(column)]] if str(column) in place else 0.0
elif KIND in ("binary", "multiclass"):
    submission[names[0]] = np.asarray(CLASSES)[answer.astype(int)]
elif KIND == "multilabel":
    for k, column in enumerate(TARGETS):
        submission[column] = answer[:, k]
else:
    submission[names[0]] = answer
if SAMPLE is not None:
    submission = submission[list(SAMPLE.columns)]
os.makedirs("./final", exist_ok=True)
submission.to_csv("./final/submission.csv", index=False)
print("rows written:", len(submission))
