"""Makes the database of the hotel."""

import random
import sqlite3
from datetime import date, timedelta

rng = random.Random(43)
db = sqlite3.connect("hotel.sqlite")
db.executescript("""
CREATE TABLE rooms (room INTEGER, floor INTEGER, kind TEXT, beds INTEGER);
CREATE TABLE guests (guest INTEGER, name TEXT, country TEXT);
CREATE TABLE bookings (
    booking INTEGER, guest INTEGER, room INTEGER, arrival TEXT, departure TEXT, status TEXT, rate_cents INTEGER,
    channel TEXT
);
CREATE TABLE reservations (
    booking INTEGER, guest INTEGER, room INTEGER, arrival TEXT, departure TEXT, status TEXT, rate_cents INTEGER,
    channel TEXT
);
CREATE TABLE extras (extra INTEGER, booking INTEGER, item TEXT, cents INTEGER, booked TEXT);
""")
rooms = [
    (100 * floor + n, floor, ("single", "double", "suite")[n % 3], (1, 2, 3)[n % 3])
    for floor in (1, 2, 3)
    for n in range(1, 7)
]
db.executemany("INSERT INTO rooms VALUES (?, ?, ?, ?)", rooms)
COUNTRIES = ["Norway", "Poland", "Spain", "Austria", "Norway", "Japan"]
db.executemany("INSERT INTO guests VALUES (?, ?, ?)", [(n, f"Guest {n}", rng.choice(COUNTRIES)) for n in range(1, 121)])
number, extra = 0, 0
for room, _, kind, _ in rooms:
    day = date(2025, 4, 1) + timedelta(days=rng.randint(0, 5))
    while day < date(2025, 8, 15):
        leaves, number = day + timedelta(days=rng.choice([1, 1, 2, 3, 5, 8])), number + 1
        status = rng.choice("CCCCCCCXN")
        rate = {"single": 7900, "double": 11500, "suite": 19800}[kind] + 500 * rng.randint(0, 6)
        row = (
            number,
            rng.randint(1, 120),
            room,
            str(day),
            str(leaves),
            status,
            rate,
            rng.choice(["portal", "phone", "web"]),
        )
        db.execute("INSERT INTO bookings VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if rng.random() < 0.8:
            stale = (*row[:5], "C", rate - 500 * rng.randint(0, 2), row[7])
            db.execute("INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?)", stale)
        for _ in range(rng.randint(0, 3) if status == "C" else 0):
            extra, item = extra + 1, rng.choice(["minibar", "minibar", "parking", "laundry"])
            db.execute(
                "INSERT INTO extras VALUES (?, ?, ?, ?, ?)", (extra, number, item, rng.randint(4, 60) * 50, str(day))
            )
        day = leaves + timedelta(days=rng.randint(0, 2))
db.commit()
