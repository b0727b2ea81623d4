"""Results compared with expected ones: pairs worked by hand, and what holds of all."""

import json
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eval_pipeline.sandbox.inside.encode import encode
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import ResultComparison, compare
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import read_result
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("pandas_comparison.yaml")
CALLED_EQUAL_BY_PANDAS = ("pandas compares", "other dtypes", "another unit", "as floats", "the same instants")
Golden = dict[str, Any]


def value_of(expression: str) -> Any:
    names: dict[str, Any] = {"pd": pd, "np": np}
    for name, code in GOLDEN["given"].items():
        names[name] = eval(code, names)
    return eval(expression, names)


def told(result: Any) -> Any:
    return json.loads(encode(result, 1_000_000))


def compared(generated: Any, expected: Any, **more: Any) -> ResultComparison:
    return compare(told(generated), told(expected), **more)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: f"{case['g']} for {case['e']}")
def test_pairs_of_results(case: Golden) -> None:
    found = compared(
        value_of(case["g"]), value_of(case["e"]), ordered=case.get("ordered", False), order_keys=case.get("keys", ())
    )
    assert found.equal is case["same"], found.why
    assert found.score == pytest.approx(1.0 if case["same"] else case["f1"], abs=1e-4)
    assert bool(found.why) is not case["same"]


def test_no_result_makes_comparing_take_quadratic_time() -> None:
    """Integers that all have one hash would be looked for one by one."""
    numbers = [(2**61 - 1) * n for n in range(2, 1000)]
    assert len(set(map(hash, numbers))) == 1
    for cells in (numbers, [Decimal(number) for number in numbers]):
        (column,) = read_result(told(cells)).columns
        assert len(set(map(hash, column.cells))) > 900
    assert compared([10**20, 10**400], [1e20, 10**400]).equal
    assert not compared([10**400], [10**400 + 1]).equal


@pytest.mark.parametrize(
    "case",
    [case for case in GOLDEN["cases"] if case["same"] and case["source"].startswith(CALLED_EQUAL_BY_PANDAS)],
    ids=lambda case: f"{case['g']} for {case['e']}",
)
def test_pandas_itself_calls_equal_what_differs_in_its_dtype_alone(case: Golden) -> None:
    generated, expected = pd.DataFrame(_series(case["g"])), pd.DataFrame(_series(case["e"]))
    pd.testing.assert_frame_equal(generated, expected, check_dtype=False, check_categorical=False)


def _series(expression: str) -> Any:
    value = value_of(expression)
    return value if isinstance(value, pd.DataFrame | pd.Series) else [value]


def test_the_first_difference_is_told() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert compared(frame[["a"]], frame).why == "missing: b"
    assert compared(frame.assign(c=1), frame).why == "not asked for: c"
    assert compared(frame.head(1), frame).why == "expected 2 rows, got 1"
    assert compared(5, frame).why == "expected a frame, got a value"


def test_an_expected_result_that_is_none_of_the_sandbox_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a result of the sandbox"):
        compare(told(1), {"rows": []})


DEEP: Any = 1
for _ in range(900):
    DEEP = {"t": "list", "v": [DEEP]}


@pytest.mark.parametrize(
    "forged",
    [
        None,
        {"kind": "frame", "columns": [1], "index": []},
        {"kind": "frame", "columns": [{"name": "a", "values": [1]}, {"name": "b", "values": [1, 2]}], "index": []},
        {"kind": "array", "values": {"name": None, "values": [1]}, "shape": ["x", "y"]},
        {"kind": "array", "values": {"name": None, "values": [1]}, "shape": [1, 10**9]},
        {"kind": "value", "value": {"t": "float", "v": "many"}},
        {"kind": "value", "value": {"t": "decimal", "v": "1E+999999999"}},
        {"kind": "value", "value": {"t": "decimal", "v": "sNaN"}},
        {"kind": "value", "value": {"t": "datetime", "v": "2024-99-99T00:00:00+99:99"}},
        {"kind": "value", "value": {"t": "dict", "v": [[1]]}},
        {"kind": "value", "value": DEEP},
    ],
    ids=range(11),
)
def test_a_result_that_a_snippet_forged_is_another_result(forged: Any) -> None:
    found = compare(forged, told(pd.DataFrame({"a": [1, 2]})))
    assert not found.equal
    assert found.score == 0


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("tvkn"), inner, max_size=3),
)
forgeries = st.builds(
    lambda kind, rest: {"kind": kind, **rest},
    st.sampled_from(["frame", "series", "array", "value"]),
    st.dictionaries(st.sampled_from(["columns", "index", "values", "shape", "value", "rows"]), plain),
)


@given(forgeries)
def test_whatever_a_snippet_forges_is_compared(forged: Any) -> None:
    assert 0 <= compare(forged, told(pd.Series([1, 2], name="n"))).score <= 1


cells = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(-1e6, 1e6), st.sampled_from("abc"))


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(1, 5))
    columns = draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=3, unique=True))
    return pd.DataFrame(
        {name: pd.Series(draw(st.lists(cells, min_size=rows, max_size=rows)), dtype=object) for name in columns}
    )


@given(frames(), st.randoms(use_true_random=False))
def test_rows_and_columns_in_another_order_are_the_same_result(frame: pd.DataFrame, rng: random.Random) -> None:
    rows, columns = list(range(len(frame))), list(frame.columns)
    rng.shuffle(rows)
    rng.shuffle(columns)
    assert compared(frame.iloc[rows][columns], frame).equal


@given(frames(), st.randoms(use_true_random=False))
def test_where_an_order_is_asked_for_rows_in_another_order_cost_a_hundredth(
    frame: pd.DataFrame, rng: random.Random
) -> None:
    numbered = frame.assign(place=range(len(frame)))
    rows = list(range(len(frame)))
    rng.shuffle(rows)
    found = compared(numbered.iloc[rows], numbered, ordered=True)
    assert found.equal is (rows == sorted(rows))
    assert found.score == (1.0 if found.equal else 0.99)


@given(frames(), frames())
def test_scores_stay_between_0_and_1_and_are_symmetric(one: pd.DataFrame, other: pd.DataFrame) -> None:
    there, back = compared(one, other), compared(other, one)
    assert 0 <= there.score <= 1
    assert there.equal == back.equal
    assert there.f1 == pytest.approx(back.f1)
    assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision))
    assert there.equal or there.score <= 0.99


@given(frames(), st.data())
def test_a_changed_cell_is_noticed_and_costs_one_match(frame: pd.DataFrame, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(frame) - 1))
    column = data.draw(st.integers(0, frame.shape[1] - 1))
    changed = frame.copy()
    changed.iloc[row, column] = "another text"
    found = compared(changed, frame)
    assert not found.equal
    assert found.f1 == pytest.approx(1 - 1 / frame.size)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_floats_off_by_less_than_the_tolerance_are_the_same(numbers: list[float], rng: random.Random) -> None:
    # Numbers with two decimals at most are exact.
    moved = [number if round(number, 2) == number else number * (1 + rng.uniform(-4e-7, 4e-7)) for number in numbers]
    assume(all(round(one, 2) != one or one == other for one, other in zip(moved, numbers, strict=True)))
    rng.shuffle(moved)
    found = compared(pd.Series(moved), pd.Series(numbers))
    assert found.equal
    assert found.f1 == pytest.approx(1)


def test_all_cells_of_equal_results_match_though_numbers_are_close_to_several() -> None:
    found = compared(pd.Series([999989179.0, 999989000.125]), pd.Series([999989179.0, 999989259.875]))
    assert found.equal
    assert found.f1 == 1


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30, unique=True))
def test_floats_off_by_more_than_the_tolerance_are_not(numbers: list[int]) -> None:
    found = compared(pd.Series(numbers) * 1.00001, pd.Series(numbers, dtype="float64"))
    assert not found.equal
    assert math.isfinite(found.f1)
