"""Confidence calibration: the spec's tables, and the parts of the Brier score."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.sql.metrics import confidence_calibration
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("sql_calibration.yaml")
NOMINAL = {"high": 0.9, "medium": 0.7, "low": 0.5}


def answers(levels: dict[str, list[int]]) -> tuple[list[str], list[bool]]:
    """Confidences and correctness with so many right of so many."""
    said = [level for level, (_, n) in levels.items() for _ in range(n)]
    right = [place < good for good, n in levels.values() for place in range(n)]
    return said, right


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_the_score_and_its_meaning(case: dict[str, Any]) -> None:
    found = confidence_calibration(*answers(case["levels"]))
    if "at_most" in case:
        assert found.value is not None
        assert found.value <= case["at_most"]
    else:
        assert found.value == (None if case["score"] is None else pytest.approx(case["score"], abs=5e-5))
    assert found.reason == ". ".join(case["reason"])
    assert found.error is None


@given(st.lists(st.tuples(st.sampled_from(list(NOMINAL)), st.booleans()), min_size=20, max_size=60))
def test_the_brier_score_is_the_sum_of_its_parts_and_the_mean_square(pairs: list[tuple[str, bool]]) -> None:
    found = confidence_calibration([level for level, _ in pairs], [right for _, right in pairs]).details
    assert found is not None
    direct = sum((NOMINAL[level] - right) ** 2 for level, right in pairs) / len(pairs)
    assert found["brier"] == pytest.approx(direct)
    parts = found["brier_reliability"] - found["brier_resolution"] + found["brier_uncertainty"]
    assert parts == pytest.approx(direct)


def test_the_error_is_what_reliability_lacks() -> None:
    found = confidence_calibration(*answers({"high": [8, 10], "low": [6, 10]})).details
    assert found is not None
    assert found["ece"] == pytest.approx(0.1)
    assert found["reliability"] == pytest.approx(0.9)
    assert found["resolution"] == pytest.approx(0.5)
    assert [level["level"] for level in found["levels"]] == ["high", "low"]


def test_answers_without_a_level_are_left_out() -> None:
    said, right = answers({"high": [9, 10], "low": [5, 10]})
    with_silent = confidence_calibration([*said, None, None], [*right, False, False])
    assert with_silent == confidence_calibration(said, right)


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown confidence 'sure'; known: high, medium, low"):
        confidence_calibration(["sure"], [True])


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 confidences for 1 answers"):
        confidence_calibration(["high", "low"], [True])


def test_confidence_that_knows_nothing_is_rarely_called_accurate() -> None:
    """20 turns whose levels are drawn by themselves: without the interval 14 to 18% of them got the words."""
    rng, called = Random(20), 0
    for _ in range(2000):
        said = [rng.choice(list(NOMINAL)) for _ in range(20)]
        right = [rng.random() < 0.7 for _ in range(20)]
        called += (confidence_calibration(said, right).reason or "").startswith("Confidence levels accurately")
    assert called <= 0.03 * 2000


def test_confidence_that_tells_right_from_wrong_is_called_accurate() -> None:
    rng, called = Random(21), 0
    for _ in range(200):
        said = [rng.choice(list(NOMINAL)) for _ in range(300)]
        right = [rng.random() < NOMINAL[level] for level in said]
        called += (confidence_calibration(said, right).reason or "").startswith("Confidence levels accurately")
    assert called >= 0.9 * 200
