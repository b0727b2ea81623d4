"""Rows at the edges of what the questions ask: without them wrong code would give the right result.

Each edit names the code that it tells from the right one; `eval-pipeline validate --mutants --suite pandas_sample`
shows what is left.
"""

from collections.abc import Callable, Mapping

import pandas as pd

Tables = dict[str, pd.DataFrame]


def shops(tables: Tables) -> None:
    """`>` for `>=` at 2010-01-01; an outer join, by a region that has neither sales nor staff."""
    frame = tables["shops"]
    frame.loc[5, "opened_on"] = "2010-01-01"
    isle = {"shop_id": 41, "shop_name": "Ellen Isle 41", "city": "Ellen Isle", "region": "isles"}
    frame.loc[len(frame)] = {**isle, "opened_on": "2024-11-30", "floor_area": 310.0}


def customers(tables: Tables) -> None:
    """`<=` for `<` at 2020-01-01; another second key, by a tie among the newest."""
    frame = tables["customers"]
    club = frame[(frame["segment"] == "club") & (frame["city"] == "Dunmere")].index
    frame.loc[club[0], "signed_up"] = pd.Timestamp("2020-01-01")
    newest = frame["signed_up"].nlargest(3, keep="first").index
    frame.loc[newest[1], "signed_up"] = frame.loc[newest[0], "signed_up"]


def products(tables: Tables) -> None:
    """`>=` for `>` at 5 kg, 60, a mean; `contains` for `startswith`; the edge of a band; a category without sales."""
    frame = tables["products"]
    known = frame.index[frame["weight"].str.endswith(" kg", na=False)]
    frame.loc[known[0], "weight"] = "5 kg"
    tools = frame.index[(frame["category"] == "tools") & (frame["price"] > 70) & ~frame["discontinued"]]
    frame.loc[tools[0], "price"] = 60.0
    frame.loc[frame.index[frame["price"].between(28, 32)][0], "price"] = 30.0
    frame.loc[frame.index[frame["product_name"].str.endswith("Tray")][0], "product_name"] = "Little Giant Tray"
    ladder = {"product_id": "P1001", "product_name": "Plain Ladder", "category": "ladders", "price": 74.5, "cost": 40.0}
    frame.loc[len(frame)] = {**ladder, "weight": "9.2 kg", "discontinued": False}


def sales(tables: Tables) -> None:
    """`>` and `<=` at the ends of January 2024; no sorting, by two rows that have changed places; an unknown shop."""
    frame = tables["sales"]
    seven = frame[frame["shop_id"] == 7]
    january = seven.index[seven["sold_at"].between("2024-01-01", "2024-01-31 23:59")]
    february = seven.index[seven["sold_at"] >= "2024-02-01"]
    frame.loc[january[0], "sold_at"] = pd.Timestamp("2024-01-01")
    frame.loc[february[0], "sold_at"] = pd.Timestamp("2024-02-01")
    _change_places(frame, january[2], january[3])
    frame.loc[frame.index[-3:], "shop_id"] = 99


def staff(tables: Tables) -> None:
    """`>` for `>=` at 37; a tie for the largest salary; an unknown manager; a department of one without tickets."""
    frame = tables["staff"]
    frame.loc[11, "weekly_hours"] = 37.0
    known = pd.to_numeric(frame["salary"].str.replace(",", ""), errors="coerce")
    sales_staff = known[frame["department"] == "sales"].nlargest(2, keep="first").index
    frame.loc[sales_staff[1], "salary"] = frame.loc[sales_staff[0], "salary"]
    frame.loc[21, "manager_id"] = 9999.0
    called = set(tables["tickets"]["staff_id"].dropna())
    quiet = next(row for row in reversed(frame.index) if frame.loc[row, "staff_id"] not in called)
    frame.loc[quiet, ["department", "salary"]] = ["archive", "n/k"]


def tickets(tables: Tables) -> None:
    """`contains` for `startswith`; `>` and `<` at midnight, at a sale and 14 days after one."""
    frame, bought = tables["tickets"], tables["sales"].dropna(subset="customer_id")
    high = frame.index[(frame["priority"] == "high") & (frame["topic"] == "stock")]
    frame.loc[high[0], "subject"] = "Re: URGENT " + frame.loc[high[0], "subject"]
    frame.loc[high[1], ["opened_at", "rating"]] = [pd.Timestamp("2024-12-01"), 1.0]
    refunds = iter(frame.index[frame["topic"] == "refund"])
    for days in (0, 14):
        after = pd.Timedelta(days=days)
        sold = None
        while sold is None:
            row = next(refunds)
            sold = _alone(bought.loc[bought["customer_id"] == frame.loc[row, "customer_id"], "sold_at"], after)
        frame.loc[row, "opened_at"] = sold + after


def readings(tables: Tables) -> None:
    """No sorting, by a missing value of S11 that has changed places with the known one before it."""
    frame = tables["readings"]
    rows = frame.index[(frame["sensor_id"] == "S11") & ~frame.duplicated(keep=False)]
    missing = frame.loc[rows, "temperature"].isna().to_numpy()
    pairs = zip(rows, rows[1:], missing, missing[1:], strict=False)
    before, after = next((one, other) for one, other, first, second in pairs if second and not first)
    _change_places(frame, before, after)


def _alone(sold: pd.Series, after: pd.Timedelta) -> pd.Timestamp | None:
    """Returns a sale after which a ticket may come so much later and have no other sale in the 14 days before it."""
    for moment in sold:
        gaps = moment + after - sold
        if ((gaps >= pd.Timedelta(0)) & (gaps <= pd.Timedelta(days=14))).sum() == 1:
            return moment
    return None


def _change_places(frame: pd.DataFrame, one: int, other: int) -> None:
    first, second = frame.loc[one].copy(), frame.loc[other].copy()
    frame.loc[one], frame.loc[other] = second, first


EDGES: Mapping[str, Callable[[Tables], None]] = {
    one.__name__: one for one in (shops, customers, products, sales, tickets, staff, readings)
}


def put_edges(tables: Tables) -> Tables:
    """Returns the tables with rows at the edges; columns keep their dtypes."""
    dtypes = {name: frame.dtypes for name, frame in tables.items()}
    for put in EDGES.values():
        put(tables)
    return {name: frame.astype(dtypes[name]) for name, frame in tables.items()}
