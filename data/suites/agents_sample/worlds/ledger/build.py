"""Makes the ledger: accounts, a quarter of vouchers, and what is wrong with some of them."""

import random
import sqlite3
from datetime import date, timedelta

rng = random.Random(41)
ACCOUNTS = [
    (1000, "Cash", "asset"),
    (1200, "Bank", "asset"),
    (1400, "Customers", "asset"),
    (1600, "Suppliers", "liability"),
    (1900, "Loan", "liability"),
    (4000, "Sales", "income"),
    (6100, "Rent", "expense"),
    (6300, "Office supplies", "expense"),
    (6310, "Software", "expense"),
    (6500, "Cleaning", "expense"),
    (6650, "Travel", "expense"),
]
lines = []


def voucher(number, day, debit, credit, cents, text, centre=None, status="posted", old=False, off=0):
    """Adds the two lines of a voucher; its credit lacks `off`."""
    told = day.strftime("%d.%m.%Y") if old else day.isoformat()
    lines.append((f"V-{number}", told, debit, cents, 0, centre, text, status))
    lines.append((f"V-{number}", told, credit, 0, cents - off, centre, text, status))


TRIPS = ["train to Lyon", "hotel in Lyon", "taxi to the fair", "train to Kiel", "hotel in Kiel", "flight to Lyon"]
day, travelled = date(2025, 1, 2), 0
for number in range(1001, 1081):
    day = date(2025, 1, 2) + timedelta(days=(number - 1001) * 88 // 80)
    kind = number % 8
    old = day < date(2025, 2, 20) and rng.random() < 0.3
    cents = rng.randrange(1500, 480000)
    if kind in (0, 4):
        voucher(number, day, 1400, 4000, cents * 3, f"invoice {number * 7 % 997}", old=old)
    elif kind == 1:
        voucher(number, day, 1200, 1400, cents * 2, f"payment of invoice {number * 7 % 991}", old=old)
    elif kind == 2:
        draft = number in (1018, 1058)
        voucher(
            number,
            day,
            6300,
            1600,
            cents // 10,
            "paper and toner",
            110,
            "draft" if draft else "posted",
            old,
            300 * draft,
        )
    elif kind == 3:
        voucher(number, day, 6310, 1600, cents // 4, "licences", 120, old=old)
    elif kind == 5:
        text = TRIPS[travelled % len(TRIPS)]
        travelled += 1
        voucher(number, day, 6650, 1200, cents // 6, text, 400, "draft" if number == 1069 else "posted", old)
    elif kind == 6:
        voucher(number, day, 1600, 1200, cents // 3, "paid to supplier", old=old, off=900 if number == 1070 else 0)
    else:
        voucher(number, day, 6100 if number % 16 == 7 else 6500, 1200, cents // 2, "monthly", 100, old=old)
    if number == 1066:
        again = lines[-2:]
    if number == 1072:
        lines += again
voucher(1081, date(2025, 3, 29), 6300, 1600, 118405, "yearly licence of the drawing program", 120)
voucher(1082, date(2025, 3, 30), 6650, 1200, 20350, "train to Lyon, second class", 400)
voucher(1083, date(2025, 3, 31), 6650, 1200, 41780, "hotel in Oslo", 400)
with sqlite3.connect("ledger.sqlite") as db:
    db.execute("CREATE TABLE accounts (account INTEGER PRIMARY KEY, name TEXT, type TEXT)")
    db.execute(
        "CREATE TABLE entries (id INTEGER PRIMARY KEY, voucher TEXT NOT NULL, booked TEXT NOT NULL, "
        "account INTEGER NOT NULL REFERENCES accounts (account), debit INTEGER NOT NULL, credit INTEGER NOT NULL, "
        "cost_centre INTEGER, text TEXT, status TEXT NOT NULL)"
    )
    db.execute("CREATE TABLE balances (month TEXT, account INTEGER, balance INTEGER)")
    db.executemany("INSERT INTO accounts VALUES (?, ?, ?)", ACCOUNTS)
    db.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [(n, *one) for n, one in enumerate(lines, 1)]
    )
db.close()
