"""Correction for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from eval_pipeline.statistics._special import CONFIDENCE

_ALPHA: Final = 1.0 - CONFIDENCE


class CorrectedTest(NamedTuple):
    """A test among several.

    Attributes:
        p_value: Adjusted p-value, 0..1, to be compared with 0.05 as for a single test.
        alpha: Error probability for this test's interval; the interval then contains 0 if ``p_value`` is 0.05 or more.
    """

    p_value: float
    alpha: float


def holm(p_values: Sequence[float | None]) -> list[CorrectedTest | None]:
    """Applies Holm's step-down correction (Holm 1979): the probability of any false alarm is then at most 5%.

    Args:
        p_values: One for each test; None for tests that could not be made, which are not counted.

    Returns:
        In the order of ``p_values``, None if the input is None. The adjusted p-value at rank i of m is the largest
        of (m - j + 1) p_j over ranks j up to i. Its interval uses the level 0.05 / (m - i + 1); all tests that are not
        significant use the level at which the first of them failed.
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found: list[CorrectedTest | None] = [None] * len(p_values)
    largest, alpha = 0.0, _ALPHA
    for rank, (p, place) in enumerate(ranked):
        remaining = len(ranked) - rank
        if largest < _ALPHA:
            alpha = _ALPHA / remaining
        largest = max(largest, min(1.0, remaining * p))
        found[place] = CorrectedTest(largest, alpha)
    return found
