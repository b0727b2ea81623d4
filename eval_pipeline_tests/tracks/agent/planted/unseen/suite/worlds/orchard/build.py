"""Makes the files of the orchard."""

import csv
import random
from datetime import date, timedelta
from pathlib import Path

rng = random.Random(31)
VARIETIES = ["Boskoop", "Elstar", "Topaz", "Rubin"]


def write(name: str, head: str, rows: list) -> None:
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([head.split(","), *rows])


plots = [f"P{n:02}" for n in range(1, 13)]
now = [[p, VARIETIES[n * 3 % 4], round(rng.uniform(1.1, 2.4), 2), 2020 - n % 3] for n, p in enumerate(plots)]
old = [[p, VARIETIES[(n * 3 + 1) % 4], round(rng.uniform(1.1, 2.4), 2), 1998 + n] for n, p in enumerate(plots)]
write("plots.csv", "plot,variety,hectares,planted", now)
write("plots_2019.csv", "plot,variety,hectares,planted", old)
prices = []
for grade, base in (("A", 1.1), ("B", 0.62), ("J", 0.18)):
    for n, day in enumerate(["2024-08-01", "2025-01-01", "2025-09-10", "2025-09-24"]):
        prices.append([grade, day, round(base * (1 + 0.07 * n), 3)])
write("prices.csv", "grade,since,euro_per_kg", prices)
loads = []
for year in (2024, 2025):
    for _ in range(160):
        day = date(year, 8, 10) + timedelta(days=rng.randrange(80))
        grade, size = rng.choice("AAABBJ"), rng.choice([12, 14.5, 18])
        loads.append([day, rng.choice(plots), grade, rng.randrange(4, 40), size, "x" if rng.random() < 0.09 else ""])
loads.sort(key=lambda one: (one[0], one[1]))
write("harvest.csv", "date,plot,grade,crates,kg_per_crate,void", loads)
sprays = []
for _ in range(40):
    year = rng.choice([2024, 2025, 2025])
    day = date(year, 7, 20) + timedelta(days=rng.randrange(70))
    sprays.append([day, rng.choice(plots), rng.choice(["sulphur", "copper", "kaolin"]), rng.randrange(20, 90)])
write("sprays.csv", "date,plot,product,litres", sorted(sprays))
