# name: text_statistics
# title: Shape of the texts
# why: Length, capitals, digits, punctuation, links and mentions say something that single words do not
# columns: text
# rank: 6
# cost: 0.2


def features_text_statistics(frame, fit):
    found = {}
    for column in TEXT:
        text = frame[column].fillna("").astype(str)
        length, words = text.str.len(), text.str.count(r"\S+")
        found[f"{column}_length"] = length.astype(float)
        found[f"{column}_words"] = words.astype(float)
        found[f"{column}_word_length"] = length / words.where(words > 0)
        patterns = {
            "capitals": r"[A-Z]", "digits": r"\d", "marks": r"[^\w\s]", "links": r"https?:|www\.",
            "hashes": r"#\w", "mentions": r"@\w", "calls": r"[!?]", "foreign": r"[^\x00-\x7f]",
        }
        for name, pattern in patterns.items():
            found[f"{column}_{name}"] = text.str.count(pattern).astype(float)
        found[f"{column}_capital_share"] = found[f"{column}_capitals"] / length.where(length > 0)
    return pd.DataFrame(found, index=frame.index)
