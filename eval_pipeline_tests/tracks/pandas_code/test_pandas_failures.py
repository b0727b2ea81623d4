"""What went wrong is told by evidence: the result, the reference code, variants, or what would mend the answer."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.sandbox.inside.encode import encode
from eval_pipeline.sandbox.returned.results import read_told
from eval_pipeline_plugins.tracks.pandas_code import FAILURE_MODES
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import (
    answers_text,
    asked_decimals,
    given_answers,
    is_equal,
    right_answers,
)
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.failures.finding import failure_of_answers, failure_of_result
from eval_pipeline_plugins.tracks.pandas_code.failures.modes import OF_ASPECT, OF_KIND
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Kind
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, read, scores

GOLDEN = golden("pandas_failures.yaml")


def told(given: Any) -> Any:
    outcome = read_told(
        b'{"result":' + encode(pd.DataFrame(given) if isinstance(given, dict) else given, 1_000_000) + b"}"
    )
    assert outcome is not None
    return outcome["result"]


@pytest.mark.parametrize("entry", GOLDEN, ids=[entry["name"] for entry in GOLDEN])
def test_a_result_shows_the_mistake(entry: dict[str, Any]) -> None:
    returned, expected = told(entry["returned"]), told(entry["expected"])
    found = failure_of_result(returned, expected, ordered=entry.get("ordered", False), order_keys=())
    assert (found and found.mode) == entry["mode"]


def test_every_kind_of_requirement_has_a_mode() -> None:
    assert OF_KIND.keys() == {str(kind) for kind in Kind}
    assert {*OF_KIND.values(), *OF_ASPECT.values()} <= set(FAILURE_MODES)


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, "wrong_format"),
        ({"share": "12.5"}, "wrong_unit"),
        ({"share": "about an eighth"}, "wrong_format"),
        ({"share": "0.4"}, None),
    ],
)
def test_closed_answers_show_the_mistake(given: dict[str, str], mode: str | None) -> None:
    found = failure_of_answers(given, {"share": False}, {"share": "0.125"})
    assert (found and found.mode) == mode
    assert failure_of_answers({"name": "new york"}, {"name": False}, {"name": "New York"}).mode == "wrong_format"  # type: ignore[union-attr]


REFERENCE = 'large = df[df["amount"] > 3]\nresult = large.groupby("city")["amount"].sum()'


OTHER = """
big = sold.query("amount >= 4")
keys = big["city"]
result = big["amount"].groupby(keys).agg("sum")
"""


@needs_sandbox
@pytest.mark.parametrize(
    ("gold", "code", "mode"),
    [
        ({"code": REFERENCE.replace("> 3", "> 4")}, OTHER, "wrong_boundary"),  # known by what it gives
        ({"expected": 5}, 'result = int((df["amount"] >= 4).sum())', None),
        ({"expected": 5}, 'result = int((df["amount"] > 4).sum())', "wrong_boundary"),  # known by what would mend it
        ({"expected": 5}, "result = 17 * 3", None),
        ({"expected": 5}, "result = 500", "wrong_unit"),
        ({"code": "result = len(df)"}, "result = df.nothing", "execution_error"),
    ],
)
def test_what_went_wrong_in_a_turn(gold: dict[str, Any], code: str, mode: str | None, stall: PandasShared) -> None:
    turn = {"question": "How many sales have an amount of 4 or more?", **gold}
    found = scores(read({"id": "x", "tables": "sold", "turns": [turn]}, stall), answer(code))
    assert (found["failure_mode"], found["recovery_score"]) == (mode, None)
    assert found["result_match"] is (mode is None and ">= 4" in code)


CLOSED = golden("pandas_closed_answers.yaml")


@pytest.mark.parametrize("case", CLOSED, ids=lambda case: f"{case['given']}-{case['label']}-{case['source'][:20]}")
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


@pytest.mark.parametrize(
    ("result", "question", "answers"),
    [
        (pd.Series({"a": 1.5, "@b": 2.0}), "", {"a": "1.5", "b": "2.0"}),
        (pd.DataFrame({"a": [1.5], "b": ["x"]}), "", {"a": "1.5", "b": "x"}),
        (pd.DataFrame({"a": [1.5, 2.5]}), "@a[x]", {}),
        ({"a": [904, 916], "b": np.array([1.5, 2.0])}, "", {"a": "904, 916", "b": "1.5, 2.0"}),
        (pd.Series([20.0, 25.5, 1.5], index=["a", "a", "b"]), "", {"b": "1.5"}),
        (pd.Series([25.5, 25.5], index=["a", "a"]), "", {"a": "25.5"}),
        (pd.DataFrame([[20.0, 25.5]], columns=["a", "a"]), "", {}),
        ({"@a": 20.0, "a": 25.5, "b": 1}, "", {"b": "1"}),
        ({"a": pd.Series([30, 5, 42])[lambda one: one > 9]}, "", {"a": "30, 42"}),
        ({"a": pd.Index([30, 42])}, "", {"a": "30, 42"}),
        (1.5, "@a[x] where x is a number", {"a": "1.5"}),
        ("normal", "@a[x]", {"a": "normal"}),
        ("normal", "@a[x], @b[y]", {}),
        ("normal", "", {}),
        (None, "@a[x]", {}),
        ("@b[1]", "@a[x]", {"b": "1"}),
        (True, "@a[x]", {"a": "True"}),
    ],
)
def test_answers_are_found_in_tables_and_alone(result: Any, question: str, answers: dict[str, str]) -> None:
    assert given_answers(json.loads(encode(result)), question) == answers


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["x", "x", "x", "y"]).value_counts(),
        pd.Series([3, 3, 3, 1]).value_counts(),
        pd.Series([1, 1, 1, 2]).value_counts(normalize=True),
        pd.Series({"x": 3, "y": 1}),
        pd.Series([3, 1], index=pd.Index([7, 8], name="id")),
        pd.Series([3, 1], index=[[0, 1], ["x", "y"]]),
    ],
)
def test_values_whose_labels_say_something_are_no_list(values: pd.Series) -> None:
    given = given_answers(json.loads(encode({"a": values})))["a"]
    assert given not in {"3, 1", "0.75, 0.25"}
    assert "index" in given


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
