"""Makes the database of the cinema."""

import random
from datetime import datetime, timedelta

import duckdb

rng = random.Random(41)
db = duckdb.connect("cinema.duckdb")
db.execute("""
CREATE TABLE films (film_id INTEGER, title VARCHAR, country VARCHAR, minutes INTEGER);
CREATE TABLE versions (film_id INTEGER, language VARCHAR, subtitles VARCHAR);
CREATE TABLE halls (hall INTEGER, name VARCHAR, seats INTEGER);
CREATE TABLE screenings (screening_id INTEGER, film_id INTEGER, hall INTEGER, starts TIMESTAMP, status VARCHAR);
CREATE TABLE programme (screening_id INTEGER, film_id INTEGER, hall INTEGER, starts TIMESTAMP, status VARCHAR);
CREATE TABLE tickets (ticket_id INTEGER, screening_id INTEGER, kind VARCHAR, cents INTEGER, state VARCHAR);
""")
COUNTRIES = ["France", "France", "Germany", "Italy", "Japan", "Germany", "France", "Denmark"]
TITLES = ["The Weir", "Salt Road", "Night Bus", "Aunt Lena", "Seven Maps", "Low Water", "Postcards", "The Tin Choir"]
films = [(n, title, COUNTRIES[n - 1], 85 + 7 * n) for n, title in enumerate(TITLES, 1)]
db.executemany("INSERT INTO films VALUES (?, ?, ?, ?)", films)
versions = [(n, language, "none") for n in range(1, 9) for language in ["original", "German", "English"][: 1 + n % 3]]
db.executemany("INSERT INTO versions VALUES (?, ?, ?)", versions)
db.executemany("INSERT INTO halls VALUES (?, ?, ?)", [(1, "Astra", 60), (2, "Luna", 34), (3, "Studio", 18)])
plan, shown, tickets = [], [], []
for n in range(1, 361):
    starts = datetime(2025, 2, 20) + timedelta(days=n // 4, hours=(14, 17, 20, 24)[n % 4], minutes=30)
    film, hall = rng.randint(1, 8), rng.choice([1, 1, 2, 2, 3])
    plan.append((n, film, hall, starts, "planned"))
    film, hall = (
        (rng.randint(1, 8) if rng.random() < 0.15 else film),
        (rng.choice([1, 2, 3]) if rng.random() < 0.3 else hall),
    )
    status = "cancelled" if rng.random() < 0.05 else "shown"
    shown.append((n, film, hall, starts, status))
    for _ in range(rng.randint(2, (60, 34, 18)[hall - 1])):
        kind = rng.choice(["full", "full", "full", "reduced", "free"])
        state = "refunded" if status == "cancelled" else rng.choice(["used"] * 12 + ["refunded", "unused"])
        cents = {"full": 1150, "reduced": 850, "free": 0}[kind] + (100 if hall == 1 and kind != "free" else 0)
        tickets.append((len(tickets) + 1, n, kind, cents, state))
db.executemany("INSERT INTO programme VALUES (?, ?, ?, ?, ?)", plan)
db.executemany("INSERT INTO screenings VALUES (?, ?, ?, ?, ?)", shown)
for first in range(0, len(tickets), 500):
    rows = ", ".join(str(one) for one in tickets[first : first + 500])
    db.execute(f"INSERT INTO tickets VALUES {rows}")
db.close()
