"""Determines which turns of a suite distinguish models, from its earlier evaluations.

Difficulty is the share of evaluations that were wrong. Discrimination is the correlation of a turn's outcomes with the
evaluations' shares of right turns among all others (the corrected item-total correlation, Lord and Novick 1968, 15.4):
above 0 where good models are right more often. If outcomes are unknown, evaluations are compared by the known ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._special import t_p_value
from eval_pipeline.statistics.pairs.paired import holm

Kind = Literal["tells apart", "all right", "all wrong", "suspicious", "too little history"]

ENOUGH: Final = 5
"""Evaluations from which on a turn is judged."""
_ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Item:
    """A turn's history.

    Attributes:
        evaluations: Number of evaluations with a known outcome.
        difficulty: Share of these evaluations that were wrong, 0..1; None without any.
        discrimination: In -1..1; None with too little history or where outcomes or the models do not differ.
        p_value: One-sided p-value of no correlation against a negative one, corrected for all turns of the suite
            (Holm); None if the discrimination is.
        kind: "suspicious" is a turn that weak models get right and good ones do not, beyond chance; its gold should be
            checked. "all right" and "all wrong" do not distinguish models.
    """

    evaluations: int
    difficulty: float | None
    discrimination: float | None
    p_value: float | None
    kind: Kind


def item_history(outcomes: ArrayLike) -> list[Item]:
    """Describes every turn.

    Args:
        outcomes: Shape (turns, evaluations): 1 right, 0 wrong, NaN unknown. It is best to have one column for each
            model version, since several evaluations of one model are not independent.

    Returns:
        One item for each turn, in the same order.

    Raises:
        ValueError: If it is not a table of 0, 1 and NaN.
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"outcomes must be a table of turns by evaluations, got shape {table.shape}")
    known = ~np.isnan(table)
    if not (np.isin(table, (0.0, 1.0)) | ~known).all():
        raise ValueError("outcomes must be 0, 1 or NaN")
    filled = np.where(known, table, 0.0)
    # The ability of an evaluation is what it got right beyond what was to be expected of the turns that it was asked.
    rate = filled.sum(1) / np.maximum(known.sum(1), 1)
    beyond = np.where(known, table - rate[:, None], 0.0)
    total, count = beyond.sum(0), known.sum(0)
    found = [
        _correlation(table[i], known[i], (total - beyond[i]) / np.maximum(count - 1, 1)) for i in range(len(table))
    ]
    corrected = holm([None if r is None else p for r, p in found])
    return [
        _item(right, here, r, None if test is None else test.p_value)
        for right, here, (r, _), test in zip(filled, known, found, corrected, strict=True)
    ]


def _item(right: NDArray[np.float64], known: NDArray[np.bool_], r: float | None, p: float | None) -> Item:
    n = int(known.sum())
    difficulty = 1.0 - float(right.sum()) / n if n else None
    kind: Kind = "tells apart"
    if n < ENOUGH:
        kind = "too little history"
    elif difficulty == 0.0:
        kind = "all right"
    elif difficulty == 1.0:
        kind = "all wrong"
    elif p is not None and p < _ALPHA:
        kind = "suspicious"
    return Item(n, difficulty, r, p, kind)


def _correlation(
    outcomes: NDArray[np.float64], known: NDArray[np.bool_], ability: NDArray[np.float64]
) -> tuple[float | None, float]:
    """Correlation with ability and the one-sided p-value of a negative one, by t with n - 2 degrees of freedom."""
    n = int(known.sum())
    if n < ENOUGH:
        return None, 1.0
    x, y = outcomes[known] - outcomes[known].mean(), ability[known] - ability[known].mean()
    square = float((x @ x) * (y @ y))
    if square <= 1e-18:
        return None, 1.0
    r = min(max(float(x @ y) / math.sqrt(square), -1.0), 1.0)
    if abs(r) == 1.0:
        return r, 0.0 if r < 0.0 else 1.0
    half = t_p_value(r * math.sqrt((n - 2) / (1.0 - r * r)), n - 2) / 2.0
    return r, half if r < 0.0 else 1.0 - half
