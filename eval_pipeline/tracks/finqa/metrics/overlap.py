"""Shared operations of plan and gold, counted as multisets: what recall and precision are made of."""

from collections.abc import Sequence

Operations = Sequence[str]


def shared_operations(plan: Operations, gold: Operations) -> int:
    """How many operations the two have in common, order ignored."""
    return sum(min(plan.count(name), gold.count(name)) for name in set(gold))


def share(part: int, whole: int, other: int) -> float:
    """The part of the whole; 1.0 where both sides are empty, 0.0 where only this one is."""
    if whole == 0:
        return 1.0 if other == 0 else 0.0
    return part / whole
