"""Codes that share steps, and variants that are built together, are as each alone; what they share is done once."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.inside.encode import encode
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.cases import expected
from eval_pipeline_plugins.tracks.pandas_code.robust import running
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import normal_code, normal_mutants, turn_mutants
from eval_pipeline_plugins.tracks.pandas_code.variants.inside import sharing
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.building import (
    Recipe,
    Tables,
    build,
    build_all,
    shuffled,
    turned,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.facts import Hints
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.kinds import derive
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.running import outcome
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.sharing import Codes, SharedRunner, content
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Known, mutants_of
from eval_pipeline_plugins.tracks.pandas_code.variants.steps import _BEFORE_OUT, _METHODS, leaves_nothing, split

MOST = 1_000_000
PER_AREA = """\
big = orders[(orders["amount"] > 12) & orders["kind"].isin(["web", "phone"])]
merged = big.merge(shops, on="shop", how="left")
totals = merged.assign(net=merged["amount"] * (1 - merged["rate"].fillna(0))).groupby("area")["net"].sum()
result = totals.reset_index().sort_values("net", ascending=False).head(3)
"""
BY_YEAR = """\
paid = pd.to_datetime(orders["paid_on"])
late = orders.loc[paid.dt.year == 2024, ["shop", "amount"]]
result = late.groupby("shop").agg(total=("amount", "sum"), largest=("amount", "max"))
"""
WORDS = """\
areas = {shop: area for shop, area in [("north", 1), ("south", 2)]}
parts = orders["kind"].str.split("o").str[0].map(lambda text: text.upper() if text else "none")
result = [int((parts == "PH").sum()), round(float(orders["amount"].mean()), 2), areas["north"], -orders["amount"].max()]
"""
SPLIT = (PER_AREA, BY_YEAR, WORDS)
NAMES = ("orders", "shops")
WHOLE = (
    'nothing = orders.sort_values("amount", inplace=True)\nresult = int(orders["amount"].iloc[0] * 10)',
    'orders["amount"] = orders["amount"] * 2\nresult = orders["amount"].sum()',
    'kinds = orders.pop("kind")\nresult = kinds.nunique() + orders.shape[1]',
    'orders.columns = ["a", "b", "c", "d"]\nresult = orders["c"].sum()',
    'total = 0\nfor value in orders["amount"].dropna():\n    total += value\nresult = total',
    "def large(table):\n    return table[table.amount > 12]\nresult = large(orders)",
    'result = orders.sample(5)["amount"].sum()',
    'least = 12\nresult = orders.query("amount > @least").shape[0]',
    'names = ["shop"]\nresult = orders[[*names]].drop_duplicates().shape[0]',
    'result = [*map(len, orders["shop"].unique())]',
    'pairs = zip(orders["shop"], orders["kind"])\nresult = len(list(pairs)) + len(list(pairs))',
    'options = {"ascending": False}\nresult = orders.sort_values("amount", **options).iloc[0]["shop"]',
    'texts = []\nresult = [texts.append(text) for text in orders["shop"]] and len(texts)',
    "areas = shops.area.to_numpy(copy=True)\nmore = np.add(areas, 1, out=areas)\nresult = areas.sum()",
    "pd = orders\nresult = len(pd)",
    "orders = orders.head(3)",
)
CHANGING = (
    "found = [0 for pd.Series.sum in [pd.Series.mean]]\nresult = len(orders)",
    'found = [0 for orders["shop"] in [1]]\nresult = len(orders)',
    "found = {0: 1 for pd.left, kind in [(1, 2)]}\nresult = len(orders)",
    "found = [0 for [*one] in [[1]]]\nresult = len(orders)",
    'areas = shops["area"].map(lambda cell: cell.partition(0))\nresult = len(areas)',
    'areas = shops["area"].to_numpy()\nmore = np.maximum(areas, 1, areas)\nresult = areas.sum()',
    'areas = shops["area"].to_numpy()\nmore = np.sqrt(areas, areas)\nresult = areas.sum()',
    'areas = shops["area"].to_numpy()\nmore = areas.clip(1, 2, areas)\nresult = areas.sum()',
    'areas = shops["area"].to_numpy()\nmore = areas.cumsum(0, int, areas)\nresult = areas.sum()',
    'areas = shops["area"].to_numpy()\nmore = shops["area"].pipe(np.maximum, 1, areas)\nresult = areas.sum()',
)
"""Code that would change what the tests themselves use."""


@pytest.fixture
def tables() -> Tables:
    rng = np.random.default_rng(3)
    amounts = np.where(rng.random(60) < 0.1, np.nan, rng.integers(0, 40, 60))
    orders = {"shop": rng.choice(["north", "south", "east"], 60), "kind": rng.choice(["web", "phone", "post"], 60)}
    days = pd.Series(pd.date_range("2023-11-01", periods=60).strftime("%Y-%m-%d"))
    shops = pd.DataFrame({"shop": ["north", "south", "west"], "area": [10, 20, 10], "rate": [0.5, None, 0.1]})
    return {"orders": pd.DataFrame({**orders, "amount": amounts, "paid_on": days}), "shops": shops}


def _mutants(code: str, tables: Tables) -> list[str]:
    dtypes = {name: {str(column): str(dtype) for column, dtype in one.dtypes.items()} for name, one in tables.items()}
    return [code, *(one.code for one in mutants_of(code, Known(dtypes, {"kind": ("web", "phone")})))]


def _codes(codes: list[str], tables: Tables) -> Codes:
    return Codes(split(codes, [*tables]).told())


def _alone(code: str, tables: Tables) -> bytes:
    return encode(outcome(compile(code, "<snippet>", "exec"), tables), MOST)


def test_codes_that_share_steps_have_the_results_that_each_has_alone(
    tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [text for code in SPLIT for text in _mutants(code, tables)] + [*WHOLE]
    codes = _codes(texts, tables)
    assert len(texts) > 40
    for some in (tables, turned(tables), shuffled(tables, 1), {name: one.head(1) for name, one in tables.items()}):
        before = {name: one.copy() for name, one in some.items()}
        shared = SharedRunner(codes, some)
        with capsys.disabled():
            assert [encode(shared.outcome(place), MOST) for place in range(len(texts))] == [
                _alone(text, some) for text in texts
            ]
        for name, one in some.items():
            pd.testing.assert_frame_equal(one, before[name])


@pytest.mark.parametrize("code", SPLIT)
def test_reference_code_and_its_mutants_are_split(code: str, tables: Tables) -> None:
    assert not [one for one in split(_mutants(code, tables), [*tables]).codes if isinstance(one, str)]


@pytest.mark.parametrize("code", [*WHOLE, *CHANGING])
def test_code_of_which_it_is_not_known_that_it_can_be_shared_stays_whole(code: str, tables: Tables) -> None:
    assert split([PER_AREA, code], [*tables]).codes[1] == code


def test_it_is_known_which_argument_a_function_of_numpy_writes_into() -> None:
    """The first argument of a method is the array itself."""
    found: dict[str, int] = {}
    for name in _METHODS | _BEFORE_OUT.keys():
        for one in (getattr(np, name, None), getattr(np.ndarray, name, None)):
            if callable(one) and not isinstance(one, type) and (place := _place_of_out(one)):
                assert found.setdefault(name, place) == place
    assert found | {"pipe": 1} == _BEFORE_OUT


def _place_of_out(function: Any) -> int | None:
    if isinstance(function, np.ufunc):
        return function.nin
    named = [one.name for one in inspect.signature(function).parameters.values() if one.kind is not one.KEYWORD_ONLY]
    return named.index("out") if "out" in named else None


def test_code_leaves_nothing_if_it_can_be_shared_and_names_only_functions_that_are_known() -> None:
    assert leaves_nothing([PER_AREA, BY_YEAR, WORDS, PER_AREA.replace("left", "inner")], NAMES)
    for end in (
        ".pipe(pd.set_option, 3)",
        ".map(pd.options.__setattr__)",
        ".pipe(pd.DataFrame.to_pickle)",
        ".map(shops.insert)",
        ".transform('eval', expr='@np.f2py.os.getpid()')",
        ".apply('eval', expr='1')",
        ".agg('to_pickle', path='x')",
        ".agg(['sum', 'insert'])",
        ".agg(x=('net', 'to_csv'))",
        ".apply(np.f2py.os.getpid)",
        "; pd.left = 1",
        "; exec('1')",
        ".to_csv('a')",
    ):
        assert not leaves_nothing([f"{PER_AREA}\nresult = result{end}"], NAMES), end
    assert not any(leaves_nothing([code], NAMES) for code in (*WHOLE, *CHANGING))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands for running something in the sandbox, which takes too long."""
    run = Mock(return_value=SnippetFailed(ErrorClass.TIMEOUT, "", "", 0.0, "bwrap"))
    monkeypatch.setattr(running, "sandbox", lambda layer: Mock(run=run))
    return run


@dataclass(frozen=True, eq=False)
class Gold:
    """A turn's gold, as far as it is needed to run its code."""

    code: str
    context: Any


GOLD: Any = Gold(code=PER_AREA, context=SimpleNamespace(paths=dict.fromkeys(NAMES), layer=None, tables=(), columns={}))


def test_no_process_is_kept_that_changed_code_was_in_unless_no_answer_has_a_part_in_it(runs: Mock) -> None:
    by_rule = [turn_mutants(GOLD)[0].code, normal_mutants(GOLD)[-1].code]
    lent = normal_code(GOLD, PER_AREA).replace("'phone'", "'an answer'")
    for mutants in ([], by_rule[:1], by_rule):
        assert running.examined_on(GOLD, [{}], [PER_AREA], mutants) is None
        assert runs.call_args.kwargs["leaves_nothing"], mutants
    for mutants in ([lent], [*by_rule, lent], [f"{by_rule[0]} "], [PER_AREA]):
        runs.reset_mock()
        assert running.examined_on(GOLD, [{}], [PER_AREA], mutants) is None
        running.shared_results(GOLD, mutants, [{}])
        running.results_of(GOLD, mutants, [{}])
        assert not any(call.kwargs["leaves_nothing"] for call in runs.call_args_list if len(mutants) == 1), mutants
        assert not runs.call_args_list[0].kwargs["leaves_nothing"], mutants
    other: Any = Gold(code=PER_AREA.replace(".head(3)", ".sample(3)"), context=GOLD.context)
    running.examined_on(other, [{}], [PER_AREA], [turn_mutants(other)[0].code])
    assert not runs.call_args.kwargs["leaves_nothing"]


def test_the_result_of_reference_code_is_computed_where_its_variants_are(
    runs: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected, "sandbox", lambda layer: Mock(run=runs))
    for code in (PER_AREA, PER_AREA.replace(".head(3)", ".sample(3)")):
        assert expected._result(tmp_path / "none", code, tuple((name, tmp_path) for name in NAMES), None)
    assert [call.kwargs["leaves_nothing"] for call in runs.call_args_list] == [True, False]


@pytest.mark.parametrize("ours", [True, False])
def test_parts_of_what_takes_too_long_run_where_all_of_it_did(ours: bool, runs: Mock) -> None:
    running.outcomes_on(GOLD, [{}] * 12, [PER_AREA], ours=ours)
    assert [call.kwargs["leaves_nothing"] for call in runs.call_args_list] == [ours] * 4


def test_what_codes_have_in_common_is_computed_once(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _mutants(PER_AREA, tables)
    codes = _codes(texts, tables)
    merge = Mock(side_effect=pd.DataFrame.merge)
    monkeypatch.setattr(pd.DataFrame, "merge", lambda *given, **more: merge(*given, **more))
    shared = SharedRunner(codes, tables)
    assert all(shared.outcome(place)[0] == "ran" for place in range(3))
    for place in range(3, len(texts)):
        shared.outcome(place)
    ways = {tuple(text.splitlines()[:2]) for text in texts}  # in which the tables come to be joined
    assert 1 < merge.call_count < len(ways) < len(texts)  # some filters keep the same rows


def test_a_filter_that_keeps_the_same_rows_is_followed_by_nothing_new(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = 'kept = orders[orders["amount"] > 12.5]\nresult = kept.groupby("shop")["amount"].sum()'
    codes = _codes([code, code.replace("> 12.5", ">= 12.5"), code.replace("> 12.5", "< 12.5")], tables)
    shared = SharedRunner(codes, tables)
    first, same, other = (shared.outcome(place) for place in range(3))
    assert same is first
    assert other is not first and encode(other, MOST) != encode(first, MOST)


def test_a_step_that_fails_fails_all_codes_that_need_it_and_no_others(tables: Tables) -> None:
    code = 'known = orders["nothing"]\nresult = known.sum()'
    others = [code.replace("sum", "max"), 'unused = orders["nothing"]\nresult = 1', "result = len(orders)"]
    shared = SharedRunner(_codes([code, *others], tables), tables)
    assert [shared.outcome(place) for place in range(4)] == [["failed", "KeyError"]] * 3 + [["ran", 60]]


SERIES = pd.Series([1.0, 2.0, None], name="a")


@pytest.mark.parametrize(
    "other",
    [
        SERIES.rename("b"),
        SERIES.set_axis([0, 1, 3]),
        SERIES.set_axis([0, 1, 2]),
        SERIES.rename_axis("row"),
        SERIES.astype("float32"),
        SERIES.fillna(0),
        SERIES.to_frame(),
        SERIES.iloc[::-1].reset_index(drop=True),
        pd.Series([0.0, 2.0, None], name="a"),
    ],
)
def test_values_that_code_can_distinguish_are_not_taken_for_each_other(other: object) -> None:
    assert content(SERIES.copy()) == content(SERIES)
    assert content(other) != content(SERIES)


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), (np.int64(1), 1), (None, None)])
def test_numbers_and_texts_are_the_same_only_with_their_type(one: object, other: object) -> None:
    assert content(one) != content(other)
    assert sharing.content(7) == content(7)


def test_variants_built_together_are_those_built_alone() -> None:
    given = {
        "a": pd.DataFrame({"n": [1, 2, 3], "t": ["x", None, "z"]}),
        "b": pd.DataFrame({"n": [1.5, None]}, index=["u", "v"]),
    }
    recipes: list[dict[str, Recipe]] = [
        {"a": {"rows": [2, 0], "cells": {"n": [[1, 1]]}, "values": {"t": [[0, "new"]]}}, "b": {"rows": [1]}},
        {},
        {"a": {"rows": []}},
        {"a": {"rows": [1, 1, 1], "cells": {"n": [[0, 2]]}, "values": {"n": [[2, 9]], "t": [[0, "new"]]}}},
    ]
    for built, one in zip(build_all(given, recipes), recipes, strict=True):
        alone = build(given, one)
        assert [*built] == [*alone] == ["a", "b"]
        for name in alone:
            pd.testing.assert_frame_equal(built[name], alone[name])
            assert type(built[name].index) is type(alone[name].index)


def test_rows_in_another_order_are_numbered_anew_and_the_given_ones_stay_as_they_are() -> None:
    given = pd.DataFrame({"n": [1, 2, 3], "t": ["x", None, "z"]}, index=pd.Index(["u", "v", "w"], name="i"))
    before = given.copy(deep=True)
    for found in (turned({"a": given}), shuffled({"a": given}, 1), turned({"a": given.head(0)})):
        assert type(found["a"].index) is pd.RangeIndex
        assert found["a"].index.name is None
    assert turned({"a": given})["a"]["n"].tolist() == [3, 2, 1]
    assert sorted(shuffled({"a": given}, 1)["a"]["n"]) == [1, 2, 3]
    pd.testing.assert_frame_equal(given, before)


def test_a_variant_that_cannot_be_built_is_left_out_alone() -> None:
    small = pd.DataFrame({"n": pd.Series([1, 2, 3, 4] * 10, dtype="uint8")})
    condition = {"condition": "df['n'] > 0", "operand": "df['n']", "columns": ["n"], "constants": [0], "bare": True}
    hints: Hints = {"columns": ["n"], "conditions": [{**condition, "within": False, "gap": ""}], "seed": 1}
    hints |= {key: [] for key in ("periods", "groups", "keys", "counts", "texts")}
    hints |= {"many": False, "may_be_empty": False, "unique": {}}
    found = [*derive({"df": small}, hints)]
    assert {one["kind"] for one, _ in found} > {"rows", "ties"}
    values = [value for one, _ in found for _, value in one["tables"]["df"].get("values", {}).get("n", [])]
    assert -1 not in values  # which the column cannot have
    assert all(built["df"]["n"].dtype == "uint8" for _, built in found)
