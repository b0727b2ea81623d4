"""Makes the database of the bakery."""

import random
import sqlite3
from datetime import date, timedelta

rng = random.Random(44)
db = sqlite3.connect("bakery.sqlite")
db.executescript("""
CREATE TABLE products (product TEXT, name TEXT, category TEXT);
CREATE TABLE shops (shop INTEGER, name TEXT, town TEXT);
CREATE TABLE shops_planned (shop INTEGER, name TEXT, town TEXT);
CREATE TABLE batches (batch INTEGER, day TEXT, product TEXT, oven INTEGER, made INTEGER, rejected INTEGER);
CREATE TABLE deliveries (
    delivery INTEGER, day TEXT, shop INTEGER, product TEXT, sent INTEGER, returned INTEGER, test INTEGER
);
CREATE TABLE contacts (shop INTEGER, person TEXT, phone TEXT);
""")
products = [
    ("P", "pretzel", "small"),
    ("R", "rye bread", "bread"),
    ("C", "croissant", "small"),
    ("S", "seeded roll", "small"),
]
db.executemany("INSERT INTO products VALUES (?, ?, ?)", products)
TOWNS = ["Uelzen", "Celle", "Uelzen", "Munster", "Celle", "Uelzen", "Soltau"]
db.executemany("INSERT INTO shops VALUES (?, ?, ?)", [(n, f"Shop {town} {n}", town) for n, town in enumerate(TOWNS, 1)])
planned = [(n, f"Shop {town}", town) for n, town in enumerate(["Celle", "Uelzen", "Soltau", "Uelzen", "Munster"], 1)]
db.executemany("INSERT INTO shops_planned VALUES (?, ?, ?)", planned)
contacts = [
    (n, person, f"0581-{n}{len(person)}") for n in range(1, 8) for person in ["Ahlers", "Brandt", "Cohrs"][: 1 + n % 3]
]
db.executemany("INSERT INTO contacts VALUES (?, ?, ?)", contacts)
batch = delivery = 0
for offset in range(100):
    day = str(date(2025, 1, 1) + timedelta(days=offset))
    for product, *_ in products:
        for oven in rng.sample([1, 2, 3], 2):
            batch, made = batch + 1, rng.randint(40, 220)
            row = (batch, day, product, oven, made, rng.randint(0, 4 + 5 * oven))
            db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", row)
        for shop in range(1, 8):
            if rng.random() < 0.7:
                delivery, sent = delivery + 1, rng.randint(10, 50)
                row = (delivery, day, shop, product, sent, rng.randint(0, 9), int(rng.random() < 0.04))
                db.execute("INSERT INTO deliveries VALUES (?, ?, ?, ?, ?, ?, ?)", row)
db.commit()
