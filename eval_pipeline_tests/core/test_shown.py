"""Figures are formatted as golden cases say, and an interval takes digits away, never adds any."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core import shown
from eval_pipeline_tests.goldens import golden

CASES = golden("shown_figures.yaml")
FIGURES = st.floats(-1e9, 1e9)


LOSS = {
    "open_loss_difference": -0.387, "open_loss_date": "2026-03-02", "eval_date": "2026-03-02", "first_difference": None,
    "previous_difference": -0.387, "previous_low": -0.56, "previous_high": -0.21,
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['unit']} {case['value']} {case['text']}")
def test_golden(case: dict[str, Any]) -> None:
    assert shown.figure(case["value"], case["unit"], case.get("low"), case.get("high")) == case["text"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (shown.number(None), "–"),
        (shown.number(0.654320987654321), "0.6543"),
        (shown.number(-3.0), "−3"),
        (shown.number(1234567.8), "1,234,568"),
        (shown.number(0.00001234), "0.00001234"),
        (shown.number(-1.234e-12), "−1.234E-12"),
        (shown.interval(0.839, 0.9121), "83.9% to 91.2%"),
        (shown.interval(-0.4, None, "points"), "–"),
        (shown.estimate(0.6123, 0.30, 0.90), "61% [30% to 90%]"),
        (shown.estimate(1, None, None), "100.0%"),
        (shown.interval_or_counts(1.0, 1, None, None), "1 of 1"),
        (shown.interval_or_counts(0.0, 6, None, None), "0 of 6"),
        (shown.interval_or_counts(0.0, 6, 0.0, 0.46), "0% to 46%"),
        (shown.interval_or_counts(0.5, None, None, None), ""),
        (shown.interval_or_counts(None, 3, None, None), ""),
        (shown.open_loss(LOSS), "−39"),
        (shown.open_loss(LOSS | {"previous_difference": -0.1}), "−38.7"),
        (shown.open_loss(LOSS | {"eval_date": "2026-03-03"}), "−38.7"),
        (shown.points_text(-0.2469, -0.301, -0.193), "−24.7 points [−30.1 to −19.3]"),
        (shown.points_text(0.05), "+5.0 points"),
        (shown.signed(120, "tokens"), "+120"),
        (shown.signed(-0.0012, "usd"), "−$0.0012"),
        (shown.signed(0.2, "tokens"), "0"),
        (shown.duration(45.4), "45 s"),
        (shown.duration(200), "3 min 20 s"),
        (shown.duration(7500), "2 h 5 min"),
        (shown.duration(1500), "25 min"),
        (shown.duration(7200), "2 h"),
        (shown.duration(600), "10 min"),
        (shown.duration(None), "–"),
        (shown.given(0.5), "50%"),
        (shown.given(0.1 + 0.2), "30%"),
        (shown.given(0.875), "87.5%"),
        (shown.given(0), "0%"),
        (shown.given(-0.025, "points"), "−2.5"),
        (shown.given(0.1, "points"), "+10"),
        (shown.given(0.0, "points"), "0"),
        (shown.given(2.5e6, "tokens"), "2,500,000"),
        (shown.given(0.5, "usd"), "$0.50"),
        (shown.given(0.0025, "usd"), "$0.0025"),
        (shown.given(2000, "usd"), "$2,000"),
        (shown.size(812), "812 B"),
        (shown.size(1000), "1.00 kB"),
        (shown.size(700_000), "700 kB"),
        (shown.size(12_345_678), "12.3 MB"),
        (shown.size(5 * 10**15), "5,000 TB"),
        (str(shown.rounded(0.654320987654321)), "0.6543"),
        (str(shown.rounded(-17468.941)), "-17469.0"),
        (str(shown.rounded(1.234567e-12)), "1.234567e-12"),
    ],
)  # worked out by hand
def test_what_is_made_of_figures(text: str, expected: str) -> None:
    assert text == expected


@given(FIGURES, FIGURES, FIGURES, st.sampled_from(["rate", "points", "score", "count", "usd"]))
def test_an_interval_only_takes_digits_away(value: float, low: float, high: float, unit: Any) -> None:
    alone, bounded = (shown.figure(value, unit, *ends).partition(".")[2].rstrip("%") for ends in ((), (low, high)))
    assert len(bounded) <= len(alone)
    negated = shown.figure(-value, unit)
    assert "-" not in negated and negated.lstrip("−+") == shown.figure(value, unit).lstrip("−+")
