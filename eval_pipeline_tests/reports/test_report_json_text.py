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


def test_what_json_has_not_becomes_null() -> None:
    value = {"a": [math.nan, {"b": math.inf, "c": (1.0, -math.inf)}], "d": math.nan}
    assert json.loads(readable_json(value, 1)) == {"a": [None, {"b": None, "c": [1.0, None]}], "d": None}


def test_short_plain_values_stay_on_a_line() -> None:
    value = {"metrics": {"m": {"value": 1.0, "version": "1"}}, "tags": ["a", "b"]}
    assert readable_json(value, 5) == (
        '{\n  "metrics": {\n    "m": {"value": 1.0, "version": "1"}\n  },\n  "tags": ["a", "b"]\n}\n'
    )
