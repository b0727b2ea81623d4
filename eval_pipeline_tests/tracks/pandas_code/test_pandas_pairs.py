"""Pairs of right code and code that is wrong by little: variants refute the latter only, with values data can have."""

from collections import Counter
from typing import Any

import pandas as pd
import pytest

from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared, read_tables
from eval_pipeline_plugins.tracks.pandas_code.robust import variants as variants_module
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import behaviour_of
from eval_pipeline_plugins.tracks.pandas_code.robust.variants import known_candidates, once, tie_breaking
from eval_pipeline_plugins.tracks.pandas_code.variants.hints import read_hints
from eval_pipeline_plugins.tracks.pandas_code.variants.holes import other_holes
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.kinds import derive
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, read

ROWS = 96
TABLE = 'result = orders.pivot_table(index="shop", columns="kind", values="quantity", aggfunc="sum", fill_value=0)'


@pytest.fixture(scope="module")
def tables(home: object, working_sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> PandasShared:
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "tables").mkdir()
    for name, frame in _frames().items():
        frame.to_parquet(folder / "tables" / f"{name}.parquet")
    return read_tables(folder, {})


def _frames() -> dict[str, pd.DataFrame]:
    number = range(1, ROWS + 1)
    due = pd.to_datetime("2024-01-05") + pd.to_timedelta([n // 2 * 4 for n in number], unit="D")
    days = [n * 11 % 29 if n * 11 % 29 != 14 else 15 for n in number]
    orders = pd.DataFrame(
        {
            "order_id": number,
            "shop": [{0: "north", 1: "south", 2: "east", 4: "online"}[n * n % 7] for n in number],
            "kind": [("web", "phone")[n % 2] for n in number],
            "label": [("new", "old", None, "gift")[n * 3 % 11 % 4] for n in number],
            "amount": [None if n % 13 == 5 else 5 + n * 37 % 89 / 2 + n % 4 / 100 for n in number],
            "quantity": [n * 5 % 9 + 1 for n in number],
            "placed": pd.Timestamp("2024-02-20 03:20") + pd.to_timedelta([n * 11 for n in number], unit="h"),
            "due": due,
            "paid": due + pd.to_timedelta(days, unit="D"),
        }
    )
    orders[["placed", "due", "paid"]] = orders[["placed", "due", "paid"]].astype("datetime64[ns]")
    shops = pd.DataFrame({"shop": ["north", "south", "east", "west"], "area": [10, 21, 30, 40]})
    visits = pd.DataFrame({"shop": ["north", "north", "south", "east", "north", "south", "west"], "visitor": range(7)})
    return {"orders": orders, "shops": shops, "visits": visits}


def _gold(tables: PandasShared, code: str, question: str = "Which?", ordered: bool = False, **more: Any) -> Any:
    used = [name for name in ("orders", "shops", "visits") if name in code or name == "orders"]
    turn = {"question": question, "code": code, "ordered": ordered}
    return read({"id": "c", "tables": used, "turns": [turn], **more}, tables).turns[0].gold


@needs_sandbox
@pytest.mark.parametrize("pair", golden("pandas_pairs.yaml"), ids=lambda pair: pair["kind"])
def test_pairs(pair: dict[str, Any], tables: PandasShared) -> None:
    gold = _gold(tables, pair["reference"], pair["question"], pair.get("ordered", False))
    found = {code: behaviour_of(gold, code) for code in [*pair["right"], *pair["wrong"]]}
    told = {code: None if one is None else all(one.right) for code, one in found.items()}
    assert told == {**dict.fromkeys(pair["right"], True), **dict.fromkeys(pair["wrong"], False)}


@needs_sandbox
def test_where_given_tables_have_empty_groups_or_the_case_says_so_other_ways_count(tables: PandasShared) -> None:
    few = TABLE.replace("orders.", 'orders[orders["order_id"] < 4].')
    assert [len(tie_breaking(_gold(tables, code)) or ()) for code in (TABLE, few)] == [2, 1]
    allowed = _gold(tables, TABLE, may_be_empty=True)
    assert len(tie_breaking(allowed) or ()) == 1
    other = behaviour_of(allowed, TABLE.replace(", fill_value=0", ""))
    assert other is not None and not all(other.right)


@needs_sandbox
def test_a_counterexample_is_not_shrunk_into_empty_groups(tables: PandasShared) -> None:
    found = behaviour_of(_gold(tables, TABLE), TABLE.replace('"sum"', '"max"'))
    assert found is not None
    assert " 0" not in found.counterexample["expected"]  # each order has a quantity


@needs_sandbox
def test_what_the_sandbox_fails_at_is_neither_an_error_nor_kept(
    tables: PandasShared, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = _gold(tables, TABLE.replace("sum", "min"))
    for failed in ([[None, None]], [[None, {"kind": "value", "value": 1}]]):
        monkeypatch.setattr(variants_module, "outcomes_on", lambda *_, failed=failed, **more: failed)
        assert known_candidates(gold) == []
        for cached in (once, tie_breaking, variants_module._other_holes):  # as in the next run
            cached.cache_clear()
    monkeypatch.undo()
    assert known_candidates(gold)


@needs_sandbox
def test_a_case_names_columns_of_its_tables(tables: PandasShared) -> None:
    with pytest.raises(CaseError, match="colour"):
        _gold(tables, TABLE, unique={"orders": ["order_id", ["due", "colour"]]})


def _derived(code: str, frames: dict[str, pd.DataFrame], **more: Any) -> list[tuple[str, dict[str, pd.DataFrame]]]:
    columns = {column for frame in frames.values() for column in frame}
    hints = read_hints(code, columns, "seed") | {"many": True, "unique": {}, "may_be_empty": False} | more
    return [(variant["kind"], built) for variant, built in derive(frames, hints)]


PANEL = 'result = orders.pivot(index="due", columns="kind", values="quantity")'
MONTHS = 'result = int((orders.resample("MS", on="due")["quantity"].sum() > 71).sum())'


def test_what_looks_like_a_key_or_is_declared_stays_different() -> None:
    frames = {"orders": _frames()["orders"]}
    assert not any(built["orders"].duplicated(["due", "kind"]).any() for _, built in _derived(PANEL, frames))
    labels = PANEL.replace("due", "label")
    assert any(built["orders"].duplicated(["label", "kind"]).any() for _, built in _derived(labels, frames))
    declared = {"orders": [["label", "kind"], ["amount"]]}
    for _, built in _derived(labels, frames, unique=declared):
        known = built["orders"].dropna(subset=["label", "amount"])
        assert not known.duplicated(["label", "kind"]).any() and known["order_id"].is_unique
    ties = [built["orders"]["amount"].dropna().is_unique for kind, built in _derived(TABLE, frames) if kind == "ties"]
    assert ties  # amounts are not mentioned, so they are not changed
    ranked = 'result = orders.nlargest(3, "amount", keep="all")'
    assert not all(built["orders"]["amount"].dropna().is_unique for _, built in _derived(ranked, frames))


def test_variants_of_which_nothing_would_be_changed_are_left_out_unless_they_are_small() -> None:
    frames = {"orders": _frames()["orders"]}
    quantity = 'result = orders.groupby("shop")["quantity"].sum()'
    codes = (
        quantity,
        quantity.replace("quantity", "amount"),
        quantity.replace("orders", "orders[orders.order_id > 3]"),
    )
    plain, missing, filtered = (Counter(kind for kind, _ in _derived(code, frames, many=False)) for code in codes)
    assert plain["boundaries"] == plain["empty groups"] == plain["one row"] == 1
    assert missing - plain == Counter(["missing values", "mixed"])
    assert filtered - plain == Counter(["boundaries", "mixed"])


def test_values_stay_within_those_of_the_columns() -> None:
    frames = {"orders": _frames()["orders"]}
    found = _derived(MONTHS, frames)
    assert {"computed edge", "ends of periods"} <= {kind for kind, _ in found}
    for _, built in found:
        for column in ("quantity", "due", "amount"):
            values, given = built["orders"][column].dropna(), frames["orders"][column]
            assert values.between(given.min(), given.max()).all()
    sums = [built["orders"].resample("MS", on="due")["quantity"].sum() for kind, built in found if "edge" in kind]
    assert all((one == 71).any() for one in sums)


def test_tables_are_without_rows_only_where_the_case_says_so() -> None:
    frames = {"orders": _frames()["orders"]}
    assert min(len(built["orders"]) for _, built in _derived(MONTHS, frames)) > 0
    assert min(len(built["orders"]) for _, built in _derived(MONTHS, frames, may_be_empty=True)) == 0


@pytest.mark.parametrize(
    ("code", "gap", "by_row"),
    [
        ("df = df[df['k'] > 1]\ndf = df.assign(x=df['x'] * 2)\nresult = df[df['x'] * 1 > 4]", "df[df['k'] > 1]", True),
        ("df['x'] = df['x'] * 2\nresult = df.query('x + 1 > 4')", "df.assign(**{'x': df['x'] * 2})['x'] + 1 - 4", True),
        ("g = df.groupby('k')['x'].sum()\nresult = g[g.ge(4)]", "df.groupby('k')['x'].sum() - 4", False),
        ("m = df.merge(o, on='k')\nresult = m.loc[lambda d: d['x'] * 2 > 4]", "df.merge(o, on='k')['x'] * 2 - 4", True),
        ("result = df[df['x'] > 4]", "", True),
        ("result = df[df['k'] == 'a']", "", True),
    ],
)
def test_names_are_followed_to_what_they_stood_for(code: str, gap: str, by_row: bool) -> None:
    found = read_hints(code, ["x", "k"], "")["conditions"][-1]
    assert gap in found["gap"] and bool(gap) == bool(found["gap"])
    assert bool(found["condition"]) == by_row


@pytest.mark.parametrize(
    ("code", "unit", "window"),
    [
        ("result = df['d'].dt.month", "month", ""),
        ("result = df.resample('2D', on='d')['x'].sum()", "day", ""),
        ("result = df.set_index('d').resample('h')['x'].sum()", "hour", ""),
        ("result = df.groupby(pd.Grouper(key='d', freq='MS')).size()", "month", ""),
        ("result = df.set_index('d')['x'].rolling('36h').sum()", "", "36h"),
    ],
)
def test_periods_of_dates_are_read(code: str, unit: str, window: str) -> None:
    (found,) = read_hints(code, ["d", "x"], "")["periods"]
    assert (found["unit"], found["window"], found["columns"]) == (unit, window, ["d"])


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("result = df['x'].sum()", 0),
        ("result = df.groupby('k', observed=True)['x'].sum()", 0),
        ("result = df.groupby('k', observed=False)['x'].sum()", 1),
        ("result = df.groupby('k').resample('D', on='day')['x'].sum().unstack()", 2),
        ("p = df['day'].dt.to_period('M')\nresult = df.groupby(p)['x'].sum()", 1),
        ("result = df.groupby(df['day'].dt.to_period('M')).size() + df.groupby('k').size()", 1),
        ("result = df.set_index('day').asfreq('D').reindex(columns=['x'])", 2),
        ("result = [" + "df['k'].value_counts(), " * 9 + "]", 4),
    ],
)
def test_one_call_is_changed_at_a_time(code: str, count: int) -> None:
    found = other_holes(code)
    assert len({*found, code}) == len(found) + 1 == count + 1
