"""Tables about which the wrong answers of `golden/pandas_mending.yaml` are."""

from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared, read_tables

_ORDERS, _READINGS = 90, 80


def market(folder: Path) -> PandasShared:
    """The tables as the cases of a suite share them; the same rows each time."""
    place = folder / "tables"
    place.mkdir(parents=True)
    draw = Random(42)
    for name, rows in (("orders", _orders(draw)), ("customers", _customers()), ("readings", _readings(draw))):
        pd.DataFrame(rows).to_parquet(place / f"{name}.parquet")
    return read_tables(folder, {})


def _orders(draw: Random) -> list[dict[str, Any]]:
    def row(number: int) -> dict[str, Any]:
        at = pd.Timestamp("2022-11-03") + pd.Timedelta(hours=draw.randrange(24 * 500))
        shipped = at + pd.Timedelta(hours=draw.randrange(6, 24 * 40))
        return {
            "order_id": 1000 + number,
            "customer_id": draw.randrange(1, 17),
            "region": draw.choice(["north", "south", "west", "east"]),
            "product": draw.choice(["tea", "coffee", "cocoa", "juice", "water"]),
            "channel": draw.choice(["web", "web", "shop", "phone", "test"]),
            "amount": draw.choice([50.0, 100.0, round(draw.uniform(5, 400), 2), round(draw.uniform(5, 160), 2)]),
            "quantity": draw.randrange(1, 12),
            "discount": draw.choice([None, 0.05, 0.1, 0.15, 0.25]),
            "ordered_at": at,
            "shipped_at": None if draw.random() < 0.1 else shipped,
        }

    return [row(number) for number in range(_ORDERS)]


def _customers() -> list[dict[str, Any]]:
    names = "Ann,ann ,Bo,Cem,cem, Dora,Eli,Finn,Gro,gro ,Hal,Ida,Jon,Kai,Liv,Mo".split(",")
    return [
        {
            "customer_id": number + 3,
            "name": name,
            "email": f"{name.strip().lower()}@{('shop.no', 'Shop.se', 'mail.org')[number % 3]}",
            "country": ("NO", "SE", "DK", "NO", "FI")[number % 5],
            "segment": ("home", "firm", "state")[number * 7 % 3],
        }
        for number, name in enumerate(names)
    ]


def _readings(draw: Random) -> list[dict[str, Any]]:
    hours = draw.sample(range(24 * 20), _READINGS)
    return [
        {
            "reading_id": number,
            "station": draw.choice(["A", "B", "C"]),
            "measured_at": pd.Timestamp("2024-03-25") + pd.Timedelta(hours=hour),
            "value": None if draw.random() < 0.15 else round(draw.uniform(-5, 25), 1),
            "level": draw.randrange(1, 9),
        }
        for number, hour in enumerate(hours)
    ]
