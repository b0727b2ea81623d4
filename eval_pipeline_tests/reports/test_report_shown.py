"""Numbers as pages show them."""

import pytest

from eval_pipeline.reports.profile import Unit
from eval_pipeline.reports.shown import UNKNOWN, shown, shown_points


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.8765, "rate", "87.6%"),
        (-0.125, "score", "−0.125"),
        (-0.0001, "score", "0.000"),
        (-1234.5, "count", "−1,234.50"),
        (-183525, "tokens", "−183,525"),
        (-0.5, "usd", "−$0.5000"),
        (-12.5, "usd", "−$12.50"),
        (0.0, "usd", "$0.00"),
        (-1200.2, "ms", "−1,200 ms"),
        (None, "score", UNKNOWN),
    ],
)
def test_a_number_has_the_same_minus_in_every_unit(value: float | None, unit: Unit, text: str) -> None:
    assert shown(value, unit) == text


@pytest.mark.parametrize(("value", "text"), [(-0.051, "−5.1"), (0.051, "+5.1"), (-0.0001, "0.0"), (None, UNKNOWN)])
def test_a_difference_in_points_always_has_its_sign(value: float | None, text: str) -> None:
    assert shown_points(value) == text
