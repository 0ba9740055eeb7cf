"""Writes the data of this example: invented flats with invented rents.

The seed is fixed, and was picked so that every step of the example shows on the validation rows.
"""

import csv
import math
import random
from pathlib import Path

INPUT = Path(__file__).parent / "input"

# District: how far out its flats lie (km), and what its name adds to a square metre.
DISTRICTS = {
    "old_town": (0.8, 2.2),
    "harbour": (2.0, 1.4),
    "university": (2.6, 0.2),
    "mill_quarter": (4.0, -0.9),
    "garden_city": (6.5, 1.1),
    "northfield": (8.0, -1.6),
}
COLUMNS = ["id", "area", "rooms", "floor", "distance", "year", "district", "balcony"]


def flat(chance):
    district = chance.choice(list(DISTRICTS))
    area = round(chance.triangular(22, 140, 55))
    if district in ("old_town", "harbour") and chance.random() < 0.5:
        year = chance.randint(1880, 1930)
    else:
        year = chance.choice([chance.randint(1895, 1930), chance.randint(1950, 2022)])
    return {
        "area": area,
        "rooms": max(1, min(6, round(area / 27 + chance.gauss(0, 0.6)))),
        "floor": chance.randint(0, 7 if year > 1950 else 5),
        "distance": round(max(0.1, chance.gauss(DISTRICTS[district][0], 0.7)), 1),
        "year": year,
        "district": district,
        "balcony": "yes" if chance.random() < (0.65 if year > 1950 else 0.25) else "no",
    }


def rent(flat, chance):
    metre = 8.5 + 8 * math.exp(-flat["distance"] / 3) + DISTRICTS[flat["district"]][1]
    factor = 1.0
    if flat["year"] <= 1930:
        factor += 0.12
    elif flat["year"] < 1980:
        factor -= 0.14
    elif flat["year"] > 2005:
        factor += 0.15
    if flat["floor"] == 0:
        factor -= 0.07
    elif flat["floor"] >= 4:
        # High up is pleasant where there is a lift, and a nuisance where there is none.
        factor += 0.09 if flat["year"] > 1980 else -0.09
    if flat["balcony"] == "yes":
        factor += 0.06
    # A large flat costs less per square metre than a small one.
    size = 60 * (flat["area"] / 60) ** 0.82
    return round(size * metre * factor * math.exp(chance.gauss(0, 0.06)))


def with_gaps(flat, chance):
    # Nobody looks up the year of an old house.
    if chance.random() < (0.25 if flat["year"] <= 1930 else 0.05):
        flat["year"] = ""
    if chance.random() < 0.08:
        flat["distance"] = ""
    if chance.random() < 0.05:
        flat["floor"] = ""
    return flat


def write(name, columns, rows):
    with open(INPUT / name, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def main():
    INPUT.mkdir(exist_ok=True)
    chance = random.Random(47)
    rows = []
    for number in range(1, 551):
        row = flat(chance)
        row["rent"] = rent(row, chance)
        rows.append({"id": number, **with_gaps(row, chance)})
    train, test = rows[:400], rows[400:]
    write("train.csv", [*COLUMNS, "rent"], train)
    write("test.csv", COLUMNS, test)
    write("sample_submission.csv", ["id", "rent"], [{"id": row["id"], "rent": 900} for row in test])


if __name__ == "__main__":
    main()
