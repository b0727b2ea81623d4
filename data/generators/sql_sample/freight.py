"""A freight forwarder: terminals, carriers with vehicles, routes, consignments with events and invoices."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random

from statements import Rows, Value, day_in, seldom, time_in

DDL = """
CREATE TABLE terminals (
  code VARCHAR PRIMARY KEY,
  city VARCHAR NOT NULL,
  country VARCHAR NOT NULL,
  opened INTEGER,
  pallet_places INTEGER NOT NULL CHECK (pallet_places >= 0)
);
CREATE TABLE carriers (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL,
  mode VARCHAR NOT NULL CHECK (mode IN ('road', 'rail', 'sea'))
);
CREATE TABLE vehicles (
  id INTEGER PRIMARY KEY,
  carrier_id INTEGER NOT NULL REFERENCES carriers (id),
  plate VARCHAR UNIQUE,
  capacity_kg INTEGER NOT NULL CHECK (capacity_kg > 0),
  retired_on DATE
);
CREATE TABLE routes (
  id INTEGER PRIMARY KEY,
  origin VARCHAR NOT NULL REFERENCES terminals (code),
  destination VARCHAR NOT NULL REFERENCES terminals (code),
  distance_km INTEGER NOT NULL CHECK (distance_km > 0),
  toll DECIMAL(7, 2),
  UNIQUE (origin, destination),
  CHECK (origin <> destination)
);
CREATE TABLE consignments (
  id INTEGER PRIMARY KEY,
  route_id INTEGER NOT NULL REFERENCES routes (id),
  vehicle_id INTEGER REFERENCES vehicles (id),
  booked_at TIMESTAMP NOT NULL,
  departed_at TIMESTAMP,
  arrived_at TIMESTAMP,
  weight_kg INTEGER NOT NULL CHECK (weight_kg > 0),
  priority VARCHAR NOT NULL CHECK (priority IN ('low', 'normal', 'urgent')),
  CHECK (arrived_at IS NULL OR departed_at IS NOT NULL)
);
CREATE TABLE events (
  consignment_id INTEGER NOT NULL REFERENCES consignments (id),
  sequence INTEGER NOT NULL,
  happened_at TIMESTAMP NOT NULL,
  kind VARCHAR NOT NULL,
  note VARCHAR,
  PRIMARY KEY (consignment_id, sequence)
);
CREATE TABLE invoices (
  id INTEGER PRIMARY KEY,
  consignment_id INTEGER NOT NULL REFERENCES consignments (id),
  issued_on DATE NOT NULL,
  due_on DATE NOT NULL,
  amount DECIMAL(9, 2) NOT NULL,
  currency VARCHAR NOT NULL CHECK (currency IN ('EUR', 'PLN', 'SEK')),
  paid_on DATE,
  CHECK (due_on >= issued_on)
);
CREATE TABLE temperature_log (
  vehicle_id INTEGER NOT NULL REFERENCES vehicles (id),
  measured_at TIMESTAMP NOT NULL,
  celsius DOUBLE
);
"""
_TERMINALS = [
    *(("HAM", "Hamburg", "Germany", 1998, 1200), ("ROT", "Rotterdam", "Netherlands", 1986, 2400)),
    *(("GDN", "Gdansk", "Poland", 2007, 900), ("LYS", "Lyon", "France", None, 650)),
    *(("GOT", "Gothenburg", "Sweden", 1991, 900), ("MIL", "Milan", "Italy", 2012, 1200)),
    *(("BER", "Berlin", "Germany", 2015, 400), ("OST", "Ostrava", "Czechia", None, 0)),
]
_CARRIERS = [
    *((1, "Wolters", "road"), (2, "Baltrail", "rail"), (3, "Hansa Line", "sea"), (4, "Rapid", "road")),
    *((5, "Alpenbahn", "rail"), (6, "Rapid", "sea"), (7, "Kestrel Cargo", "road")),
]
_ROUTES = [
    *(("HAM", "ROT", 500, "42.50"), ("ROT", "HAM", 500, "42.50"), ("HAM", "GDN", 850, None)),
    *(("GDN", "HAM", 850, "18.00"), ("ROT", "LYS", 930, "96.00"), ("LYS", "MIL", 450, "71.20")),
    *(("MIL", "BER", 1040, "88.00"), ("BER", "HAM", 290, None), ("GOT", "HAM", 720, "55.00")),
    *(("BER", "GDN", 500, "0.00"), ("GOT", "GDN", 610, None), ("LYS", "ROT", 940, "96.00")),
    ("OST", "GOT", 1480, "140.00"),
]
_KINDS = ("customs", "inspection", "reloaded", "delay", "delay", "customs")
_NOTES = ("papers missing", "weather", "strike", "queue at gate", "Weather")


def rows(random: Random) -> Rows:
    """The rows by table."""
    consignments = _consignments(random)
    return {
        "terminals": _TERMINALS,
        "carriers": _CARRIERS,
        "vehicles": _vehicles(random),
        "routes": [
            (number, start, end, length, None if toll is None else Decimal(toll))
            for number, (start, end, length, toll) in enumerate(_ROUTES, start=1)
        ],
        "consignments": consignments,
        "events": [event for row in consignments for event in _events(random, row)],
        "invoices": _invoices(random, consignments),
        "temperature_log": _temperatures(random),
    }


def _vehicles(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for number in range(1, 19):
        # Carrier 7 has no vehicle.
        carrier = 1 + number % 6
        plate = seldom(random, 0.2, f"{random.choice('ABKRW')}{random.choice('XYZ')} {random.randrange(100, 999)}")
        retired = day_in(random, date(2023, 1, 1), date(2025, 5, 31)) if random.random() < 0.25 else None
        if number == 9:
            retired = date(2025, 6, 30)
        made.append((number, carrier, plate, random.choice((7500, 12000, 24000, 24000, 60000)), retired))
    return made


def _consignments(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    times = sorted(time_in(random, date(2024, 1, 1), date(2025, 5, 31), range(6, 21)) for _ in range(140))
    for number, booked in enumerate(times, start=1):
        # Routes 12 and 13 and vehicle 18 are never used.
        route, vehicle = random.randrange(1, 12), seldom(random, 0.12, random.randrange(1, 18))
        departed = booked + timedelta(hours=random.randrange(4, 120)) if vehicle and random.random() < 0.92 else None
        hours = _ROUTES[route - 1][2] / 45 + random.choice((2, 4, 8, 12, 30, 72))
        arrived = departed + timedelta(hours=int(hours)) if departed and random.random() < 0.93 else None
        weight = 50 * random.randrange(2, 300)
        priority = random.choice(("low", "normal", "normal", "urgent"))
        made.append((number, route, vehicle, booked, departed, arrived, weight, priority))
    return made


def _events(random: Random, consignment: tuple[Value, ...]) -> list[tuple[Value, ...]]:
    departed = consignment[4]
    if not isinstance(departed, datetime):
        return []
    made: list[tuple[Value, ...]] = []
    at = departed
    for sequence in range(1, random.choice((0, 1, 1, 2, 3, 4)) + 1):
        at += timedelta(minutes=5 * random.randrange(6, 90))
        kind = random.choice(_KINDS)
        note = seldom(random, 0.3, random.choice(_NOTES)) if kind == "delay" else None
        made.append((consignment[0], sequence, at, kind, note))
    return made


def _invoices(random: Random, consignments: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for row in consignments:
        arrived = row[5]
        if not isinstance(arrived, datetime):
            continue
        # Some consignments are billed in two parts, some not at all.
        for _ in range(random.choice((0, 1, 1, 1, 1, 2))):
            issued = arrived.date() + timedelta(days=random.randrange(1, 15))
            due = issued + timedelta(days=random.choice((14, 30, 30, 60)))
            paid = seldom(random, 0.25, due + timedelta(days=random.randrange(-14, 21)))
            if len(made) % 10 == 0:
                paid = due  # to the day, which is not late
            amount = Decimal(random.randrange(120, 4800)) + random.choice((Decimal("0.00"), Decimal("0.50")))
            currency = random.choice(("EUR", "EUR", "EUR", "PLN", "SEK"))
            made.append((len(made) + 1, row[0], issued, due, amount, currency, paid))
    return made


def _temperatures(random: Random) -> list[tuple[Value, ...]]:
    made = [
        (vehicle, datetime(2025, 5, 1, hour), seldom(random, 0.1, round(random.uniform(-22.0, -14.0), 1)))
        for vehicle in (2, 5, 8, 11)
        for hour in range(0, 24, 2)
    ]
    # The logger sends some readings twice, and all that raise an alarm.
    alarms = [row for row in made if row[2] is not None and row[2] > -15]
    return sorted([*made, *alarms, *random.sample(made, 6)], key=lambda row: (row[0], row[1], row[2] or 0.0))
