"""Closed answers: the data set's rule by golden cases, and answers in whatever form a result has them."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.pandas_code.cases.closed_answers import (
    answers_text,
    asked_decimals,
    given_answers,
    is_equal,
    right_answers,
)
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("pandas_closed_answers.yaml")


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['given']}-{case['label']}-{case['source'][:20]}")
def test_golden_values(case: dict[str, Any]) -> None:
    assert is_equal(case["given"], case["label"], asked_decimals(case["question"])) is case["equal"]


@pytest.mark.parametrize(
    ("question", "decimals"),
    [
        ("rounded to two decimal places", {2}),
        ("rounded to 3 decimal places. p-value to four decimals", {3, 4}),
        ("Rounding off to 2-decimal precision", {2}),
        ("decimal numbers", set()),
        ("an integer", set()),
    ],
)
def test_decimals_are_read_from_digits_and_words(question: str, decimals: set[int]) -> None:
    assert asked_decimals(question) == decimals


@pytest.mark.parametrize(
    ("result", "answers"),
    [
        ({"kind": "value", "value": "@a[1] and @b_c[x y]"}, {"a": "1", "b_c": "x y"}),
        ({"kind": "value", "value": "@a[1] @a[2]"}, {"a": "2"}),
        (
            {"kind": "value", "value": {"t": "dict", "v": [["a", 1.5], ["@b", "x"], ["c", True]]}},
            {"a": "1.5", "b": "x", "c": "True"},
        ),
        ({"kind": "value", "value": 1.5}, {}),
        ({"kind": "value", "value": None}, {}),
        ({"kind": "series", "values": {"name": None, "dtype": "str", "values": ["@a[1]"]}, "index": []}, {}),
    ],
)
def test_answers_are_found_in_texts_and_dicts(result: Any, answers: dict[str, str]) -> None:
    assert given_answers(result) == answers


def test_swapped_misnamed_and_missing_answers_are_wrong() -> None:
    labels = {"low": "1.50", "high": "2.50"}
    assert right_answers({"low": "2.50", "high": "1.50"}, labels, "") == {"low": False, "high": False}
    assert right_answers({"lowest": "1.50", "high": "2.50"}, labels, "") == {"low": False, "high": True}
    assert right_answers({}, labels, "") == {"low": False, "high": False}
    assert right_answers({"low": "1.50", "high": "2.50", "more": "9"}, labels, "") == {"low": True, "high": True}


@given(st.decimals(-(10**9), 10**9, places=4), st.integers(1, 4))
def test_a_number_is_the_label_that_is_made_by_rounding_it(number: Decimal, places: int) -> None:
    label = str(round(number, places))
    asked = asked_decimals(f"rounded to {places} decimal places")
    assert is_equal(str(number), label, asked)
    assert not is_equal(str(Decimal(label) + Decimal("1.6").scaleb(-places)), label, asked)


_NAMES = st.text("abcdefgh_0", min_size=1, max_size=8)


@given(st.dictionaries(_NAMES, st.text("ab01. -", min_size=1, max_size=8), min_size=1))
def test_labels_written_in_the_form_asked_for_are_right(labels: dict[str, str]) -> None:
    given_back = given_answers({"kind": "value", "value": answers_text(labels)})
    assert all(right_answers(given_back, labels, "two decimals").values())
