"""Makes the database of the laboratory."""

import random
import sqlite3
from datetime import date, timedelta

rng = random.Random(33)
db = sqlite3.connect("lab.sqlite")
db.executescript("""
CREATE TABLE sites (site TEXT, river TEXT, km REAL);
CREATE TABLE samples (sample_id INTEGER, site TEXT, taken TEXT, depth_m REAL);
CREATE TABLE runs (run_id INTEGER, instrument TEXT, day TEXT, passed INTEGER);
CREATE TABLE results (
    result_id INTEGER, sample_id INTEGER, run_id INTEGER, analyte TEXT, value REAL, unit TEXT, flag TEXT
);
CREATE TABLE results_raw (
    result_id INTEGER, sample_id INTEGER, run_id INTEGER, analyte TEXT, value REAL, unit TEXT, flag TEXT
);
""")
RIVERS = {"Oste": 3, "Wümme": 4, "Lune": 2}
sites = [(f"{river[0]}{n}", river, 7.5 * n) for river, count in RIVERS.items() for n in range(1, count + 1)]
db.executemany("INSERT INTO sites VALUES (?, ?, ?)", sites)
first = date(2024, 6, 3)
runs = [
    (n, rng.choice(["ICP-1", "ICP-2", "ICP-2"]), str(first + timedelta(days=9 * n)), int(rng.random() < 0.8))
    for n in range(1, 61)
]
db.executemany("INSERT INTO runs VALUES (?, ?, ?, ?)", runs)
number = 0
for sample in range(1, 261):
    site, taken = rng.choice(sites), first + timedelta(days=2 * sample)
    db.execute("INSERT INTO samples VALUES (?, ?, ?, ?)", (sample, site[0], str(taken), rng.choice([0.2, 0.5, 1.0])))
    run = min(runs, key=lambda one: abs((date.fromisoformat(one[2]) - taken).days))[0]
    for analyte, middle in (("lead", 8), ("arsenic", 5), ("nitrate", 31000)):
        value, number = round(middle * rng.lognormvariate(0, 0.5), 1), number + 1
        flag = "<" if value < middle * 0.6 else ""
        row = (number, sample, run, analyte)
        raw = (*row, round(value * rng.choice([0.9, 1.0, 1.2]), 1), "ug/l", "")
        db.execute("INSERT INTO results_raw VALUES (?, ?, ?, ?, ?, ?, ?)", raw)
        milli = analyte == "nitrate" or rng.random() < 0.25
        told = (round(value / 1000, 5), "mg/l", flag) if milli else (value, "ug/l", flag)
        db.execute("INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, *told))
db.commit()
