"""Makes the catalogue, and what was asked for in May."""

import json
import random
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

rng = random.Random(5)
THINGS = [
    "Amphora",
    "Astrolabe",
    "Banner",
    "Bust",
    "Chalice",
    "Clock",
    "Dagger",
    "Globe",
    "Harp",
    "Helmet",
    "Icon",
    "Lute",
]
AGES = ["Roman", "Gothic", "Baroque", "Early", "Late"]
titles = [f"{age} {thing}" for age in AGES for thing in THINGS]
rng.shuffle(titles)
numbers = [f"M-{number:04}" for number in range(1, 61)]
with sqlite3.connect("catalogue.sqlite") as db:
    db.execute("CREATE TABLE rooms (room INTEGER PRIMARY KEY, name TEXT, floor TEXT)")
    db.executemany(
        "INSERT INTO rooms VALUES (?, ?, ?)",
        [(n, f"Room {n}", ["ground floor", "first floor", "second floor"][n % 3]) for n in range(1, 9)],
    )
    for table in ("items", "items_old"):
        db.execute(
            f"CREATE TABLE {table} (item_id TEXT PRIMARY KEY, title TEXT, room INTEGER, withdrawn INTEGER NOT NULL)"
        )
        rows = [(one, title, rng.randrange(1, 9), 0) for one, title in zip(numbers, titles, strict=True)]
        if table == "items":
            rows = [(*row[:3], int(row[0] in numbers[::13])) for row in rows]
        db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
db.close()
Path("bots.json").write_text(json.dumps(["bot", "crawler", "spider"]))
Path("renumbered.json").write_text(json.dumps({"M-0104": "M-0004", "M-0117": "M-0017", "M-0131": "M-0031"}))
Path("withdrawn.json").write_text(json.dumps({"since": "2025-05-20", "items": ["m-7", "M-0022", "45", "M-0117"]}))
AGENTS = ["Mozilla/5.0", "Mozilla/5.0", "Safari/17", "Opera/9", "examplebot/2", "NiceCrawler/1", "spider"]
Path("logs").mkdir()
lines = {"a": [], "b": []}
for _ in range(1500):
    at = datetime(2025, 4, 30, 22) + timedelta(minutes=rng.randrange(31 * 1440))
    number = min(int(rng.expovariate(0.09)) + 1, 60)
    if number == 1 and rng.random() < 0.5:
        number = 4
    if number in (4, 17, 31) and rng.random() < 0.6:
        number += 100
    path = rng.choice(["/item/M-%04d", "/item/m-%d", "/item/%d", "/item/M-%04d?lang=en"]) % number
    path = rng.choice([path, path, path, "/", "/visit", "/shop"])
    agent = "examplebot/2" if number == 2 and rng.random() < 0.7 else rng.choice(AGENTS)
    status = rng.choice([200] * 12 + [404, 500, 503])
    size = rng.randrange(2000, 90000)
    if rng.random() < 0.6:
        lines["a"].append((at, f"{at:%Y-%m-%dT%H:%M:%SZ} {status} {size} {path} {agent}"))
    else:
        told = {"at": f"{at + timedelta(hours=2):%Y-%m-%d %H:%M:%S}", "status": status, "kb": round(size / 1000, 1)}
        lines["b"].append((at, json.dumps(told | {"path": path, "agent": agent})))
Path("logs/a.log").write_text("".join(f"{line}\n" for _, line in sorted(lines["a"])))
Path("logs/b.jsonl").write_text("".join(f"{line}\n" for _, line in sorted(lines["b"])))
