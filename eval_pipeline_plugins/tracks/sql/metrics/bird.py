"""BIRD's metrics (github.com/bird-bench/mini_dev: evaluation_ex.py, evaluation_f1.py, evaluation_ves.py)."""

from math import sqrt

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.sql.metrics.published import Rows
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import CHANGES_DATA


def same_row_sets(generated: Rows, expected: Rows) -> float:
    """Returns 1.0 if both results have the same set of rows: neither order nor repetition of rows counts.

    The order of columns counts. Values are equal as Python compares them, without a tolerance.
    """
    return float(set(generated) == set(expected))


def positional_f1(generated: Rows, expected: Rows) -> float:
    """Returns the F1 score over cells, where each row is compared with the row at the same position.

    Repeated rows are removed first. A cell is a hit if the other row has an equal cell anywhere. All counts of a pair
    are divided by the width of the expected row; a row without a partner counts as one miss.
    """
    if not generated and not expected:
        return 1.0
    mine, theirs = list(dict.fromkeys(generated)), list(dict.fromkeys(expected))
    hits = 0.0
    extra, missing = float(max(len(mine) - len(theirs), 0)), float(max(len(theirs) - len(mine), 0))
    for own, other in zip(mine, theirs, strict=False):
        found = sum(cell in other for cell in own)
        hits += found / len(other)
        extra += (len(own) - found) / len(other)
        missing += sum(cell not in own for cell in other) / len(other)
    precision = hits / (hits + extra) if hits + extra else 0.0
    recall = hits / (hits + missing) if hits + missing else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


_REWARDS = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5))


_SLOWEST = 0.25


def reward(time_ratio: float) -> float:
    """Returns BIRD's reward for the expected query's time divided by the generated query's time."""
    return next((given for least, given in _REWARDS if time_ratio >= least), _SLOWEST)


def r_ves(execution_match: bool | None, time_ratio: float | None, changes_data: bool = False) -> MetricResult:
    """Returns the square root of a right query's reward, so that the mean over turns is BIRD's R-VES.

    0.0 if it is wrong.
    """
    if changes_data:
        return MetricResult(None, reason=CHANGES_DATA)
    if execution_match is None:
        return MetricResult(None, reason="there is no result to compare")
    if not execution_match:
        return MetricResult(0.0, details={"reward": 0.0})
    if time_ratio is None:
        return MetricResult(None, reason="the queries were not timed")
    found = reward(time_ratio)
    return MetricResult(sqrt(found), details={"reward": found, "time_ratio": time_ratio})
