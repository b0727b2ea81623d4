"""JSON that people can read."""

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.reports.files.json_text import readable_json

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
