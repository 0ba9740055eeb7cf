# name: category_pairs
# title: Pairs of categories
# why: Two categories together can mean more than each alone: cross the ones with few values
# columns: categorical
# rank: 26
# cost: 0.4


def features_category_pairs(frame, fit):
    columns = [column for column in CATEGORICAL if 2 <= fit[column].nunique() <= 12][:6]
    found = {}
    for i, first in enumerate(columns):
        for second in columns[i + 1:]:
            here = frame[first].astype(str) + " & " + frame[second].astype(str)
            known = fit[first].astype(str) + " & " + fit[second].astype(str)
            found[f"{first} & {second}"] = pd.Series(category(here, known, 5), index=frame.index)
    return pd.DataFrame(found, index=frame.index)
