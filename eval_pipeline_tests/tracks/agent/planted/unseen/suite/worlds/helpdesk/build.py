"""Makes the database of the help desk."""

import random
import sqlite3
from datetime import datetime, timedelta

rng = random.Random(35)
db = sqlite3.connect("desk.sqlite")
db.executescript("""
CREATE TABLE customers (customer INTEGER, name TEXT, plan TEXT);
CREATE TABLE customers_import (customer INTEGER, name TEXT, plan TEXT);
CREATE TABLE agents (agent INTEGER, name TEXT, team TEXT);
CREATE TABLE tickets (ticket INTEGER, opened TEXT, customer INTEGER, product TEXT, priority TEXT, duplicate_of INTEGER);
CREATE TABLE events (event INTEGER, ticket INTEGER, at TEXT, kind TEXT, agent INTEGER);
CREATE TABLE calls (ticket INTEGER, call_by TEXT);
""")
for number in range(1, 41):
    plans = rng.choice(["basic", "basic", "pro", "gold"]), rng.choice(["basic", "pro", "pro", "gold"])
    for table, plan in zip(("customers", "customers_import"), plans, strict=True):
        db.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", (number, f"Customer {number}", plan))
AGENTS = ["robot", "Ada", "Bram", "Cleo", "Dirk", "Esra", "Finn"]
TEAMS = ["none", "north", "north", "south", "south", "west", "west"]
db.executemany(
    "INSERT INTO agents VALUES (?, ?, ?)", [(n, a, t) for n, (a, t) in enumerate(zip(AGENTS, TEAMS, strict=True))]
)
events = []
for ticket in range(1, 421):
    opened = datetime(2024, 10, 1, 7) + timedelta(hours=20 * ticket + rng.randrange(18))
    copy = ticket - rng.randrange(1, 9) if ticket > 10 and rng.random() < 0.1 else None
    priority = rng.choice(["high", "normal", "normal", "low"])
    one = (ticket, str(opened), rng.randrange(1, 41), rng.choice(["app", "web", "api"]), priority, copy)
    db.execute("INSERT INTO tickets VALUES (?, ?, ?, ?, ?, ?)", one)
    at = opened + timedelta(minutes=2)
    events.append((ticket, at, "reply", 0))
    if rng.random() < 0.93:
        at = opened + timedelta(minutes=rng.randrange(30, 2600))
        events.append((ticket, at, "reply", rng.choice([1, 2, 3, 3, 4, 5, 6])))
    for kind, chance in (("close", 0.85), ("reopen", 0.25), ("close", 0.6)):
        if rng.random() > chance:
            break
        at += timedelta(minutes=rng.randrange(60, 9000))
        events.append((ticket, at, kind, rng.choice([1, 2, 3, 3, 4, 5, 6])))
for number, (ticket, at, kind, agent) in enumerate(events, 1):
    db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (number, ticket, str(at), kind, agent))
db.commit()
