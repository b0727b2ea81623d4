"""Several tests shown together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from eval_pipeline.statistics._special import CONFIDENCE

_ALPHA: Final = 1.0 - CONFIDENCE


class Corrected(NamedTuple):
    """A test among several.

    Attributes:
        p_value: Adjusted for all of them, 0..1: compared with 0.05 as if it were alone.
        alpha: Chance of error to make an interval with, so that it holds 0 where ``p_value`` is 0.05 or more.
    """

    p_value: float
    alpha: float


def holm(p_values: Sequence[float | None]) -> list[Corrected | None]:
    """Holm's step-down correction (Holm 1979): the chance of any false alarm among all the tests is at most 5%.

    Args:
        p_values: One a test; None where none could be made, which then does not count.

    Returns:
        In the order of ``p_values``; None where it was None. The adjusted p-value of the one in rank i of m is the
        largest of (m - j + 1) p_j over ranks j up to i. Its interval is made at 0.05 / (m - i + 1); those that are not
        significant share the level at which the first of them failed.
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found: list[Corrected | None] = [None] * len(p_values)
    largest, alpha = 0.0, _ALPHA
    for rank, (p, place) in enumerate(ranked):
        remaining = len(ranked) - rank
        if largest < _ALPHA:
            alpha = _ALPHA / remaining
        largest = max(largest, min(1.0, remaining * p))
        found[place] = Corrected(largest, alpha)
    return found
