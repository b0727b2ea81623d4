"""The mean that the macro metrics take over (data set, dimension) pairs."""

from collections.abc import Iterable


def mean(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the values that are not None, or None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
