"""Results as plain data: what comes back is what was set, and what is not well-formed is nothing."""

import datetime
import decimal
import json
from collections import Counter, namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.inside.encode import ResultError, encode
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.returned.outcomes import Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.returned.reading import read_outcome, suspicious
from eval_pipeline.sandbox.returned.results import as_pandas, read_told


def back(result: object) -> Any:
    """The result after its way out of the jail."""
    told = read_told(b'{"result":' + encode(result) + b"}")
    assert told is not None
    return as_pandas(told["result"])


FRAMES = {
    "plain": pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [0.1, np.nan], "d": [True, False]}),
    "empty": pd.DataFrame({"a": pd.Series([], dtype="int64")}),
    "no columns": pd.DataFrame(index=[1, 2]),
    "named index": pd.DataFrame({"a": [1]}, index=pd.Index(["k"], name="key")),
    "levels": pd.DataFrame({"a": [1, 2]}).set_index(pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["s", "n"])),
    "columns in levels": pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "min"), ("a", "max")])),
    "equal names": pd.DataFrame([[1, "x"]], columns=["a", "a"]),
    "nullable": pd.DataFrame({"i": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")}),
    "times": pd.DataFrame(
        {"t": pd.to_datetime(["2024-02-29 12:00:00.123456", None]), "d": pd.to_timedelta([1, 2], "h")}
    ),
    "zone": pd.DataFrame({"t": pd.to_datetime(["2024-07-01", "2024-01-01"]).tz_localize("Europe/Berlin")}),
    "infinite": pd.DataFrame({"x": [np.inf, -np.inf, 1.0]}),
    "small types": pd.DataFrame({"x": np.array([1, 2], "int8"), "y": np.array([0.5, 0.25], "float32")}),
    "category": pd.DataFrame({"c": pd.Categorical(["b", "a", None])}),
    "periods": pd.DataFrame({"p": pd.period_range("2024-01", periods=2, freq="M")}),
    "objects": pd.DataFrame({"o": [[1, "a"], {"k": (1, 2)}]}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_come_back_equal(name: str) -> None:
    pd.testing.assert_frame_equal(back(FRAMES[name]), FRAMES[name], check_index_type=False, check_column_type=False)


VALUES = [
    None, True, 3, 2.5, "text", "ü", float("inf"), 1 + 2j, b"\x00x", (1, [2, {3}]), {"a": 1, 2: "b"}, 10**30,
    datetime.date(2024, 2, 29), datetime.time(1, 2, 3), decimal.Decimal("0.10"), pd.Timestamp("2024-01-01", tz="UTC"),
    pd.Timedelta("1D"), frozenset({1}), np.int64(7), np.bool_(True), Counter("aab"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_come_back_equal(value: object) -> None:
    found = back(value)
    assert found == value
    assert isinstance(value, np.generic | Counter) or type(found) is type(value)


def test_series_arrays_and_named_tuples_come_back() -> None:
    series = pd.Series([1.5, 2.5], name="x", index=pd.Index(["a", "b"], name="k"))
    pd.testing.assert_series_equal(back(series), series)
    np.testing.assert_array_equal(back(np.arange(6).reshape(2, 3)), np.arange(6).reshape(2, 3))
    assert back(namedtuple("Point", "x y")(1, 2)) == (1, 2)
    assert back(float("nan")) is None
    assert back("\ud800") == "?"


@pytest.mark.parametrize("form", [list, tuple, pd.Series, lambda values: pd.DataFrame({"a": values}), np.array])
def test_of_a_result_that_is_too_large_no_more_is_converted_than_shows_it(form: Any) -> None:
    long = form([*range(60_000), object()])  # the end has no plain form, so whoever gets there fails
    assert len(encode(long, 1_000)) > 1_000
    with pytest.raises(ResultError):
        encode(long, 1 << 24)


_LEVELS = {
    "numbers": pd.Index([1.5, np.nan, 3.0]),
    "places": pd.RangeIndex(3),
    "texts": pd.Index(["a", None, "b"]),
    "objects": pd.Index([1, "b", None], dtype=object),
    "dates": pd.to_datetime(["2020-01-31", None]),
    "zoned dates": pd.date_range("2020", periods=2, tz="Europe/Paris"),
    "months": pd.period_range("2020-01", periods=2, freq="M"),
    "times": pd.timedelta_range("1D", periods=2),
    "categories": pd.CategoricalIndex(["a", "b", "a"]),
    "intervals": pd.IntervalIndex.from_breaks([0, 1, 2]),
    "nullable": pd.Index([True, None], dtype="boolean"),
}


@pytest.mark.parametrize("name", _LEVELS)
def test_labels_are_told_as_a_column_of_them_would_be(name: str) -> None:
    labels = _LEVELS[name]
    column = json.loads(encode(pd.Series(labels, name="n")))["values"]
    for index in (labels.rename("n"), pd.MultiIndex.from_arrays([labels], names=["n"])):
        assert json.loads(encode(pd.Series(0, index=index)))["index"] == [column]


def test_what_has_no_plain_form_is_refused() -> None:
    nested: Any = []
    for _ in range(100):
        nested = [nested]
    for result in (object(), nested, lambda: 1, [np.random]):
        with pytest.raises(ResultError):
            encode(result)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=5).filter(lambda name: name.isprintable()),
        st.sampled_from(
            [
                st.integers(-(2**63), 2**63 - 1),
                st.floats(allow_nan=False),
                st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
                st.booleans(),
            ]
        ).flatmap(lambda cells: st.lists(cells, min_size=3, max_size=3)),
        max_size=4,
    )
)
def test_any_frame_comes_back_equal(columns: dict[str, Sequence[object]]) -> None:
    frame = pd.DataFrame(columns, index=[10, 20, 30])
    pd.testing.assert_frame_equal(back(frame), frame, check_column_type=False)


_SEEN = {"stopped": None, "status": 0, "seconds": 0.1, "peak_bytes": 5, "clean": True}


def read(left: bytes, **seen: object) -> Outcome:
    return read_outcome({**_SEEN, **seen}, b"printed", left, Limits(), "bwrap")


_COLUMN = {"name": "a", "dtype": "int64", "values": [1, 2]}
FORGED = {
    "nothing": b"",
    "no JSON": b"result",
    "deep": b"[" * 1_000_000,
    "deep in its place": b'{"result":{"kind":"value","value":' + b'{"t":"list","v":[' * 5000,
    "many digits": b'{"result":{"kind":"value","value":' + b"9" * 100_000 + b"}}",
    "NaN": b'{"result":{"kind":"value","value":NaN}}',
    "too large": b'{"result":{"kind":"value","value":1e999}}',
    "no kind": b'{"result":{"value":1}}',
    "unknown tag": b'{"result":{"kind":"value","value":{"t":"code","v":"x"}}}',
    "odd pairs": b'{"result":{"kind":"value","value":{"t":"dict","v":[[1]]}}}',
    "two": b'{"result":{"kind":"value","value":1}}{"result":{"kind":"value","value":1}}',
    "both": b'{"result":{"kind":"value","value":1},"error":{"types":["E"],"message":"","line":null}}',
    "no types": b'{"error":{"types":[],"message":"","line":null}}',
    "rows": json.dumps({"result": {"kind": "frame", "columns": [_COLUMN], "index": [_COLUMN], "rows": 3}}).encode(),
    "index": json.dumps({"result": {"kind": "series", "values": _COLUMN, "index": []}}).encode(),
    "shape": json.dumps({"result": {"kind": "array", "values": _COLUMN, "shape": [2, 2]}}).encode(),
    "text": b'{"result":{"kind":"value","value":"\\ud800"}}',
    "bytes": b"\xff\xfe",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_result_is_no_result(name: str) -> None:
    outcome = read(FORGED[name])
    assert isinstance(outcome, SnippetFailed)
    assert (outcome.error_class, outcome.message) == (
        ErrorClass.SANDBOX,
        "the process ended without a well-formed result",
    )
    assert suspicious(outcome)


@given(st.binary(max_size=60))
@settings(deadline=None)
def test_whatever_a_snippet_writes_gives_an_outcome(left: bytes) -> None:
    assert isinstance(read(left), SnippetRan | SnippetFailed)


def test_a_forged_dtype_takes_no_memory() -> None:
    column = {"name": None, "dtype": "S1000000000", "values": [1, 2]}
    assert as_pandas({"kind": "array", "values": column, "shape": [2]}).dtype == object


@pytest.mark.parametrize(
    ("seen", "error_class", "words"),
    [
        ({"stopped": "wall"}, ErrorClass.TIMEOUT, "no result within 10 s"),
        ({"stopped": "output"}, ErrorClass.SANDBOX, "printed more than 1,048,576 bytes"),
        ({"stopped": "result"}, ErrorClass.VALUE, "result takes more than"),
        ({"stopped": "threads"}, ErrorClass.SANDBOX, "more than 64 threads"),
        ({"stopped": "scratch"}, ErrorClass.SANDBOX, "more than 10,000 files"),
        ({"status": -24}, ErrorClass.TIMEOUT, "more CPU time"),
        ({"status": -9}, ErrorClass.MEMORY, "killed it"),
        ({"status": -25}, ErrorClass.SANDBOX, "larger than allowed"),
        ({"status": -11}, ErrorClass.OTHER, "SIGSEGV"),
        ({"status": -64}, ErrorClass.OTHER, "crashed the interpreter"),
        ({"status": 3}, ErrorClass.SANDBOX, "without a well-formed result"),
    ],
)
def test_a_process_that_was_ended_says_why(seen: dict[str, object], error_class: ErrorClass, words: str) -> None:
    outcome = read(b'{"result":{"kind":"value","value":1}}' if "stopped" in seen else b"", **seen)
    assert isinstance(outcome, SnippetFailed) and outcome.error_class is error_class
    assert words in outcome.message
    assert outcome.stdout == "printed"
