"""JSON that people can read."""

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.reports.files.json_text import part, parts, readable_json

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES, st.integers(0, 6))
def test_the_text_is_the_value(value: Any, depth: int) -> None:
    assert json.loads(readable_json(value, depth)) == value


class Word(str):
    """A text of another type, as an enumeration's are."""


def test_scalars_are_written_as_the_standard_library_does() -> None:
    values = [
        None,
        True,
        False,
        0,
        -7,
        10**30,
        0.1,
        1e300,
        -0.0,
        "",
        'a"\\\n\u2028\x7fé',
        Word("w"),
        {1: "one"},
        {},
        [],
    ]
    for value in [*values, values, dict.fromkeys(["a"], values), {"a": 1, "b": "x"}]:
        assert readable_json(value, 0) == json.dumps(value, ensure_ascii=False) + "\n"


def test_what_json_has_not_becomes_null() -> None:
    value = {"a": [math.nan, {"b": math.inf, "c": (1.0, -math.inf)}], "d": math.nan}
    assert json.loads(readable_json(value, 1)) == {"a": [None, {"b": None, "c": [1.0, None]}], "d": None}


def test_short_plain_values_stay_on_a_line() -> None:
    value = {"metrics": {"m": {"value": 1.0, "version": "1"}}, "tags": ["a", "b"]}
    assert readable_json(value, 5) == (
        '{\n  "metrics": {\n    "m": {"value": 1.0, "version": "1"}\n  },\n  "tags": ["a", "b"]\n}\n'
    )


_ROWS = st.integers(0, 7).flatmap(
    lambda names: st.lists(st.lists(_VALUES, min_size=names, max_size=names), min_size=1, max_size=3)
)


@given(_ROWS, st.integers(0, 3))
def test_what_is_written_by_column_is_the_same_text(rows: list[list[Any]], depth: int) -> None:
    names = [f"%s {place}" for place in range(len(rows[0]))]
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    columns = {name: [row[name] for row in objects] for name in names}
    whole = {"rows": objects, "by name": {"first": objects[0], "second": 2}}
    in_list = parts(columns, depth, 2) if names else [part(one, depth, 2) for one in objects]
    in_parts = {"rows": in_list, "by name": {"first": part(objects[0], depth, 2), "second": 2}}
    assert [*in_list] == [part(one, depth, 2) for one in objects]
    if any(isinstance(value, dict | list) for one in objects for value in one.values()) or len(names) > 4:
        assert readable_json(in_parts, depth + 2) == readable_json(whole, depth + 2)


def test_what_is_written_stands_on_lines_of_its_own() -> None:
    assert readable_json([part({"a": 1}, 0, 1)], 1) == '[\n  {"a": 1}\n]\n' == readable_json([{"a": 1}], 1)
