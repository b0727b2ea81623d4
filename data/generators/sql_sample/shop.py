"""An outdoor shop: categories in a tree, customers who recruit each other, orders, reviews, page views."""

from datetime import date, timedelta
from decimal import Decimal
from random import Random

from statements import Rows, Value, day_in, seldom, time_in

DDL = """
CREATE TABLE categories (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL UNIQUE,
  parent_id INTEGER REFERENCES categories (id)
);
CREATE TABLE suppliers (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL,
  country VARCHAR NOT NULL,
  rating DOUBLE CHECK (rating BETWEEN 0 AND 5)
);
CREATE TABLE products (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL,
  category_id INTEGER REFERENCES categories (id),
  supplier_id INTEGER REFERENCES suppliers (id),
  price DECIMAL(8, 2) NOT NULL CHECK (price > 0),
  weight_kg DOUBLE,
  discontinued BOOLEAN NOT NULL
);
CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL,
  email VARCHAR UNIQUE,
  city VARCHAR,
  country VARCHAR NOT NULL,
  joined DATE NOT NULL,
  referred_by INTEGER REFERENCES customers (id)
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id),
  ordered_at TIMESTAMP NOT NULL,
  status VARCHAR NOT NULL CHECK (status IN ('new', 'paid', 'shipped', 'returned', 'cancelled')),
  shipped_at TIMESTAMP,
  voucher VARCHAR,
  UNIQUE (customer_id, ordered_at),
  CHECK (ordered_at <= shipped_at)
);
CREATE TABLE order_lines (
  order_id INTEGER NOT NULL REFERENCES orders (id),
  line INTEGER NOT NULL,
  product_id INTEGER NOT NULL REFERENCES products (id),
  quantity INTEGER NOT NULL CHECK (quantity > 0),
  unit_price DECIMAL(8, 2) NOT NULL,
  PRIMARY KEY (order_id, line)
);
CREATE TABLE reviews (
  id INTEGER PRIMARY KEY,
  product_id INTEGER NOT NULL REFERENCES products (id),
  customer_id INTEGER REFERENCES customers (id),
  stars INTEGER NOT NULL CHECK (stars BETWEEN 1 AND 5),
  written DATE NOT NULL,
  comment VARCHAR
);
CREATE TABLE page_views (
  product_id INTEGER NOT NULL REFERENCES products (id),
  customer_id INTEGER REFERENCES customers (id),
  viewed_at TIMESTAMP NOT NULL
);
"""
_CATEGORIES = [
    *((1, "Outdoor", None), (2, "Camping", 1), (3, "Tents", 2), (4, "Stoves", 2), (5, "Climbing", 1)),
    *((6, "Ropes", 5), (7, "Clothing", None), (8, "Jackets", 7), (9, "Socks", 7), (10, "Gift cards", None)),
]
_SUPPLIERS = [
    *((1, "Fjellvik", "Norway", 4.6), (2, "Tatra Gear", "Poland", 4.1), (3, "Alpenhof", "Austria", 4.6)),
    *((4, "Sierra Works", "Spain", None), (5, "Northloom", "Norway", 3.2), (6, "Kestrel Supply", "Ireland", 3.9)),
]
_PRODUCTS = [
    *(("Dome tent 2", 3, 1, "189.00", 2.6), ("Dome tent 4", 3, 1, "289.00", 4.4), ("Tunnel tent", 3, 3, "419.00", 5.1)),
    *(("Tarp", 3, 2, "49.90", 0.8), ("Gas stove", 4, 2, "39.90", 0.4), ("Wood stove", 4, 4, "74.50", 1.3)),
    *(
        ("Spirit stove", 4, 4, "39.90", 0.7),
        ("Single rope 60 m", 6, 3, "159.00", 3.7),
        ("Half rope", 6, 3, "139.00", 2.9),
    ),
    *(("Static rope", 6, 5, "99.00", None), ("Rain jacket", 8, 5, "129.00", 0.5), ("Down jacket", 8, 1, "249.00", 0.6)),
    *(("Fleece jacket", 8, 2, "79.00", 0.4), ("Wool socks", 9, 5, "14.90", 0.1), ("Hiking socks", 9, 5, "12.90", 0.1)),
    *(("Liner socks", 9, None, "9.90", 0.1), ("Chalk bag", 5, 6, "19.90", 0.2), ("Harness", 5, 3, "89.00", 0.4)),
    *(("Headlamp", 1, 6, "44.00", 0.1), ("Compass", 1, 6, "24.00", None), ("Map case", 1, 6, "18.00", 0.1)),
    *(
        ("Repair kit", None, 2, "15.00", 0.2),
        ("Water filter", None, 4, "64.00", 0.3),
        ("Old lantern", 2, 4, "34.00", 1.1),
    ),
    *(("Snow tent", 3, 3, "699.00", 6.8), ("Wind shirt", 8, 6, "79.00", None)),
]
_FIRST = "Ada Bela Carl Dora Emil Frida Gita Hugo Ines Jonas Kaja Luis Mira Nils Olga Pavel Rosa Sven Tara Udo".split()
_LAST = "Berg Costa Dahl Evers Foss Grau Holm Ivers".split()
_CITIES = {
    "Norway": ("Oslo", "Bergen"),
    "Poland": ("Krakow", "Gdansk"),
    "Austria": ("Graz", "Linz"),
    "Spain": ("Bilbao",),
}
_COMMENTS = ("Works well", "Broke after a week", "Light and warm", "Too small", "works well", "Would buy again")
_STATUS = ("shipped", "shipped", "shipped", "shipped", "paid", "new", "returned", "cancelled")
_LATER = range(3, 90)
"""Hours from an order to its dispatch."""


def rows(random: Random) -> Rows:
    """The rows by table."""
    customers = _customers(random)
    orders = _orders(random)
    lines = [line for order in orders for line in _lines(random, int(str(order[0])))]
    return {
        "categories": _CATEGORIES,
        "suppliers": _SUPPLIERS,
        "products": [
            (
                number,
                name,
                category,
                supplier,
                Decimal(price),
                weight,
                name in ("Old lantern", "Static rope", "Snow tent"),
            )
            for number, (name, category, supplier, price, weight) in enumerate(_PRODUCTS, start=1)
        ],
        "customers": customers,
        "orders": orders,
        "order_lines": lines,
        "reviews": _reviews(random),
        "page_views": _page_views(random),
    }


def _customers(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for number in range(1, 41):
        # Every ninth shares the name of the one before: a name is not a key.
        name = made[-1][1] if number % 9 == 0 else f"{random.choice(_FIRST)} {random.choice(_LAST)}"
        country = random.choice(tuple(_CITIES))
        email = seldom(random, 0.2, f"{str(name).split()[0].lower()}{number}@example.org")
        city = seldom(random, 0.15, random.choice(_CITIES[country]))
        joined = day_in(random, date(2022, 1, 1), date(2024, 12, 31))
        made.append((number, name, email, city, country, joined, _referrer(random, number)))
    return made


def _referrer(random: Random, number: int) -> Value:
    return random.randrange(1, number) if number > 4 and random.random() < 0.5 else None


def _orders(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    times = sorted(time_in(random, date(2024, 1, 1), date(2025, 6, 30), range(7, 23)) for _ in range(120))
    for number, at in enumerate(times, start=1):
        status = random.choice(_STATUS)
        sent = at + timedelta(hours=random.choice(_LATER)) if status in ("shipped", "returned") else None
        voucher = seldom(random, 0.75, random.choice(("SPRING", "WELCOME", "STAFF")))
        # Customers 33 to 40 never order; the first ten do so often.
        customer = random.randrange(1, 11) if random.random() < 0.4 else random.randrange(1, 33)
        made.append((number, customer, at, status, sent, voucher))
    return made


def _lines(random: Random, order: int) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for line in range(1, random.choice((1, 1, 2, 2, 3, 4)) + 1):
        # The last three products are never ordered.
        number = random.randrange(1, len(_PRODUCTS) - 2)
        listed = Decimal(_PRODUCTS[number - 1][3])
        paid = (listed * Decimal("0.9")).quantize(Decimal("0.01")) if random.random() < 0.2 else listed
        made.append((order, line, number, random.choice((1, 1, 1, 2, 2, 3, 6)), paid))
    return made


def _reviews(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for number in range(1, 71):
        product = random.choice((1, 2, 4, 5, 7, 8, 11, 12, 13, 14, 15, 17, 18, 19, 20))
        customer = seldom(random, 0.25, random.randrange(1, 36))
        written = day_in(random, date(2024, 3, 1), date(2025, 6, 30))
        made.append((number, product, customer, random.choice((1, 2, 3, 4, 4, 5, 5)), written,
                     seldom(random, 0.4, random.choice(_COMMENTS))))  # fmt: skip
    return made


def _page_views(random: Random) -> list[tuple[Value, ...]]:
    first, last = date(2025, 6, 1), date(2025, 6, 7)
    made = [
        (random.randrange(1, 27), seldom(random, 0.4, random.randrange(1, 41)), time_in(random, first, last))
        for _ in range(150)
    ]
    # A reloaded page is logged again with the same time.
    return sorted([*made, *random.sample(made, 20)], key=lambda row: (row[2], row[0], row[1] or 0))
