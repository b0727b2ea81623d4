"""Shared operations of plan and gold as multisets, from which recall and precision are computed."""

from collections.abc import Sequence

Operations = Sequence[str]


def shared_operations(plan: Operations, gold: Operations) -> int:
    """Returns the number of operations that the two have in common, ignoring order."""
    return sum(min(plan.count(name), gold.count(name)) for name in set(gold))


def share(part: int, whole: int, other: int) -> float:
    """Returns part / whole; if whole is 0: 1.0 if the other side is empty as well, else 0.0."""
    if whole == 0:
        return 1.0 if other == 0 else 0.0
    return part / whole
