results = {}
for title, variant in VARIANTS:
    results[title] = variant()
    difference = results[title] - results["Baseline"]
    if title == "Baseline":
        print(f"{title}: {results[title]:.8g}", flush=True)
    else:
        print(f"{title}: {results[title]:.8g} (difference {difference:+.8g})", flush=True)
largest = max((title for title in results if title != "Baseline"), key=lambda title: abs(results[title] - results["Baseline"]))
print(f"Largest impact: {largest}")
