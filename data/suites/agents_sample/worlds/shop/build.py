"""Makes the two databases of the shop, in which a customer is written differently."""

import random
import sqlite3
from datetime import date, timedelta

import duckdb

rng = random.Random(7)
FIRST = ["Ada", "Bruno", "Clara", "Dario", "Elsa", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karin", "Lars"]
LAST = ["Albrecht", "Brandt", "Conti", "Duval", "Ekman", "Fontaine", "Gruber", "Holm", "Ivanova", "Jansen"]
names = [f"{first} {last}" for first in FIRST for last in LAST]
rng.shuffle(names)
customers = [
    (
        f"C-{number:04}",
        names[number],
        rng.choice(["Germany", "Germany", "France", "Italy", "Denmark"]),
        rng.choice(["private", "private", "trade", "hotel"]),
        (date(2022, 1, 10) + timedelta(days=rng.randrange(1200))).isoformat(),
    )
    for number in range(1, 61)
]
TOPICS = ["damaged", "late", "invoice", "quality"]
complaints = [
    (
        number,
        f"C-{rng.randrange(1, 61):04}",
        (date(2025, 4, 1) + timedelta(days=rng.randrange(275))).isoformat(),
        rng.choice(TOPICS),
    )
    for number in range(1, 71)
]
with sqlite3.connect("crm.sqlite") as crm:
    crm.execute(
        "CREATE TABLE customers (customer_no TEXT PRIMARY KEY, name TEXT, country TEXT, segment TEXT, joined TEXT)"
    )
    crm.execute("CREATE TABLE complaints (id INTEGER PRIMARY KEY, customer_no TEXT, opened TEXT, topic TEXT)")
    crm.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?)", customers)
    crm.executemany("INSERT INTO complaints VALUES (?, ?, ?, ?)", complaints)
crm.close()


def typed(number):
    """Returns a customer number as somebody types it."""
    forms = [
        f"C-{number:04}",
        f"c{number}",
        f"C {number:03}",
        f" c-{number} ",
        f"{number}",
        f"C{number:04} ",
        f"c {number}",
    ]
    return rng.choice(forms)


products = [
    (f"P{number:02}", name, category, cents)
    for number, (name, category, cents) in enumerate(
        [
            ("Floor lamp Arc", "lamps", 14950),
            ("Desk lamp Pico", "lamps", 4990),
            ("Pendant Drop", "lamps", 8900),
            ("Oak table", "tables", 48900),
            ("Round table", "tables", 32900),
            ("Chair Lena", "chairs", 11900),
            ("Armchair Nest", "chairs", 35900),
            ("Stool Trio", "chairs", 6490),
        ],
        1,
    )
]
orders, items = [], []
for number in range(1001, 1281):
    who = rng.randrange(1, 57)
    kind = rng.random()
    ref = (
        rng.choice(["guest", "Guest", "GUEST"]) if kind < 0.06 else typed(rng.randrange(71, 90) if kind < 0.11 else who)
    )
    day = date(2024, 1, 2) + timedelta(days=rng.randrange(728))
    orders.append((number, ref, day.isoformat(), rng.choice(["paid"] * 7 + ["cancelled", "returned"])))
    for sku, _, _, cents in rng.sample(products, rng.randrange(1, 4)):
        items.append((number, sku, rng.randrange(1, 4), cents * rng.choice([100, 100, 95, 90]) // 100 / 100))
sales = duckdb.connect("sales.duckdb")
sales.execute("CREATE TABLE products (sku VARCHAR, name VARCHAR, category VARCHAR)")
sales.execute("CREATE TABLE orders (order_id INTEGER, cust_ref VARCHAR, ordered DATE, status VARCHAR)")
sales.execute("CREATE TABLE items (order_id INTEGER, sku VARCHAR, qty INTEGER, unit_price DECIMAL(10, 2))")
sales.executemany("INSERT INTO products VALUES (?, ?, ?)", [one[:3] for one in products])
sales.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
sales.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", items)
sales.close()
