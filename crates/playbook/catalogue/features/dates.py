# name: dates
# title: Calendar and elapsed time
# why: A date is a year, a month, a weekday, an hour and a distance in time
# columns: dates
# rank: 4
# cost: 0.1


def features_dates(frame, fit):
    found = {}
    moments = {}
    for column in DATES:
        moment = pd.to_datetime(frame[column], errors="coerce", utc=True)
        known = pd.to_datetime(fit[column], errors="coerce", utc=True)
        moments[column] = moment
        parts = {"year": moment.dt.year, "month": moment.dt.month, "day": moment.dt.day, "weekday": moment.dt.dayofweek, "yearday": moment.dt.dayofyear}
        if known.dt.hour.nunique() > 1:
            parts["hour"] = moment.dt.hour
        for name, values in parts.items():
            found[f"{column}_{name}"] = values.astype(float)
        turn = 2 * np.pi * moment.dt.dayofyear / 365.25
        found[f"{column}_season_sin"], found[f"{column}_season_cos"] = np.sin(turn), np.cos(turn)
        found[f"{column}_elapsed"] = (moment - known.min()).dt.total_seconds() / 86400
    for i, first in enumerate(DATES):
        for second in DATES[i + 1:]:
            found[f"{first}_until_{second}"] = (moments[second] - moments[first]).dt.total_seconds() / 86400
    return pd.DataFrame(found, index=frame.index)
