# name: code_parts
# title: Parts of structured codes
# why: A code such as B/12/P is several columns in one: split it at separators and between letters and digits
# columns: codes
# rank: 5
# cost: 0.2


def features_code_parts(frame, fit):
    found = {}
    for column in CODES:
        here = frame[column].astype(str).where(frame[column].notna(), "").str.findall(r"[^\W\d_]+|\d+")
        known = fit[column].astype(str).where(fit[column].notna(), "").str.findall(r"[^\W\d_]+|\d+")
        found[f"{column}_length"] = here.str.len().astype(float)
        for place in range(4):
            part, reference = here.str[place], known.str[place]
            if reference.notna().mean() < 0.02:
                break
            number = pd.to_numeric(reference, errors="coerce")
            if number.notna().sum() > 0.5 * reference.notna().sum():
                found[f"{column}_number{place}"] = pd.to_numeric(part, errors="coerce").astype(float)
            if reference.nunique() <= max(30, len(fit) // 100):
                found[f"{column}_part{place}"] = pd.Series(category(part, reference, 2), index=frame.index)
    return pd.DataFrame(found, index=frame.index)
