"""Values cross to the tests' process as they are, and what is made up is refused or is a plain value."""

import collections
import datetime
import decimal
import fractions
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.sandbox.inside.wire import pack, unpack


def no_handle(value: object) -> Any:
    raise TypeError(f"no handle for {value!r}")


def back(value: object) -> Any:
    return unpack(json.loads(json.dumps(pack(value, no_handle))), no_handle)


def every_dtype() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "int": [1, 2],
            "text": ["x", None],
            "time": pd.to_datetime(["2020-01-01", None]),
            "category": pd.Categorical(["u", "v"], categories=["v", "u", "w"], ordered=True),
            "Int64": pd.array([1, None], dtype="Int64"),
            "float": [1.5, np.nan],
            "object": [[1], {2: 3}],
            "zoned": pd.to_datetime(["2020-01-01", None], utc=True).tz_convert("Europe/Paris"),
            "period": pd.period_range("2020-01", periods=2, freq="M"),
            "interval": pd.interval_range(0, 2),
            "bool": [True, False],
            "boolean": pd.array([True, None], dtype="boolean"),
            "duration": pd.to_timedelta([1, None], unit="s"),
            "small": np.array([1, 2], dtype="int8"),
            "string": pd.array(["a", None], dtype="string"),
        },
        index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["p", None]),
    )
    frame.columns.name = "names"
    return frame


def test_frames_of_every_dtype_come_back_as_they_were() -> None:
    frame = every_dtype()
    pd.testing.assert_frame_equal(back(frame), frame)
    for other in (
        frame.reset_index(drop=True),
        frame.set_index("zoned"),
        frame[["int"]].T,
        pd.DataFrame(),
        pd.DataFrame(index=[1, 2]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": [1, 2]}, index=pd.date_range("2020", periods=2, freq="D")),
        frame.groupby("bool")[["int", "float"]].agg(["sum", "mean"]),
    ):
        pd.testing.assert_frame_equal(back(other), other)
    for name in frame:
        pd.testing.assert_series_equal(back(frame[name]), frame[name])


INDEXES = (
    pd.RangeIndex(3, name="r"),
    pd.Index([1, 2], name=("a", "b")),
    pd.Index(["a", None]),
    pd.date_range("2020", periods=3, freq="MS", tz="UTC"),
    pd.CategoricalIndex(["a", "b"]),
    pd.interval_range(0, 3),
    pd.Index([]),
    pd.Index([1.5, None]),
)


@pytest.mark.parametrize("index", INDEXES, ids=repr)
def test_indexes_come_back_as_they_were(index: Any) -> None:
    found = back(index)
    pd.testing.assert_index_equal(found, index, exact=True)
    assert getattr(found, "freqstr", None) == getattr(index, "freqstr", None)


VALUES = (
    *(1, 2**70, 1.5, -0.0, float("nan"), float("-inf"), "x\ud800", b"x", None, True),
    *((1, [2, {3}]), ..., frozenset([1])),
    *({"a": {1: 2}, (1, 2): 3}, collections.Counter("aab"), collections.OrderedDict(a=1), collections.deque([1])),
    *(np.float64(1.5), np.int32(2), np.bool_(True), np.datetime64("2020"), np.dtype("int64"), pd.Int64Dtype()),
    *(datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1), datetime.time(1, 2), datetime.timedelta(1, 2, 3)),
    *(decimal.Decimal("1.50"), fractions.Fraction(1, 3), range(3), slice(1, None, 2), 1j, int, pd.DataFrame),
    *(pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), pd.Timedelta("1s"), pd.Period("2020-01"), pd.Interval(1, 2)),
    *(pd.NA, pd.NaT),
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(value: object) -> None:
    found = back(value)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array([1, "a", None, [2, 3]], dtype=object),
        np.array(["a", "bb"]),
        np.zeros((0, 3)),
        np.array(5),
        np.arange(4)[::2],
    ],
    ids=repr,
)
def test_arrays_come_back_as_they_were(array: Any) -> None:
    found = back(array)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_what_has_no_plain_form_is_kept_where_it_is() -> None:
    kept: list[object] = []

    def keep(value: object) -> Any:
        kept.append(value)
        return {"t": "handle", "v": len(kept) - 1}

    values = [print, object(), every_dtype().groupby("int")]
    assert [one["v"] for one in pack(values, keep)["v"]] == [0, 1, 2]
    assert kept == values
    nested: Any = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(TypeError, match="nested"):
        pack(nested, keep)


PLAIN = (
    *(bool, int, float, str, list, tuple, set, frozenset, dict, type(None)),
    *(np.ndarray, pd.DataFrame, pd.Series, pd.Index),
)
TAGS = st.sampled_from(
    [one["t"] for one in (pack(value, no_handle) for value in VALUES) if isinstance(one, dict)]
    + ["frame", "series", "index", "extension", "array", "objects", "named", "handle", "exec", "__import__"]
)
TOLD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {"t": TAGS, "v": inner}, optional=dict.fromkeys(("d", "s", "a", "i", "n", "k", "f", "u", "z", "c"), inner)
        )
    ),
    max_leaves=8,
)


@given(TOLD)
@settings(max_examples=200, deadline=None)
def test_whatever_is_sent_gives_a_value_of_a_known_type_or_is_refused(told: Any) -> None:
    try:
        found = unpack(told, no_handle)
    except Exception:  # the tests fail with it
        return
    module = type(found).__module__.partition(".")[0]
    known = ("builtins", "pandas", "numpy", "datetime", "decimal", "fractions", "collections", "pathlib")
    assert isinstance(found, PLAIN) or module in (*known, "zoneinfo") or hasattr(found, "_fields")


def test_a_named_tuple_has_no_methods_of_the_code() -> None:
    handle = {"t": "handle", "v": 0}
    told = {"t": "named", "n": "P", "f": ["equals"], "v": {"t": "tuple", "v": [handle]}}
    with pytest.raises(TypeError, match="named tuple"):
        unpack(told, lambda _: print)
