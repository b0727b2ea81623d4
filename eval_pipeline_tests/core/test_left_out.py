"""How cases that were left out are told: the golden cases, several evaluations together, and long texts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.covering.left_out import CaseCounts, Cause, sentences
from eval_pipeline_tests.goldens import golden

CASES = golden("left_out.yaml")["cases"]
causes = st.builds(
    Cause, st.sampled_from(["wrong", "part", "budget"]), st.integers(1, 99), st.lists(st.text(), max_size=4).map(tuple)
)


def counts_of(case: dict[str, Any]) -> CaseCounts:
    row = case["row"]
    return CaseCounts.from_row({**row, "left_out": json.dumps(row["left_out"])} if row.get("left_out") else row)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any]) -> None:
    found = counts_of(case)
    assert found.count() == case["count"]
    assert found.text() == case["text"]
    if "without_examples" in case:
        assert found.text(examples=False) == case["without_examples"]


@given(st.integers(0, 50), st.lists(causes, max_size=3).map(tuple))
def test_columns_and_back(cases: int, left_out: tuple[Cause, ...]) -> None:
    found = CaseCounts(cases, cases + sum(cause.cases for cause in left_out), left_out)
    assert CaseCounts.from_row(found.columns()) == found


def test_evaluations_that_lack_the_same_share_a_sentence_and_whole_ones_are_not_named() -> None:
    lacking = CaseCounts(1, 2, (Cause("budget", 1),))
    said = "1 of 2 cases; 1 left out because the budget did not allow asking it"
    assert list(sentences([("a", lacking), ("b", lacking)])) == [said]
    assert list(sentences([("a", lacking), ("b", CaseCounts(2, 2))])) == [f"a: {said}"]
    assert list(sentences([("a", CaseCounts(2, 2)), ("b", CaseCounts())])) == []


def test_a_long_problem_does_not_fill_the_headline_and_is_kept_whole() -> None:
    long = CaseCounts(1, 2, (Cause.of("wrong", ["x" * 500]),))
    assert len(long.text()) < 250
    assert CaseCounts.from_row(long.columns()).left_out[0].examples == ("x" * 500,)
