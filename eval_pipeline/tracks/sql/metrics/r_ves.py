"""Efficiency, as in BIRD's reward-based valid efficiency score (github.com/bird-bench/mini_dev)."""

from math import sqrt

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import CHANGES_DATA

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


METRIC = Metric(
    "r_ves",
    r_ves,
    "count",
    "Square root of BIRD's reward (1.25 at half the expected query's time or less, 1, 0.75, 0.5, 0.25), 0..1.118; 0 "
    "where the result is wrong; NULL as execution_match.",
)
