"""The units that are drawn, and their history in earlier evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SuiteUnits:
    """The units of a suite: conversations, each asked as a whole or not at all.

    Attributes:
        ids: One id for each unit, all different.
        sizes: Shape (units,), number of turns of each unit; at least 1.
        clusters: Name of the cluster of each unit; units of one cluster are not independent. By default each unit is a
            cluster of its own.

    Raises:
        ValueError: If there is no unit, an id occurs twice, a size is missing or below 1, or a cluster is missing.
    """

    ids: tuple[str, ...]
    sizes: Integers
    clusters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = np.asarray(self.sizes)
        if not self.ids:
            raise ValueError("a suite to draw from needs at least one unit")
        if len(set(self.ids)) != len(self.ids):
            raise ValueError("ids of units must differ")
        if sizes.shape != (len(self.ids),) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise ValueError(f"sizes must be {len(self.ids)} whole numbers of at least 1")
        if self.clusters and len(self.clusters) != len(self.ids):
            raise ValueError(f"{len(self.ids)} units need as many clusters, got {len(self.clusters)}")
        object.__setattr__(self, "sizes", sizes.astype(np.int64))

    @cached_property
    def turns(self) -> int:
        """Number of turns of the suite."""
        return int(self.sizes.sum())

    @cached_property
    def starts(self) -> Integers:
        """Shape (units,), the position of each unit's first turn."""
        return np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.int64)

    @cached_property
    def codes(self) -> Integers:
        """Shape (units,), the number of each unit's cluster, from 0."""
        if not self.clusters:
            return np.arange(len(self.ids))
        return np.unique(self.clusters, return_inverse=True)[1].astype(np.int64)

    def sums(self, values: Floats) -> Floats:
        """Sums of a value of each turn, by unit: shape (turns,) to (units,)."""
        return np.asarray(np.add.reduceat(values, self.starts), dtype=np.float64)


@dataclass(frozen=True)
class DrawSettings:
    """What a draw assumes; one on record is read again with its own, as its probabilities follow from them.

    Attributes:
        uniform: Least part of the draw that is uniform; 1 draws all units with equal probabilities.
        inflation: A new model is further from the earlier ones than they are from each other: it is newer.
        freedom: Variance of the coefficient of easiness.
    """

    uniform: float = 0.1
    inflation: float = 2.0
    freedom: float = 0.1


EARLIER: Final = DrawSettings(0.25, 5.0, 0.25)
"""Of comparisons, rankings and budgets, and of what 0.2.0 drew."""


@dataclass(frozen=True)
class History:
    """Earlier evaluations of the suite.

    Attributes:
        outcomes: Shape (turns, evaluations): 1 right, 0 wrong, NaN unknown. Turns in the order of the units.

    Raises:
        ValueError: If it is not two-dimensional, or holds other values.
    """

    outcomes: Floats

    def __post_init__(self) -> None:
        outcomes = np.asarray(self.outcomes, dtype=np.float64)
        if outcomes.ndim != 2:
            raise ValueError(f"outcomes must be a table of turns by evaluations, got shape {outcomes.shape}")
        if not ((outcomes == 0.0) | (outcomes == 1.0) | np.isnan(outcomes)).all():
            raise ValueError("outcomes must be 0, 1 or NaN")
        object.__setattr__(self, "outcomes", outcomes)
