"""Writes the tables of the suite `pandas_sample`: `python data/generators/pandas_sample [FOLDER]`.

An invented chain of garden shops, its staff, tickets and sensors. The same rows each time; the cases were written
against them, so a change here needs a new version of the suite. They hold what trips code up: missing values, numbers
and dates kept as text, names in odd case and with spaces, keys that occur twice and keys that match nothing, ties.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from edges import put_edges

SEED = 20260301
FOLDER = Path(__file__).parents[2] / "suites" / "pandas_sample" / "tables"
SHOPS = 40
CUSTOMERS = 3_000
PRODUCTS = 1_000
SALES = 40_000
STAFF = 1_200
TICKETS = 12_000
READINGS = 100_000

CITIES = {
    "north": ["Aldburgh", "Carrick", "Fenwick"],
    "south": ["Brackley", "Dunmere", "Hythe End", "Selby Cross"],
    "east": ["Elmswell", "Lowmarket"],
    "west": ["Gorseland", "Kestle", "Ostrey"],
}
REGION_OF = {city: region for region, cities in CITIES.items() for city in cities}
CATEGORIES = ["tools", "seeds", "pots", "furniture", "lighting", "compost", "birds", "water"]
TOPICS = ["delivery", "refund", "damage", "account", "stock"]
DEPARTMENTS = ["sales", "warehouse", "support", "finance", "gardens"]
FIRST = [
    "Ada",
    "Ben",
    "Cleo",
    "Dov",
    "Esme",
    "Finn",
    "Greta",
    "Hugo",
    "Ines",
    "Jon",
    "Kay",
    "Liv",
    "Mats",
    "Nia",
    "Otto",
]
LAST = ["Archer", "Bligh", "Cole", "Dunn", "Eden", "Frost", "Gale", "Hale", "Ivers", "Joss", "Keel", "Lund", "Marsh"]
ADJECTIVES = ["Alpine", "Basic", "Copper", "Deluxe", "Early", "Folding", "Giant", "Hanging", "Iron", "Jumbo"]
NOUNS = ["Spade", "Rake", "Planter", "Bench", "Lantern", "Feeder", "Hose", "Mix", "Trowel", "Basket", "Arch", "Tray"]

Draw = np.random.Generator


def shops(draw: Draw) -> pd.DataFrame:
    """Shops: one region has far fewer; the newest have no floor area yet."""
    city = draw.choice(list(REGION_OF), SHOPS, p=_weights(len(REGION_OF)))
    area = draw.integers(120, 2_400, SHOPS).astype(float)
    area[-3:] = np.nan
    return pd.DataFrame(
        {
            "shop_id": np.arange(1, SHOPS + 1),
            "shop_name": [f"{town} {number}" for number, town in enumerate(city, start=1)],
            "city": city,
            "region": [REGION_OF[town] for town in city],
            "opened_on": _days(draw, "1998-01-01", "2024-06-01", SHOPS),
            "floor_area": area,
        }
    )


def customers(draw: Draw) -> pd.DataFrame:
    """Customers: some names in odd case and with spaces, some without city or year of birth."""
    name = [f"{first} {last}" for first, last in _pairs(draw, FIRST, LAST, CUSTOMERS)]
    odd = draw.random(CUSTOMERS)
    name = [f"  {n.upper()} " if o < 0.04 else n.lower() if o < 0.08 else n for n, o in zip(name, odd, strict=True)]
    city = draw.choice(list(REGION_OF), CUSTOMERS).astype(object)
    mail = [f"{n.strip().lower().replace(' ', '.')}{number}@" for number, n in enumerate(name)]
    domain = draw.choice(["post.example", "mail.example", "inbox.test"], CUSTOMERS)
    mail = [m + d for m, d in zip(mail, domain, strict=True)]
    return pd.DataFrame(
        {
            "customer_id": np.arange(10_001, 10_001 + CUSTOMERS),
            "name": name,
            "city": _holes(draw, city, 0.03),
            "segment": pd.Categorical(draw.choice(["home", "trade", "club"], CUSTOMERS, p=[0.6, 0.15, 0.25])),
            "signed_up": _days(draw, "2015-01-01", "2024-12-31", CUSTOMERS),
            "birth_year": _holes(draw, draw.integers(1935, 2006, CUSTOMERS).astype(float), 0.12, np.nan),
            "email": _holes(draw, np.array(mail, dtype=object), 0.08),
        }
    )


def products(draw: Draw) -> pd.DataFrame:
    """Products: 25 are listed twice, the second time at another price; weights are texts in two units."""
    category = draw.choice(CATEGORIES, PRODUCTS, p=_weights(len(CATEGORIES)))
    price = np.round(draw.lognormal(3.0, 0.8, PRODUCTS), 2)
    grams = draw.integers(40, 9_000, PRODUCTS)
    kilos = draw.random(PRODUCTS) < 0.5
    weight = [f"{g / 1000:.2f} kg" if k else f"{g} g" for g, k in zip(grams, kilos, strict=True)]
    listed = pd.DataFrame(
        {
            "product_id": [f"P{number:04}" for number in range(1, PRODUCTS + 1)],
            "product_name": [f"{a} {n}" for a, n in _pairs(draw, ADJECTIVES, NOUNS, PRODUCTS)],
            "category": category,
            "price": price,
            "cost": np.round(price * draw.uniform(0.35, 0.8, PRODUCTS), 2),
            "weight": _holes(draw, np.array(weight, dtype=object), 0.05),
            "discontinued": draw.random(PRODUCTS) < 0.1,
        }
    )
    again = listed.sample(25, random_state=SEED).assign(price=lambda frame: (frame["price"] * 1.1).round(2))
    return pd.concat([listed, again]).sort_values("product_id", kind="stable").reset_index(drop=True)


def sales(draw: Draw) -> pd.DataFrame:
    """Sales lines of two years: some without a customer, some of customers who are not on file, few with a discount."""
    sold = pd.Timestamp("2023-01-01") + pd.to_timedelta(draw.integers(0, 731 * 24 * 60, SALES), unit="min")
    customer = draw.integers(10_001, 10_001 + CUSTOMERS + 60, SALES).astype(float)
    discount = draw.choice([0.05, 0.1, 0.2, 0.25], SALES)
    frame = pd.DataFrame(
        {
            "sold_at": sold,
            "shop_id": draw.choice(np.arange(1, SHOPS - 1), SALES),
            "customer_id": pd.array(_holes(draw, customer, 0.15, np.nan), dtype="Int64"),
            "product_id": [f"P{number:04}" for number in draw.integers(1, PRODUCTS + 1, SALES)],
            "quantity": np.minimum(draw.geometric(0.45, SALES), 20),
            "unit_price": np.round(draw.lognormal(3.0, 0.8, SALES), 2),
            "discount": _holes(draw, discount, 0.7, np.nan),
            "channel": pd.Categorical(draw.choice(["shop", "web", "phone"], SALES, p=[0.62, 0.33, 0.05])),
        }
    ).sort_values("sold_at", kind="stable")
    frame.insert(0, "sale_id", np.arange(1, SALES + 1))
    return frame.reset_index(drop=True)


def staff(draw: Draw) -> pd.DataFrame:
    """Staff as a spreadsheet gives it: salaries with thousands separators or `n/k`, dates as texts, mixed grades."""
    salary = draw.integers(190, 930, STAFF) * 100
    hired = _days(draw, "2005-01-01", "2024-11-30", STAFF)
    left = hired + pd.to_timedelta(draw.integers(60, 4_000, STAFF), unit="D")
    gone = (draw.random(STAFF) < 0.3) & (left < "2025-01-01")
    known = draw.random(STAFF) > 0.04
    grade = draw.choice(["1", "2", "3", "4", "senior", "lead"], STAFF, p=[0.25, 0.25, 0.2, 0.1, 0.15, 0.05])
    manager = np.where(np.arange(STAFF) < 30, np.nan, draw.integers(1, 31, STAFF))
    return pd.DataFrame(
        {
            "staff_id": np.arange(1, STAFF + 1),
            "full_name": [f"{last}, {first}" for first, last in _pairs(draw, FIRST, LAST, STAFF)],
            "department": draw.choice(DEPARTMENTS, STAFF, p=_weights(len(DEPARTMENTS))),
            "shop_id": draw.integers(1, SHOPS + 1, STAFF),
            "manager_id": manager,
            "hired_on": hired.strftime("%d/%m/%Y"),
            "left_on": [day if out else None for day, out in zip(left.strftime("%d/%m/%Y"), gone, strict=True)],
            "salary": [f"{pay:,}" if told else "n/k" for pay, told in zip(salary, known, strict=True)],
            "grade": grade,
            "weekly_hours": draw.choice([16.0, 24.0, 37.5, 40.0], STAFF),
        }
    )


def tickets(draw: Draw) -> pd.DataFrame:
    """Support tickets: open ones have no end, most have no rating, subjects carry codes."""
    opened = pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 366 * 24 * 60, TICKETS), unit="min")
    took = pd.to_timedelta(np.round(draw.exponential(2_600, TICKETS)) + 5, unit="min")
    topic = draw.choice(TOPICS, TICKETS, p=_weights(len(TOPICS)))
    closed = pd.Series(opened + took).mask(draw.random(TICKETS) < 0.07)
    code = draw.integers(100, 1_000, TICKETS)
    subject = [f"[{t[:3].upper()}-{number}] {t} question" for t, number in zip(topic, code, strict=True)]
    urgent = draw.random(TICKETS) < 0.05
    return pd.DataFrame(
        {
            "ticket_id": np.arange(500_001, 500_001 + TICKETS),
            "customer_id": draw.integers(10_001, 10_001 + CUSTOMERS, TICKETS),
            "staff_id": pd.array(
                _holes(draw, draw.integers(1, 300, TICKETS).astype(float), 0.1, np.nan), dtype="Int64"
            ),
            "opened_at": opened,
            "closed_at": closed,
            "priority": pd.Categorical(
                draw.choice(["low", "normal", "high"], TICKETS, p=[0.3, 0.55, 0.15]),
                categories=["low", "normal", "high"],
                ordered=True,
            ),
            "topic": topic,
            "subject": [f"URGENT {text}" if flag else text for text, flag in zip(subject, urgent, strict=True)],
            "rating": _holes(draw, draw.integers(1, 6, TICKETS).astype(float), 0.55, np.nan),
        }
    )


def readings(draw: Draw) -> pd.DataFrame:
    """Greenhouse sensors, one reading in ten minutes or so: gaps, faults, and 400 readings that were sent twice."""
    count = READINGS - 400
    sensor = draw.integers(1, 25, count)
    minutes = np.sort(draw.integers(0, 90 * 24 * 6, count)) * 10
    hour = (minutes / 60) % 24
    warmth = 17 + sensor * 0.2 + 6 * np.sin((hour - 8) / 24 * 2 * np.pi) + draw.normal(0, 1.2, count)
    frame = pd.DataFrame(
        {
            "sensor_id": [f"S{number:02}" for number in sensor],
            "taken_at": pd.Timestamp("2024-05-01") + pd.to_timedelta(minutes, unit="min"),
            "temperature": _holes(draw, np.round(warmth, 1), 0.02, np.nan),
            "humidity": _holes(draw, np.round(draw.normal(62, 9, count)).clip(15, 100), 0.03, np.nan),
            "status": pd.Categorical(draw.choice(["ok", "low_battery", "fault"], count, p=[0.95, 0.04, 0.01])),
        }
    )
    twice = frame.sample(400, random_state=SEED)
    return pd.concat([frame, twice]).sort_values(["taken_at", "sensor_id"], kind="stable").reset_index(drop=True)


def _weights(count: int) -> np.ndarray:
    """Falling weights, so that groups are of different sizes."""
    weights = 1 / np.arange(1, count + 1) ** 0.6
    return weights / weights.sum()


def _pairs(draw: Draw, first: list[str], second: list[str], count: int) -> Iterator[tuple[str, str]]:
    return zip(draw.choice(first, count), draw.choice(second, count), strict=True)


def _days(draw: Draw, first: str, last: str, count: int) -> pd.DatetimeIndex:
    span = (pd.Timestamp(last) - pd.Timestamp(first)).days
    return pd.DatetimeIndex(pd.Timestamp(first) + pd.to_timedelta(draw.integers(0, span + 1, count), unit="D"))


def _holes(draw: Draw, values: np.ndarray, share: float, nothing: object = None) -> np.ndarray:
    """The values, a share of them missing."""
    found = values.copy()
    found[draw.random(len(found)) < share] = nothing
    return found


TABLES: Mapping[str, tuple[Callable[[Draw], pd.DataFrame], str]] = {
    "shops": (shops, "csv"),
    "customers": (customers, "parquet"),
    "products": (products, "parquet"),
    "sales": (sales, "parquet"),
    "staff": (staff, "csv"),
    "tickets": (tickets, "parquet"),
    "readings": (readings, "parquet"),
}


def main(folder: Path) -> None:
    """Writes every table."""
    made = {
        name: make(np.random.default_rng([SEED, number])) for number, (name, (make, _)) in enumerate(TABLES.items())
    }
    for name, frame in put_edges(made).items():
        if TABLES[name][1] == "csv":
            frame.to_csv(folder / f"{name}.csv", index=False)
        else:
            frame.to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
