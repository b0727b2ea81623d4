"""Means over (data set, dimension) pairs that the macro metrics share."""

from collections.abc import Iterable


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that are defined; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
