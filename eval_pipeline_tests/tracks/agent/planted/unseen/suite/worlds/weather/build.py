"""Makes the files of the weather stations."""

import csv
import math
import random
from datetime import date, timedelta

rng = random.Random(46)


def write(name: str, head: list[str], rows: list) -> None:
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


NAMES = ["Kahlberg", "Torfhaus", "Ahrensee", "Brockdorf", "Hoher Stein", "Wiesental", "Nordkoog", "Altenau"]
HEIGHTS = [812, 640, 35, 12, 905, 210, 3, 520]
stations = [(101 + n, name, HEIGHTS[n], "hills" if HEIGHTS[n] > 500 else "plain") for n, name in enumerate(NAMES)]
write("stations.csv", ["id", "name", "height_m", "region"], stations)
old = [(101 + (n + 3) % 8, name, HEIGHTS[n] - 180 if n % 2 else HEIGHTS[n] + 25, "") for n, name in enumerate(NAMES)]
write("stations_1990.csv", ["id", "name", "height_m", "region"], old)
rain, temps = [], []
for offset in range(365):
    day = date(2025, 1, 1) + timedelta(days=offset)
    warmth = 9 - 11 * math.cos(2 * math.pi * (offset - 15) / 365)
    for number, _, height, _ in stations:
        kind = rng.random()
        tenths = 0 if kind < 0.4 else -1 if kind < 0.5 else int(rng.expovariate(1 / (45 + height / 20)))
        qc = rng.choice([0] * 17 + [1, 1, 9])
        rain.append((number, day, 2500 + tenths if qc == 9 else tenths, qc))
        low = round(warmth - height / 200 - rng.uniform(0, 7), 1)
        high = round(low + rng.uniform(2, 11), 1)
        temps.append((number, day, *((-99.9, -99.9) if rng.random() < 0.03 else (low, high))))
write("rain.csv", ["station", "date", "rain", "qc"], rain)
write("temps.csv", ["station", "date", "tmin", "tmax"], temps)
