"""The aggregates `accuracy_by_complexity` and `complexity_ceiling`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from eval_pipeline.analysis.aggregates.base import Codes, Floats, Row, Turns
from eval_pipeline.core.errors import UsageError
from eval_pipeline.statistics.curves.ceiling import accuracy_by_level, complexity_ceiling, fitted_curve

THRESHOLD = 0.5
"""Default accuracy from which a level counts as mastered; a suite can set `options.ceiling_threshold`."""


def accuracy_rows(turns: Turns) -> list[Row]:
    """Returns one row per axis and level."""
    rows: list[Row] = []
    for axis, levels, correct, clusters in _axes(turns):
        curve = {(one.lowest, one.highest): one.fitted for one in fitted_curve(levels, correct)}
        for found in accuracy_by_level(levels, correct, clusters):
            estimate = found.estimate
            rows.append(
                {
                    "axis": axis,
                    "level": int(found.level),
                    "n": estimate.n,
                    "clusters": estimate.clusters,
                    "accuracy": estimate.mean,
                    "se": estimate.se,
                    "low": estimate.low,
                    "high": estimate.high,
                    "fitted": next(at for (low, high), at in curve.items() if low <= found.level <= high),
                    "reason": estimate.reason,
                }
            )
    return rows


def ceiling_rows(turns: Turns) -> list[Row]:
    """Returns one row per axis."""
    value = turns.options.get("ceiling_threshold", THRESHOLD)
    if not isinstance(value, int | float) or not 0 < value < 1:
        raise UsageError(f"suite '{turns.partition.suite}': options.ceiling_threshold must lie between 0 and 1")
    threshold = float(value)
    rows: list[Row] = []
    for axis, levels, correct, clusters in _axes(turns):
        found = complexity_ceiling(levels, correct, clusters, threshold)
        row: Row = {"axis": axis, "threshold": found.threshold, "ceiling": found.ceiling}
        row |= {"ceiling_low": found.ceiling_low, "ceiling_high": found.ceiling_high, "slope": found.slope}
        row |= {"odds_ratio": found.odds_ratio, "p_value": found.p_value}
        rows.append(row | {"verdict": found.verdict, "reason": found.reason})
    return rows


def _axes(turns: Turns) -> Iterator[tuple[str, Floats, Floats, Codes]]:
    """Yields each axis with the scored turns that have a level on it."""
    correct = turns.floats("correct")
    for axis in turns.track.complexity_axes:
        levels = turns.floats(turns.track.complexity_columns[axis])
        known = ~(np.isnan(levels) | np.isnan(correct))
        if known.all():
            yield axis, levels, correct, turns.clusters
        else:
            yield axis, levels[known], correct[known], turns.clusters[known]


def ceiling_headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the ceiling of the first axis."""
    first = rows[0]
    return {"axis": first["axis"], "ceiling": first["ceiling"], "verdict": first["verdict"]}


def accuracy_headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the number of levels."""
    return {"levels": len(rows)}
