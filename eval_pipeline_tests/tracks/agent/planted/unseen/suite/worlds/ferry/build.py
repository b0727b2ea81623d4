"""Makes the database of the ferries."""

import random
from datetime import datetime, timedelta

import duckdb

rng = random.Random(32)
db = duckdb.connect("ferry.duckdb")
db.execute("CREATE TABLE ports (code VARCHAR, name VARCHAR, country VARCHAR)")
PORTS = [
    ("HIR", "Hirtshals", "DK"),
    ("KRS", "Kristiansand", "NO"),
    ("LAR", "Larvik", "NO"),
    ("GOT", "Gothenburg", "SE"),
]
db.executemany("INSERT INTO ports VALUES (?, ?, ?)", [*PORTS, ("FRE", "Frederikshavn", "DK")])
db.execute("CREATE TABLE routes (route VARCHAR, origin VARCHAR, destination VARCHAR, miles INTEGER)")
ROUTES = [("R1", "HIR", "KRS", 72), ("R2", "KRS", "HIR", 72), ("R3", "HIR", "LAR", 90), ("R4", "FRE", "GOT", 50)]
db.executemany("INSERT INTO routes VALUES (?, ?, ?, ?)", [*ROUTES, ("R5", "GOT", "FRE", 50)])
SHIPS = {"Alk": (140, 160), "Lunde": (90, 70), "Skua": (200, 240), "Terne": (120, 100)}
for table, place in (("ships", 0), ("ships_old", 1)):
    db.execute(f"CREATE TABLE {table} (ship VARCHAR, seats INTEGER)")
    db.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(ship, seats[place]) for ship, seats in SHIPS.items()])
db.execute("CREATE TABLE sailings (sailing_id INTEGER, route VARCHAR, ship VARCHAR, departs TIMESTAMP, status VARCHAR)")
db.execute(
    "CREATE TABLE bookings (booking_id INTEGER, sailing_id INTEGER, made DATE, passengers INTEGER, vehicle VARCHAR, "
    "fare_cents INTEGER, state VARCHAR)"
)
sailings, bookings = [], []
for number in range(1, 301):
    departs = datetime(2024, 11, 1, 6) + timedelta(hours=36 * number + rng.randrange(12))
    ship = rng.choice(list(SHIPS))
    status = "cancelled" if rng.random() < 0.1 else "sailed"
    sailings.append((number, f"R{rng.randrange(1, 6)}", ship, departs, status))
    for _ in range(rng.randrange(3, 9)):
        people, vehicle = rng.randrange(1, 16), rng.choice(["none", "car", "car", "van", "lorry"])
        fare = people * 2990 + {"none": 0, "car": 4500, "van": 6200, "lorry": 15900}[vehicle]
        state = rng.choice(["paid"] * 8 + ["refunded", "no_show"])
        made = (departs - timedelta(days=rng.randrange(0, 60))).date()
        bookings.append((len(bookings) + 1, number, made, people, vehicle, fare, state))
db.executemany("INSERT INTO sailings VALUES (?, ?, ?, ?, ?)", sailings)
db.executemany("INSERT INTO bookings VALUES (?, ?, ?, ?, ?, ?, ?)", bookings)
db.close()
