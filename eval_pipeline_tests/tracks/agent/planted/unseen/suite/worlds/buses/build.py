"""Makes the files of the buses."""

import csv
import random
from datetime import date, timedelta

rng = random.Random(42)
first = date(2025, 1, 1)


def write(name: str, head: list[str], rows: list, delimiter: str = ",") -> None:
    with open(name, "w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([head, *rows])


buses = [(f"B{n:02}", rng.choice("LMMS"), 2008 + n, rng.choice(["Nord", "Nord", "Hafen", "Ost"])) for n in range(1, 13)]
write("fleet.csv", ["bus", "type", "built", "depot"], buses)
old = [(*one[:3], rng.choice(["Nord", "Hafen", "Ost"]) if rng.random() < 0.6 else one[3]) for one in buses[:10]]
write("fleet_2023.csv", ["bus", "type", "built", "depot"], old)
trips, fuel, shop, miles = [], [], [], {one[0]: rng.randint(20000, 90000) for one in buses}
for day in range(181):
    for bus, kind, *_ in buses:
        for _ in range(rng.choice([0, 1, 2])):
            start, driven = miles[bus], rng.randint(8, 60)
            miles[bus] += driven
            trips.append((first + timedelta(days=day), bus, rng.choice([0, 11, 12, 12, 40]), start, start + driven))
        if rng.random() < 0.12:
            litres = rng.uniform(60, 160) * (1.5 if kind == "L" else 1)
            fuel.append((first + timedelta(days=day), bus, "D", f"{litres:.1f}".replace(".", ",")))
            if rng.random() < 0.4:
                fuel.append((first + timedelta(days=day), bus, "A", f"{rng.uniform(5, 40):.1f}".replace(".", ",")))
        if rng.random() < 0.02:
            begun = first + timedelta(days=day)
            reason = rng.choice(["brakes", "brakes", "doors", "engine", "inspection"])
            shop.append(
                (len(shop) + 1, bus, begun, begun + timedelta(days=rng.randint(1, 9)), reason, rng.randint(90, 2400))
            )
write("trips.csv", ["date", "bus", "line", "odo_start", "odo_end"], trips)
write("refuel.csv", ["date", "bus", "item", "litres"], fuel, ";")
write("workshop.csv", ["visit", "bus", "in", "out", "reason", "eur"], shop)
