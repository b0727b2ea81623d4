"""Makes the warehouse with trips, stations and fares, and builds the models in it."""

import random
import runpy
import sys
from datetime import date, datetime, timedelta

import duckdb

rng = random.Random(23)
db = duckdb.connect("warehouse.duckdb")
db.execute("CREATE SCHEMA raw")
db.execute(
    "CREATE TABLE raw.stations (station_id INTEGER, name VARCHAR, district VARCHAR, valid_from DATE, valid_to DATE)"
)
db.execute(
    "CREATE TABLE raw.trips (trip_id INTEGER, bike_id INTEGER, member_id INTEGER, start_station INTEGER, "
    "started_at TIMESTAMP, ended_at TIMESTAMP, is_test BOOLEAN)"
)
db.execute("CREATE TABLE raw.fares (trip_id INTEGER, kind VARCHAR, amount_cents INTEGER)")
db.execute("CREATE TABLE raw.members (member_id INTEGER, name VARCHAR, since DATE)")
stations = [
    (1, "Market", "Old Town", date(2024, 1, 1), None),
    (2, "Bridge", "Old Town", date(2024, 1, 1), date(2025, 5, 12)),
    (2, "Bridge", "Riverside", date(2025, 5, 12), None),
    (3, "Mill", "Riverside", date(2024, 1, 1), None),
    (4, "Station", "New Town", date(2024, 1, 1), date(2025, 4, 20)),
    (4, "Station", "Old Town", date(2025, 4, 20), None),
    (5, "Campus", "Hill", date(2024, 1, 1), None),
    (6, "Clinic", "Hill", date(2024, 1, 1), date(2025, 6, 3)),
    (6, "Clinic", "New Town", date(2025, 6, 3), None),
    (7, "Stadium", "New Town", date(2024, 9, 1), None),
]
members = [
    (100 + n, name, date(2023, 3, 1) + timedelta(days=37 * n))
    for n, name in enumerate(["Aylin", "Bert", "Cora", "Deniz", "Emil", "Fanny", "Goran", "Hanna", "Ivo", "Jette"])
]
trips, fares = [], []
for number in range(1, 601):
    start = datetime(2025, 4, 1, 6) + timedelta(days=rng.randrange(91), minutes=rng.randrange(960))
    minutes = rng.randrange(4, 75)
    member = rng.choice(members)[0] if rng.random() < 0.6 else None
    test = rng.random() < 0.05
    trips.append(
        (number, rng.randrange(1, 90), member, rng.randrange(1, 8), start, start + timedelta(minutes=minutes), test)
    )
    fare = 100 + 5 * minutes if member else 150 + 12 * minutes
    fares.append((number, "fare", fare))
    if rng.random() < 0.08:
        fares.append((number, "refund", fare if rng.random() < 0.5 else 100))
db.executemany("INSERT INTO raw.stations VALUES (?, ?, ?, ?, ?)", stations)
db.executemany("INSERT INTO raw.members VALUES (?, ?, ?)", members)
db.executemany("INSERT INTO raw.trips VALUES (?, ?, ?, ?, ?, ?, ?)", trips)
db.executemany("INSERT INTO raw.fares VALUES (?, ?, ?)", fares)
db.close()
sys.argv = ["run_models.py"]
runpy.run_path("tools/run_models.py", run_name="__main__")
