"""Which models nobody beats on both cost and accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import as_numbers


def pareto_front(costs: ArrayLike, accuracies: ArrayLike) -> NDArray[np.bool_]:
    """The Pareto front of cost and accuracy.

    Args:
        costs: Shape (K,), less is better; NaN where unknown.
        accuracies: Shape (K,), more is better; NaN where unknown.

    Returns:
        Shape (K,): True where no other one costs at most as much and is at least as accurate, and better in one of the
        two. Equal ones stand on the front together; one of which either is unknown is not on it and beats nobody.

    Raises:
        ValueError: If the shapes do not fit or a value is infinite.
    """
    cost, accuracy = as_numbers(costs, "costs"), as_numbers(accuracies, "accuracies")
    if cost.shape != accuracy.shape:
        raise ValueError(f"costs and accuracies must have one shape, got {cost.shape} and {accuracy.shape}")
    cheaper, better = cost[:, None] < cost, accuracy[:, None] > accuracy
    beats = (cheaper | (cost[:, None] == cost)) & (better | (accuracy[:, None] == accuracy)) & (cheaper | better)
    known = ~(np.isnan(cost) | np.isnan(accuracy))
    return np.asarray(known & ~beats[known].any(axis=0), dtype=np.bool_)
