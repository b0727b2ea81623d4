"""The Pareto front of models by cost and accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import as_numbers


def pareto_front(costs: ArrayLike, accuracies: ArrayLike) -> NDArray[np.bool_]:
    """Finds the models on the Pareto front of cost and accuracy.

    Args:
        costs: Shape (K,), less is better; NaN where unknown.
        accuracies: Shape (K,), more is better; NaN where unknown.

    Returns:
        Shape (K,): True if no other model is at least as good in both respects and better in one. Models with equal
        values are on the front together. A model with an unknown value is not on the front and dominates no other.

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
